//! A master window of a VME bus through the kernel's driver: one system call per register, or one for many.
//!
//! VME is big-endian, and its bridges do not swap bytes: the first byte of a register is its most
//! significant one. Invariant: the previous settings of a configured window are restored.
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;

use keepup_sys::register::{Span, Width};
use keepup_sys::vme::{Master, master, set_master};

use super::{Method, RegisterError, Target, cannot_open, into_io_error};
use crate::vme::VmeWindow;

/// Largest transfer of one call of the driver, bytes (`PCI_BUF_SIZE` of vme_user.c, Linux 6.1).
const CALL_BYTES_MAX: u64 = 0x2_0000;

/// An open window.
struct Window {
    file: File,
    bytes: u64,
    /// Previous settings, if they were changed.
    before: Option<Master>,
}

impl Window {
    /// Reads at `offset`. The driver returns less than requested at the end of its window.
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
enum Kind {
    Single,
    Block,
}

/// An access method. All methods share the window.
struct Cycles {
    window: Rc<Window>,
    kind: Kind,
    data: Vec<u8>,
}

impl Cycles {
    fn each(&mut self, span: &Span, mut take: impl FnMut(u64)) -> std::io::Result<()> {
        span.check(self.window.bytes).map_err(std::io::Error::other)?;
        let width = span.width.bytes();
        let value = |bytes: &[u8]| bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
        match self.kind {
            Kind::Single => {
                let mut register = [0; 8];
                for index in 0..span.count {
                    let step = if span.is_fifo { 0 } else { index * width as u64 };
                    self.window.fill(&mut register[..width], span.offset + step)?;
                    take(value(&register[..width]));
                }
            }
            Kind::Block if span.is_fifo => {
                return Err(std::io::Error::other("a block reads consecutive registers, not a FIFO"));
            }
            Kind::Block => {
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
        match self.kind {
            Kind::Single => "single",
            Kind::Block => "block",
        }
    }

    fn bytes(&self) -> u64 {
        self.window.bytes
    }

    fn words_max(&self, width: Width) -> Option<u64> {
        match self.kind {
            Kind::Single => None,
            Kind::Block => Some(CALL_BYTES_MAX / width.bytes() as u64),
        }
    }

    fn read(&mut self, span: &Span) -> std::io::Result<()> {
        self.each(span, |_| ())
    }

    fn values(&mut self, span: &Span, values: &mut Vec<u64>) -> std::io::Result<()> {
        values.clear();
        self.each(span, |value| values.push(value))
    }

    fn second(&self) -> Option<Box<dyn Method>> {
        Some(Box::new(Self { window: Rc::clone(&self.window), kind: self.kind, data: Vec::new() }))
    }
}

/// All methods of a window, which is configured first if the user gives settings.
pub(super) fn window(
    target: &Target,
    path: &Path,
    wanted: Option<VmeWindow>,
) -> Result<Vec<Box<dyn Method>>, RegisterError> {
    let missing =
        "load the drivers of the bridge and of its windows (modprobe vme_user bus=0): ls /dev/bus/vme";
    let file = File::options().read(true).write(wanted.is_some()).open(path);
    let file = file.map_err(|source| cannot_open(target, path, source, missing))?;
    let wrong = |what: String, hint: &str| RegisterError::Span {
        target: target.to_string(),
        what,
        hint: hint.into(),
    };
    let settings = "append settings to the name: ,address=0x10000,size=0x1000,space=A32";
    let present = master(&file).map_err(|why| {
        wrong(
            format!("not a master window of vme_user: {}", into_io_error(why)),
            "use one of /dev/bus/vme/m0 to m3",
        )
    })?;
    let (bytes, before) = match wanted {
        Some(wanted) => {
            set_master(&file, &wanted.master()).map_err(|why| {
                let why = into_io_error(why);
                wrong(format!("the bridge refuses {wanted}: {why}"), "read the reason with dmesg")
            })?;
            // The bridge does not accept the empty settings of an unused window: disable it as it is.
            let before = match present.space {
                0 => Master { enable: 0, ..wanted.master() },
                _ => present,
            };
            (wanted.bytes, Some(before))
        }
        None if present.enable == 0 => return Err(wrong("the window is disabled".into(), settings)),
        None => (present.bytes, None),
    };
    let window = Rc::new(Window { file, bytes, before });
    let method =
        |kind| -> Box<dyn Method> { Box::new(Cycles { window: Rc::clone(&window), kind, data: Vec::new() }) };
    Ok([Kind::Single, Kind::Block].map(method).into())
}
