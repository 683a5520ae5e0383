//! Conversion of traces to the native format or fio's iolog, version 3.
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use keepup_sys::output::finish;
use serde::Serialize;

use super::batch::NAME_BYTES_MAX;
use super::header::TraceDevice;
use super::native::NativeWriter;
use super::record::{Flags, Operation, Record};
use super::{Corrections, Trace, TraceError};

/// Output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// keepup's native format, which is lossless.
    Native,
    /// fio's iolog, version 3.
    Iolog3,
}

/// Totals of a conversion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Converted {
    /// Requests written.
    pub records: u64,
    /// Devices or files.
    pub devices: u64,
    /// Corrections.
    pub corrections: Corrections,
    /// Information that the new format cannot represent.
    pub lost: Vec<String>,
}

const OUT_BYTES: usize = 256 << 10;

/// Writes `trace` to the new file `path`. On failure, the incomplete file is removed.
///
/// # Errors
/// The trace cannot be read, or the file exists or cannot be written.
pub fn convert(trace: &mut Trace, target: Target, path: &Path) -> Result<Converted, TraceError> {
    // Read first, so that an invalid trace creates no file.
    let mut records = Vec::new();
    let has_more = trace.fill(&mut records)?;
    let file = create(path)?;
    let mut out = BufWriter::with_capacity(OUT_BYTES, file);
    let outcome = write(trace, target, path, (records, has_more), &mut out).and_then(|converted| {
        let failed = |source| TraceError::Io { action: "write", path: path.to_owned(), source };
        finish(out).map_err(failed)?;
        Ok(converted)
    });
    if outcome.is_err() {
        // A failed removal must not hide the original error.
        drop(std::fs::remove_file(path));
    }
    outcome
}

/// Creates the new file `path`.
pub(super) fn create(path: &Path) -> Result<File, TraceError> {
    OpenOptions::new().write(true).create_new(true).open(path).map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => TraceError::Usage {
            what: format!("cannot write {}: the file exists", path.display()),
            help: "choose another name, or remove the file".into(),
        },
        _ => TraceError::Io { action: "write", path: path.to_owned(), source: e },
    })
}

fn write(
    trace: &mut Trace,
    target: Target,
    path: &Path,
    (mut records, mut has_more): (Vec<Record>, bool),
    out: impl Write,
) -> Result<Converted, TraceError> {
    let failed = |source| TraceError::Io { action: "write", path: path.to_owned(), source };
    let mut writer = match target {
        Target::Native => Writer::Native(NativeWriter::new(out, trace.header()).map_err(failed)?),
        Target::Iolog3 => Writer::Iolog(IologWriter::new(out).map_err(failed)?),
    };
    let (mut devices, mut written) = (0, 0);
    loop {
        for device in &trace.devices()[devices..] {
            writer.device(device).map_err(failed)?;
            devices += 1;
        }
        for record in &records {
            writer.record(record).map_err(failed)?;
        }
        written += records.len() as u64;
        records.clear();
        if !has_more {
            break;
        }
        has_more = trace.fill(&mut records)?;
    }
    let corrections = *trace.corrections();
    let lost = match writer {
        Writer::Native(writer) => {
            writer.finish(&corrections).map_err(failed)?;
            Vec::new()
        }
        Writer::Iolog(writer) => writer.finish().map_err(failed)?,
    };
    Ok(Converted { records: written, devices: devices as u64, corrections, lost })
}

enum Writer<W: Write> {
    Native(NativeWriter<W>),
    Iolog(IologWriter<W>),
}

impl<W: Write> Writer<W> {
    fn device(&mut self, device: &TraceDevice) -> io::Result<()> {
        match self {
            Self::Native(writer) => writer.device(device),
            Self::Iolog(writer) => writer.device(device),
        }
    }

    #[inline]
    fn record(&mut self, record: &Record) -> io::Result<()> {
        match self {
            Self::Native(writer) => writer.record(record),
            Self::Iolog(writer) => writer.record(record),
        }
    }
}

/// Writer of fio's iolog, version 3, for fio 3.31 and later: one line per request, times in us from the
/// first.
pub struct IologWriter<W: Write> {
    out: W,
    names: Vec<String>,
    /// Whether a file's `add` and `open` were written.
    is_open: Vec<bool>,
    line: Vec<u8>,
    last_us: u64,
    completions: u64,
    fractions: u64,
    flagged: u64,
    renamed: Vec<(String, String)>,
}

