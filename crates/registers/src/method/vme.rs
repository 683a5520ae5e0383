//! A master window of a VME bus through the kernel's driver: a call for each register, or one for many.
//!
//! VME is big-endian, and its bridges leave bytes where they are: the first byte of a register is its
//! highest. Invariant: a window that was set is put back as it was.
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;

use keepup_sys::register::{Span, Width};
use keepup_sys::vme::{Master, master, set_master};

use super::{Method, RegisterError, Target, answer, cannot_open};
use crate::vme::VmeWindow;

/// Most that one call of the driver moves, bytes (`PCI_BUF_SIZE` of vme_user.c, Linux 6.1).
const CALL_BYTES_MAX: u64 = 0x2_0000;

/// A window that is open.
struct Window {
    file: File,
    bytes: u64,
    /// As it was, if it was changed.
    before: Option<Master>,
}

impl Window {
    /// One call; the driver gives less than it was asked for where its window ends.
    fn fill(&self, data: &mut [u8], offset: u64) -> std::io::Result<()> {
        self.file.read_exact_at(data, offset)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = set_master(&self.file, before);
        }
    }
}

#[derive(Clone, Copy)]
enum By {
    Single,
    Block,
}

/// One way of reading a window that all ways share.
struct Cycles {
    window: Rc<Window>,
    by: By,
    data: Vec<u8>,
}

impl Cycles {
    fn each(&mut self, span: &Span, mut take: impl FnMut(u64)) -> std::io::Result<()> {
        span.check(self.window.bytes).map_err(std::io::Error::other)?;
        let width = span.width.bytes();
        let value = |bytes: &[u8]| bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
        match self.by {
            By::Single => {
                let mut register = [0; 8];
                for index in 0..span.count {
                    let step = if span.is_fifo { 0 } else { index * width as u64 };
                    self.window.fill(&mut register[..width], span.offset + step)?;
                    take(value(&register[..width]));
                }
            }
            By::Block if span.is_fifo => {
                return Err(std::io::Error::other("a block reads one register behind the other, not a FIFO"));
            }
            By::Block => {
                let (end, mut offset) = (span.offset + span.bytes().unwrap_or_default(), span.offset);
                while offset < end {
                    let part = (end - offset).min(CALL_BYTES_MAX) as usize;
                    if self.data.len() < part {
                        self.data.resize(part, 0);
                    }
                    self.window.fill(&mut self.data[..part], offset)?;
                    self.data[..part].chunks_exact(width).for_each(|bytes| take(value(bytes)));
                    offset += part as u64;
                }
            }
        }
        Ok(())
    }
}

impl Method for Cycles {
    fn name(&self) -> &'static str {
        match self.by {
            By::Single => "single",
            By::Block => "block",
        }
    }

    fn bytes(&self) -> u64 {
        self.window.bytes
    }

    fn words_max(&self, width: Width) -> Option<u64> {
        match self.by {
            By::Single => None,
            By::Block => Some(CALL_BYTES_MAX / width.bytes() as u64),
        }
    }

    fn read(&mut self, span: &Span) -> std::io::Result<()> {
        self.each(span, |_| ())
    }

    fn values(&mut self, span: &Span, values: &mut Vec<u64>) -> std::io::Result<()> {
        values.clear();
        self.each(span, |value| values.push(value))
    }
}

/// All ways of reading a window, which is set first where the user says to what.
pub(super) fn window(
    target: &Target,
    path: &Path,
    wanted: Option<VmeWindow>,
) -> Result<Vec<Box<dyn Method>>, RegisterError> {
    let missing = "modprobe vme_user bus=0, with a bridge; ls /dev/bus/vme lists its windows";
    let file = File::options().read(true).write(wanted.is_some()).open(path);
    let file = file.map_err(|source| cannot_open(target, path, source, missing))?;
    let wrong = |what: String, hint: &str| RegisterError::Span {
        target: target.to_string(),
        what,
        hint: hint.into(),
    };
    let settings = "name its settings behind it: ,address=0x10000,size=0x1000,space=A32";
    let present = master(&file).map_err(|why| {
        wrong(format!("it is no master window of vme_user: {}", answer(why)), "/dev/bus/vme/m0 to m3 are")
    })?;
    let (bytes, before) = match wanted {
        Some(wanted) => {
            set_master(&file, &wanted.master()).map_err(|why| {
                let why = answer(why);
                wrong(format!("the bridge refuses {wanted}: {why}"), "dmesg tells what it does not have")
            })?;
            // One that was never set has no settings that the bridge would take: it is closed as it is.
            let before = match present.space {
                0 => Master { enable: 0, ..wanted.master() },
                _ => present,
            };
            (wanted.bytes, Some(before))
        }
        None if present.enable == 0 => return Err(wrong("the window is closed".into(), settings)),
        None => (present.bytes, None),
    };
    let window = Rc::new(Window { file, bytes, before });
    let way =
        |by| -> Box<dyn Method> { Box::new(Cycles { window: Rc::clone(&window), by, data: Vec::new() }) };
    Ok([By::Single, By::Block].map(way).into())
}
