//! One system call per span: a device that moves it by DMA, or a file in its place.
use std::fs::File;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;

use keepup_sys::register::Span;

use super::{Method, RegisterError, Target, cannot_open};

/// Largest transfer, bytes.
const TRANSFER_BYTES_MAX: usize = 16 << 20;

/// A file or device that reads each span with one `pread`.
pub(super) struct Transfer {
    file: File,
    bytes: u64,
    buffer: Vec<u8>,
}

impl Transfer {
    pub(super) fn new(file: File, bytes: u64) -> Self {
        Self { file, bytes, buffer: Vec::new() }
    }
}

impl Method for Transfer {
    fn name(&self) -> &'static str {
        "transfer"
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&mut self, span: &Span) -> std::io::Result<()> {
        if span.is_fifo {
            return Err(std::io::Error::other("a transfer reads consecutive registers, not a FIFO"));
        }
        span.check(self.bytes).map_err(std::io::Error::other)?;
        let bytes = span.bytes().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX);
        if bytes > TRANSFER_BYTES_MAX {
            return Err(std::io::Error::other(format!(
                "{bytes} bytes exceed the largest transfer of {TRANSFER_BYTES_MAX}"
            )));
        }
        if self.buffer.len() < bytes {
            self.buffer.resize(bytes, 0);
        }
        self.file.read_exact_at(&mut self.buffer[..bytes], span.offset)
    }

    fn second(&self) -> Option<Box<dyn Method>> {
        Some(Box::new(Self::new(self.file.try_clone().ok()?, self.bytes)))
    }

    fn values(&mut self, span: &Span, values: &mut Vec<u64>) -> std::io::Result<()> {
        self.read(span)?;
        values.clear();
        let width = span.width.bytes();
        let registers = self.buffer.chunks_exact(width).take(span.count as usize);
        values.extend(registers.map(|bytes| {
            let mut register = [0; 8];
            register[..width].copy_from_slice(bytes);
            u64::from_le_bytes(register)
        }));
        Ok(())
    }
}

/// The method of a card's character device, or of a file in its place.
pub(super) fn device(target: &Target, path: &Path) -> Result<Vec<Box<dyn Method>>, RegisterError> {
    let cannot = |source| cannot_open(target, path, source, "list the driver's devices with ls /dev/xdma*");
    let file = File::open(path).map_err(cannot)?;
    let kind = file.metadata().map_err(cannot)?;
    // The size of a device is unknown.
    let bytes = if kind.file_type().is_char_device() { i64::MAX as u64 } else { kind.len() };
    Ok(vec![Box::new(Transfer::new(file, bytes))])
}