impl<W: Write> IologWriter<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// A failed write.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(b"fio version 3 iolog\n")?;
        Ok(Self {
            out,
            names: Vec::new(),
            is_open: Vec::new(),
            line: Vec::new(),
            last_us: 0,
            completions: 0,
            fractions: 0,
            flagged: 0,
            renamed: Vec::new(),
        })
    }

    /// Adds a file. fio's names have no whitespace and at most 256 bytes.
    ///
    /// # Errors
    /// Two equal names after replacement of whitespace.
    pub fn device(&mut self, device: &TraceDevice) -> io::Result<()> {
        let mut name = device.name.replace(|c: char| c.is_whitespace() || c.is_control(), "_");
        while name.len() > NAME_BYTES_MAX {
            name.pop();
        }
        if name.is_empty() || self.names.contains(&name) {
            let what = format!("two devices would have the name {name:?} in an iolog");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        if name != device.name {
            self.renamed.push((device.name.clone(), name.clone()));
        }
        self.names.push(name);
        self.is_open.push(false);
        Ok(())
    }

    /// Adds a request.
    ///
    /// # Errors
    /// A failed write, or an unknown device.
    pub fn record(&mut self, record: &Record) -> io::Result<()> {
        let device = usize::from(record.device);
        let Some(name) = self.names.get(device) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a request has an unknown device"));
        };
        let action = match record.operation {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Flush => "sync",
            Operation::Discard => "trim",
        };
        let us = record.issue_ns / 1000;
        self.fractions += u64::from(!record.issue_ns.is_multiple_of(1000));
        self.completions += u64::from(record.completion_ns().is_some());
        self.flagged += u64::from(record.flags != Flags::NONE);
        self.last_us = us;
        self.line.clear();
        if !std::mem::replace(&mut self.is_open[device], true) {
            for verb in ["add", "open"] {
                put_action(&mut self.line, us, name, verb);
                self.line.push(b'\n');
            }
        }
        put_action(&mut self.line, us, name, action);
        for number in [record.offset, u64::from(record.bytes)] {
            self.line.push(b' ');
            put_number(&mut self.line, number);
        }
        self.line.push(b'\n');
        self.out.write_all(&self.line)
    }

    /// Closes all files. Returns what the format cannot represent.
    ///
    /// # Errors
    /// A failed write.
    pub fn finish(mut self) -> io::Result<Vec<String>> {
        for (name, _) in self.names.iter().zip(&self.is_open).filter(|(_, is_open)| **is_open) {
            self.line.clear();
            put_action(&mut self.line, self.last_us, name, "close");
            self.line.push(b'\n');
            self.out.write_all(&self.line)?;
        }
        self.out.flush()?;
        let counts = [
            (self.completions, "completion times"),
            (self.fractions, "fractions of 1 us"),
            (self.flagged, "flags such as FUA"),
        ];
        let mut lost: Vec<String> = counts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{what} of {count} requests"))
            .collect();
        let renamed = |(old, new): &(String, String)| format!("the name {old:?}, replaced by {new:?}");
        lost.extend(self.renamed.iter().map(renamed));
        Ok(lost)
    }
}

fn put_action(line: &mut Vec<u8>, us: u64, name: &str, action: &str) {
    put_number(line, us);
    line.push(b' ');
    line.extend_from_slice(name.as_bytes());
    line.push(b' ');
    line.extend_from_slice(action.as_bytes());
}

/// Appends a decimal number.
#[inline]
fn put_number(line: &mut Vec<u8>, mut number: u64) {
    let (mut digits, mut at) = ([0; 20], 20);
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    line.extend_from_slice(&digits[at..]);
}

/// Output format for a file name: iolog for `.iolog` and `.log`, otherwise native.
pub fn target_for(path: &Path) -> Target {
    match PathBuf::from(path).extension().and_then(|extension| extension.to_str()) {
        Some("iolog" | "log") => Target::Iolog3,
        _ => Target::Native,
    }
}

#[cfg(test)]
#[path = "convert_tests.rs"]
mod tests;
