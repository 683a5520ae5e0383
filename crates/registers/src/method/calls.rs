//! One system call per register: configuration space, I/O ports, and the target `ram`.
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use keepup_sys::register::Span;

use super::{Method, RegisterError, Target, cannot_open, function_directory};

/// Registers in a file, each read by one `pread` of its width.
pub(super) struct Calls {
    file: File,
    /// Offset of the first register in the file.
    base: u64,
    bytes: u64,
}

impl Calls {
    pub(super) fn new(file: File, bytes: u64) -> Self {
        Self::within(file, 0, bytes)
    }

    /// Registers at `base` of a file.
    pub(super) fn within(file: File, base: u64, bytes: u64) -> Self {
        Self { file, base, bytes }
    }

    fn each(&self, span: &Span, mut take: impl FnMut(u64)) -> std::io::Result<()> {
        span.check(self.bytes).map_err(std::io::Error::other)?;
        let width = span.width.bytes();
        let mut register = [0; 8];
        for index in 0..span.count {
            let step = if span.is_fifo { 0 } else { index * width as u64 };
            self.file.read_exact_at(&mut register[..width], self.base + span.offset + step)?;
            take(u64::from_le_bytes(register));
        }
        Ok(())
    }
}

impl Method for Calls {
    fn name(&self) -> &'static str {
        "pread"
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&mut self, span: &Span) -> std::io::Result<()> {
        self.each(span, |_| ())
    }

    fn values(&mut self, span: &Span, values: &mut Vec<u64>) -> std::io::Result<()> {
        values.clear();
        self.each(span, |value| values.push(value))
    }

    fn second(&self) -> Option<Box<dyn Method>> {
        let file = self.file.try_clone().ok()?;
        Some(Box::new(Self { file, base: self.base, bytes: self.bytes }))
    }
}

/// The configuration space of a function; only its first 64 bytes without root.
pub(super) fn config_space(
    target: &Target,
    root: &Path,
    function: &str,
) -> Result<Vec<Box<dyn Method>>, RegisterError> {
    let path = function_directory(target, root, function)?.join("config");
    let cannot = |source| cannot_open(target, &path, source, "the kernel offers no configuration space");
    let file = File::open(&path).map_err(cannot)?;
    // The size of the file is that of the space, of which unprivileged users can read only a part.
    let whole = file.metadata().map_err(cannot)?.len();
    let mut probe = [0; 1];
    let has_all = whole > 64 && file.read_exact_at(&mut probe, whole - 1).is_ok();
    Ok(vec![Box::new(Calls::new(file, if has_all { whole } else { whole.min(64) }))])
}
