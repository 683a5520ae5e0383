//! Registers of devices, mapped into this process: every access is one load or store of the register's own
//! width.
//!
//! Invariants: no access outside the mapping or off its alignment; the accesses that are asked for are made,
//! all of them, one after the other, and none else (volatile); a mapping for reading cannot be written to.
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::SysError;

/// Width of a register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Width {
    /// 8 bits.
    Bits8,
    /// 16 bits.
    Bits16,
    /// 32 bits.
    #[default]
    Bits32,
    /// 64 bits.
    Bits64,
}

impl Width {
    /// Of so many bits.
    pub fn of_bits(bits: u32) -> Option<Self> {
        [Self::Bits8, Self::Bits16, Self::Bits32, Self::Bits64].into_iter().find(|width| width.bits() == bits)
    }

    /// In bits.
    pub fn bits(self) -> u32 {
        self.bytes() as u32 * 8
    }

    /// In bytes.
    pub fn bytes(self) -> usize {
        match self {
            Self::Bits8 => 1,
            Self::Bits16 => 2,
            Self::Bits32 => 4,
            Self::Bits64 => 8,
        }
    }

    /// What a register reads as when nobody answers on the bus.
    pub fn all_ones(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }
}

/// Registers one behind the other, or one of them again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Where the first is, bytes; a multiple of the width.
    pub offset: u64,
    /// How many are accessed, at least 1.
    pub count: u64,
    /// Of each.
    pub width: Width,
    /// The first again and again.
    pub is_fifo: bool,
}

impl Span {
    /// Bytes from the first to behind the last; `None` when there are too many.
    pub fn bytes(&self) -> Option<u64> {
        let places = if self.is_fifo { self.count.min(1) } else { self.count };
        places.checked_mul(self.width.bytes() as u64)
    }

    /// Whether it lies within `bytes`, is aligned, and is not empty.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn check(&self, bytes: u64) -> Result<(), String> {
        let width = self.width.bytes() as u64;
        if self.count == 0 {
            return Err("no register at all".into());
        }
        if !self.offset.is_multiple_of(width) {
            return Err(format!(
                "{:#x} is no multiple of {width} bytes, the width of the register",
                self.offset
            ));
        }
        let end = self.bytes().and_then(|length| self.offset.checked_add(length));
        match end {
            Some(end) if end <= bytes => Ok(()),
            _ => Err(format!(
                "{} registers of {width} bytes from {:#x} on reach beyond its {bytes} bytes",
                self.count, self.offset
            )),
        }
    }
}

/// Memory of a device, or of a file.
#[derive(Debug)]
pub struct RegisterMap {
    base: NonNull<u8>,
    bytes: usize,
    is_writable: bool,
}

// SAFETY: a mapping is bound to no thread, and is used by one at a time (it is not `Sync`).
unsafe impl Send for RegisterMap {}

impl RegisterMap {
    /// Maps the first `bytes` from `offset` on, a multiple of the page size, of a file that was opened for
    /// reading.
    ///
    /// # Errors
    /// The kernel's: ENODEV where the file cannot be mapped, as BARs of ports cannot.
    pub fn new(file: BorrowedFd<'_>, offset: u64, bytes: usize) -> Result<Self, SysError> {
        Self::map(file, offset, bytes, false)
    }

    /// As [`RegisterMap::new`], of a file that was opened for reading and writing, and for both.
    ///
    /// # Errors
    /// As there.
    pub fn writable(file: BorrowedFd<'_>, offset: u64, bytes: usize) -> Result<Self, SysError> {
        Self::map(file, offset, bytes, true)
    }

