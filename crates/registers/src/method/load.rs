//! Loads from mapped registers. The processor waits for each.
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::rc::Rc;

use keepup_sys::SysError;
use keepup_sys::register::{RegisterMap, Span, Width};

use super::store::{RegisterWrite, Stores};
use super::{Method, RegisterError, Target, cannot_open, function_directory, into_io_error};

/// Mapped registers.
pub(super) struct Loads {
    name: &'static str,
    map: Rc<RegisterMap>,
    /// Offset of the first register in the mapping.
    base: u64,
}

impl Loads {
    /// Registers at `base` of a mapping.
    pub(super) fn within(map: RegisterMap, base: u64, name: &'static str) -> Self {
        Self { name, map: Rc::new(map), base }
    }

    /// Checks a span and returns it relative to the mapping.
    fn span_in_map(&self, span: &Span) -> Result<Span, SysError> {
        span.check(self.bytes()).map_err(|what| SysError::Invalid { what })?;
        Ok(Span { offset: span.offset + self.base, ..*span })
    }
}

impl Method for Loads {
    fn name(&self) -> &'static str {
        self.name
    }

    fn bytes(&self) -> u64 {
        (self.map.bytes() as u64).saturating_sub(self.base)
    }

    fn is_load_loop(&self) -> bool {
        true
    }

    fn read(&mut self, span: &Span) -> std::io::Result<()> {
        self.repeat(span, 1)
    }

    fn repeat(&mut self, span: &Span, times: u64) -> std::io::Result<()> {
        self.span_in_map(span).and_then(|span| self.map.sweep(&span, times)).map_err(into_io_error)
    }

    fn values(&mut self, span: &Span, values: &mut Vec<u64>) -> std::io::Result<()> {
        self.span_in_map(span).and_then(|span| self.map.read(&span, values)).map_err(into_io_error)
    }

    fn second(&self) -> Option<Box<dyn Method>> {
        Some(Box::new(Self { name: self.name, map: Rc::clone(&self.map), base: self.base }))
    }

    fn write_methods(&self, write: RegisterWrite, width: Width) -> std::io::Result<Vec<Box<dyn Method>>> {
        if !self.map.is_writable() {
            return Ok(Vec::new());
        }
        let span = Span { offset: write.offset, count: 1, width, is_fifo: true };
        let offset = self.span_in_map(&span).map_err(into_io_error)?.offset;
        let both = Stores::both(&self.map, offset, width, write.value);
        Ok(both.map(|stores| -> Box<dyn Method> { Box::new(stores) }).into())
    }
}

/// A file in memory, filled with random bytes.
pub(super) fn memory(bytes: u64) -> std::io::Result<File> {
    let file = rustix::fs::memfd_create("keepup-registers", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = File::from(file);
    let mut data = vec![0; bytes as usize];
    fastrand::Rng::with_seed(1).fill(&mut data);
    file.write_all(&data)?;
    Ok(file)
}

/// The mapping of a whole file as a method.
pub(super) fn mapped(
    target: &Target,
    file: File,
    bytes: u64,
    name: &'static str,
    writes: bool,
) -> Result<Vec<Box<dyn Method>>, RegisterError> {
    let new = if writes { RegisterMap::writable } else { RegisterMap::new };
    let map = new(file.as_fd(), 0, bytes as usize).map_err(|why| RegisterError::Access {
        target: target.to_string(),
        method: name.into(),
        source: into_io_error(why),
    })?;
    Ok(vec![Box::new(Loads::within(map, 0, name))])
}

/// All methods of a BAR: its mapping, writable if `writes`; its write-combining mapping, if the function
/// offers one; or system calls, if it is a range of I/O ports.
pub(super) fn bar(
    target: &Target,
    root: &Path,
    function: &str,
    bar: u8,
    writes: bool,
) -> Result<Vec<Box<dyn Method>>, RegisterError> {
    let directory = function_directory(target, root, function)?;
    let path = directory.join(format!("resource{bar}"));
    let cannot =
        |path: &Path, source| cannot_open(target, path, source, "list the function's BARs with lspci -v");
    if let Err(why) = std::fs::metadata(&path) {
        return Err(cannot(&path, why));
    }
    let enable = std::fs::read_to_string(directory.join("enable")).unwrap_or_default();
    if enable.trim() == "0" {
        return Err(RegisterError::Identity {
            target: target.to_string(),
            what: "the function is disabled and reads as all ones".into(),
            hint: format!("echo 1 | sudo tee {}", directory.join("enable").display()),
        });
    }
    let open = |path: &Path, writes| {
        File::options().read(true).write(writes).open(path).map_err(|why| cannot(path, why))
    };
    let writes = writes && !is_ports(&directory, bar);
    let file = open(&path, writes)?;
    let bytes = file.metadata().map_err(|why| cannot(&path, why))?.len();
    if is_ports(&directory, bar) {
        return Ok(vec![Box::new(super::calls::Calls::new(file, bytes))]);
    }
    let mut all = mapped(target, file, bytes, "mmap", writes)?;
    // The processor may combine and prefetch these reads: suitable for a card's memory, not for registers.
    let combining = directory.join(format!("resource{bar}_wc"));
    if combining.exists() {
        all.extend(mapped(target, open(&combining, false)?, bytes, "mmap-wc", false)?);
    }
    Ok(all)
}

/// Whether a BAR is a range of I/O ports (IORESOURCE_IO of linux/ioport.h), according to the file `resource`.
fn is_ports(directory: &Path, bar: u8) -> bool {
    const IORESOURCE_IO: u64 = 0x100;
    let text = std::fs::read_to_string(directory.join("resource")).unwrap_or_default();
    let flags = text.lines().nth(bar.into()).and_then(|line| {
        u64::from_str_radix(line.split_ascii_whitespace().nth(2)?.trim_start_matches("0x"), 16).ok()
    });
    flags.is_some_and(|flags| flags & IORESOURCE_IO != 0)
}
