//! One call for a whole span: a device that moves it by DMA, or a file in its place.
use std::fs::File;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;

use keepup_sys::register::Span;

use super::{Method, RegisterError, Target, cannot_open};

/// Most that is asked for with one call, bytes.
const TRANSFER_BYTES_MAX: usize = 16 << 20;

/// Spans that are read with one `pread` each.
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
            return Err(std::io::Error::other("a transfer reads one register behind the other, not a FIFO"));
        }
        span.check(self.bytes).map_err(std::io::Error::other)?;
        let bytes = span.bytes().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX);
        if bytes > TRANSFER_BYTES_MAX {
            return Err(std::io::Error::other(format!(
                "{bytes} bytes: more than {TRANSFER_BYTES_MAX} at once"
            )));
        }
        if self.buffer.len() < bytes {
            self.buffer.resize(bytes, 0);
        }
        self.file.read_exact_at(&mut self.buffer[..bytes], span.offset)
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

/// A character device of a card, or a file that stands for one.
pub(super) fn device(target: &Target, path: &Path) -> Result<Vec<Box<dyn Method>>, RegisterError> {
    let cannot = |source| cannot_open(target, path, source, "ls /dev/xdma* lists what the driver offers");
    let file = File::open(path).map_err(cannot)?;
    let kind = file.metadata().map_err(cannot)?;
    // A device does not say how far it reaches.
    let bytes = if kind.file_type().is_char_device() { i64::MAX as u64 } else { kind.len() };
    Ok(vec![Box::new(Transfer::new(file, bytes))])
}
