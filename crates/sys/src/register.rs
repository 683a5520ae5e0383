//! Memory-mapped device registers: every access is one load or store of the register's own width.
//!
//! Invariants: no access outside the mapping or unaligned; exactly the requested accesses are
//! made, in order (volatile); a read-only mapping cannot be written.
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
    /// Width of this many bits.
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

    /// Value of a read without a response on the bus: all ones.
    pub fn all_ones(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }
}

/// Range of consecutive registers, or repeated accesses to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first, bytes; a multiple of the width.
    pub offset: u64,
    /// Number of accesses, at least 1.
    pub count: u64,
    /// Width of each register.
    pub width: Width,
    /// Access the first register repeatedly.
    pub is_fifo: bool,
}

impl Span {
    /// Size of the range in bytes; `None` on overflow.
    pub fn bytes(&self) -> Option<u64> {
        let places = if self.is_fifo { self.count.min(1) } else { self.count };
        places.checked_mul(self.width.bytes() as u64)
    }

    /// Checks that the range is within `bytes`, aligned, and not empty.
    ///
    /// # Errors
    /// Description of the problem.
    pub fn check(&self, bytes: u64) -> Result<(), String> {
        let width = self.width.bytes() as u64;
        if self.count == 0 {
            return Err("the span is empty".into());
        }
        if !self.offset.is_multiple_of(width) {
            return Err(format!(
                "{:#x} is not a multiple of {width} bytes, the width of the register",
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

/// Mapping of device or file memory.
#[derive(Debug)]
pub struct RegisterMap {
    base: NonNull<u8>,
    bytes: usize,
    is_writable: bool,
}

// SAFETY: a mapping is not bound to a thread, and is used by one at a time (it is not `Sync`).
unsafe impl Send for RegisterMap {}

impl RegisterMap {
    /// Maps `bytes` from `offset` on, a multiple of the page size, of a file opened for reading.
    ///
    /// # Errors
    /// The kernel's: ENODEV if the file cannot be mapped, as for BARs in I/O port space.
    pub fn new(file: BorrowedFd<'_>, offset: u64, bytes: usize) -> Result<Self, SysError> {
        Self::map(file, offset, bytes, false)
    }

    /// Like [`RegisterMap::new`], for reading and writing; the file must be open for both.
    ///
    /// # Errors
    /// As [`RegisterMap::new`].
    pub fn writable(file: BorrowedFd<'_>, offset: u64, bytes: usize) -> Result<Self, SysError> {
        Self::map(file, offset, bytes, true)
    }

    fn map(file: BorrowedFd<'_>, offset: u64, bytes: usize, is_writable: bool) -> Result<Self, SysError> {
        let failed = |source| SysError::Call { action: "map registers", source };
        let access = if is_writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: a new mapping at an address chosen by the kernel aliases nothing; it is only
        // accessed by volatile loads and stores, never through a reference.
        let base = unsafe { mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, file, offset) };
        let base = base.map_err(|why| failed(why.into()))?;
        let base = NonNull::new(base.cast()).ok_or_else(|| failed(std::io::Error::other("address 0")))?;
        Ok(Self { base, bytes, is_writable })
    }

    /// Reads one register.
    ///
    /// # Errors
    /// The register is out of range or unaligned.
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

    /// Whether the mapping is writable.
    pub fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// Writes a register by one store of its width. On PCI the store is posted: only a later load
    /// from the same device proves that it arrived.
    ///
    /// # Errors
    /// The mapping is read-only, the register is out of range or unaligned, or the value is wider
    /// than the register.
    pub fn write(&self, offset: u64, width: Width, value: u64) -> Result<(), SysError> {
        self.write_again(offset, width, value, 1, false)
    }

    /// Writes the same value `times` times; with `reads_back` loads the register after each.
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
            return refused("the mapping is read-only".into());
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

    /// Stores `value`, converted to the type of the register's width.
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
            // SAFETY: within the mapping and aligned, as checked; mapped for writing, as `write`
            // checked, and no reference into it exists in this process.
            unsafe { place.write_volatile(value) };
            if reads_back {
                // SAFETY: as above; it is also mapped for reading.
                let _ = unsafe { place.read_volatile() };
            }
        }
        Ok(())
    }

    /// Size, bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reads a whole span `times` times and discards the values.
    ///
    /// # Errors
    /// The span is out of range.
    pub fn sweep(&self, span: &Span, times: u64) -> Result<(), SysError> {
        match span.width {
            Width::Bits8 => self.each::<u8>(span, times, |_| ()),
            Width::Bits16 => self.each::<u16>(span, times, |_| ()),
            Width::Bits32 => self.each::<u32>(span, times, |_| ()),
            Width::Bits64 => self.each::<u64>(span, times, |_| ()),
        }
    }

    /// Reads a whole span into `values`, which is cleared first.
    ///
    /// # Errors
    /// The span is out of range.
    pub fn read(&self, span: &Span, values: &mut Vec<u64>) -> Result<(), SysError> {
        values.clear();
        match span.width {
            Width::Bits8 => self.each::<u8>(span, 1, |value| values.push(value.into())),
            Width::Bits16 => self.each::<u16>(span, 1, |value| values.push(value.into())),
            Width::Bits32 => self.each::<u32>(span, 1, |value| values.push(value.into())),
            Width::Bits64 => self.each::<u64>(span, 1, |value| values.push(value)),
        }
    }

    /// One load per register of a span, in order; the whole span `times` times.
    #[inline]
    fn each<T: Copy>(&self, span: &Span, times: u64, mut take: impl FnMut(T)) -> Result<(), SysError> {
        span.check(self.bytes as u64).map_err(|what| SysError::Invalid { what })?;
        // SAFETY: the span starts within the mapping, as checked.
        let first = unsafe { self.base.as_ptr().add(span.offset as usize).cast::<T>() };
        // Repeated reads of one register are one loop, for any division into count and times.
        if span.is_fifo || span.count == 1 {
            for _ in 0..times.saturating_mul(span.count) {
                // SAFETY: aligned (the mapping starts on a page, the offset is a multiple of the
                // width) and within the mapping, as checked; readable as long as `self` lives.
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
        // SAFETY: this value owns the mapping and no reference to it remains.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
#[path = "register_tests.rs"]
mod tests;