    fn map(file: BorrowedFd<'_>, offset: u64, bytes: usize, is_writable: bool) -> Result<Self, SysError> {
        let failed = |source| SysError::Call { action: "map registers", source };
        let access = if is_writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing; it is never turned
        // into a reference, only accessed by volatile loads and stores.
        let base = unsafe { mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, file, offset) };
        let base = base.map_err(|why| failed(why.into()))?;
        let base = NonNull::new(base.cast()).ok_or_else(|| failed(std::io::Error::other("address 0")))?;
        Ok(Self { base, bytes, is_writable })
    }

    /// Reads one register.
    ///
    /// # Errors
    /// One that does not lie within or is not aligned.
    pub fn value(&self, offset: u64, width: Width) -> Result<u64, SysError> {
        let span = Span { offset, count: 1, width, is_fifo: false };
        let mut found = 0;
        match width {
            Width::Bits8 => self.each::<u8>(&span, 1, |value| found = value.into()),
            Width::Bits16 => self.each::<u16>(&span, 1, |value| found = value.into()),
            Width::Bits32 => self.each::<u32>(&span, 1, |value| found = value.into()),
            Width::Bits64 => self.each::<u64>(&span, 1, |value| found = value),
        }?;
        Ok(found)
    }

    /// Whether [`RegisterMap::write`] can be used.
    pub fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// Writes a register by one store of its width. On PCI such a store is posted: that it returned does not
    /// say that it arrived, a load from the same device does.
    ///
    /// # Errors
    /// A mapping for reading alone, a register that does not lie within or is not aligned, a value that is
    /// wider than the register.
    pub fn write(&self, offset: u64, width: Width, value: u64) -> Result<(), SysError> {
        self.write_again(offset, width, value, 1, false)
    }

    /// Writes the same so many `times`, and with `reads_back` loads the register each time.
    ///
    /// # Errors
    /// As for [`RegisterMap::write`].
    pub fn write_again(
        &self,
        offset: u64,
        width: Width,
        value: u64,
        times: u64,
        reads_back: bool,
    ) -> Result<(), SysError> {
        let refused = |what| Err(SysError::Invalid { what });
        if !self.is_writable {
            return refused("it is mapped for reading alone".into());
        }
        if value > width.all_ones() {
            return refused(format!("{value:#x} has more than the {} bits of the register", width.bits()));
        }
        match width {
            Width::Bits8 => self.stores(offset, width, value as u8, times, reads_back),
            Width::Bits16 => self.stores(offset, width, value as u16, times, reads_back),
            Width::Bits32 => self.stores(offset, width, value as u32, times, reads_back),
            Width::Bits64 => self.stores(offset, width, value, times, reads_back),
        }
    }

    /// Stores `value`, which has the type of the register's width.
    fn stores<T: Copy>(
        &self,
        offset: u64,
        width: Width,
        value: T,
        times: u64,
        reads_back: bool,
    ) -> Result<(), SysError> {
        let span = Span { offset, count: 1, width, is_fifo: true };
        span.check(self.bytes as u64).map_err(|what| SysError::Invalid { what })?;
        // SAFETY: within the mapping, as checked.
        let place = unsafe { self.base.as_ptr().add(offset as usize) }.cast::<T>();
        for _ in 0..times {
            // SAFETY: within the mapping and aligned, as checked; mapped for writing, as `write` checked, and
            // nothing in this process holds a reference into it.
            unsafe { place.write_volatile(value) };
            if reads_back {
                // SAFETY: as above; it is mapped for reading, too.
                let _ = unsafe { place.read_volatile() };
            }
        }
        Ok(())
    }

    /// Its size, bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reads all of a span so many `times`, and keeps nothing.
    ///
    /// # Errors
    /// A span that does not lie within.
    pub fn sweep(&self, span: &Span, times: u64) -> Result<(), SysError> {
        match span.width {
            Width::Bits8 => self.each::<u8>(span, times, |_| ()),
            Width::Bits16 => self.each::<u16>(span, times, |_| ()),
            Width::Bits32 => self.each::<u32>(span, times, |_| ()),
            Width::Bits64 => self.each::<u64>(span, times, |_| ()),
        }
    }

    /// Reads all of a span into `values`, which is cleared first.
    ///
    /// # Errors
    /// A span that does not lie within.
    pub fn read(&self, span: &Span, values: &mut Vec<u64>) -> Result<(), SysError> {
        values.clear();
        match span.width {
            Width::Bits8 => self.each::<u8>(span, 1, |value| values.push(value.into())),
            Width::Bits16 => self.each::<u16>(span, 1, |value| values.push(value.into())),
            Width::Bits32 => self.each::<u32>(span, 1, |value| values.push(value.into())),
            Width::Bits64 => self.each::<u64>(span, 1, |value| values.push(value)),
        }
    }

    /// One load for each register of a span, in order; the whole so many `times`.
    #[inline]
    fn each<T: Copy>(&self, span: &Span, times: u64, mut take: impl FnMut(T)) -> Result<(), SysError> {
        span.check(self.bytes as u64).map_err(|what| SysError::Invalid { what })?;
        // SAFETY: the span begins within the mapping, as checked.
        let first = unsafe { self.base.as_ptr().add(span.offset as usize).cast::<T>() };
        // A register again and again is one loop, however it is divided.
        if span.is_fifo || span.count == 1 {
            for _ in 0..times.saturating_mul(span.count) {
                // SAFETY: aligned (the mapping begins on a page, the offset is a multiple of the width) and
                // within the mapping, as checked; readable as long as `self` lives.
                take(unsafe { first.read_volatile() });
            }
            return Ok(());
        }
        for _ in 0..times {
            for index in 0..span.count as usize {
                // SAFETY: as above; so is the last register of the span.
                take(unsafe { first.add(index).read_volatile() });
            }
        }
        Ok(())
    }
}

impl Drop for RegisterMap {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing refers to it any more.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
#[path = "register_tests.rs"]
mod tests;
