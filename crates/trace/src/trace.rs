//! A trace that is being read: its files opened and unpacked, its format found, its requests given in order.
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use crate::error::{Complaint, Fault, TraceError};
use crate::format::{self, Format, Hints};
use crate::header::{Corrections, Origin, TraceDevice, TraceHeader};
use crate::native;
use crate::order::Ordered;
use crate::record::Record;
use crate::text::read_some;
use crate::units::Suspicion;

/// How much of a file is looked at to tell its format, bytes.
const HEAD_BYTES: usize = 64 << 10;
/// Files of one trace of blktrace: one for each processor.
const FILES_MAX: usize = 512;

/// A trace that is being read.
pub struct Trace {
    header: TraceHeader,
    paths: Vec<PathBuf>,
    ordered: Ordered,
}

type Source = Box<dyn Read + Send>;

impl Trace {
    /// Opens the trace in `paths`; several are files of blktrace, one for each processor. With `device`
    /// only its requests are given.
    ///
    /// # Errors
    /// When a file cannot be read, its format or units cannot be told, or `hints` do not go with it.
    pub fn open(paths: &[PathBuf], hints: &Hints, device: Option<&str>) -> Result<Self, TraceError> {
        if paths.len() > FILES_MAX {
            let what = format!("{} files are more than the {FILES_MAX} that are read", paths.len());
            return Err(TraceError::Usage { what, help: String::new() });
        }
        let mut sources: Vec<Source> = Vec::new();
        for path in paths {
            let failed = |source| TraceError::Io { action: "open", path: path.clone(), source };
            let file = File::open(path).map_err(failed)?;
            if file.metadata().map_err(failed)?.is_dir() {
                return Err(failed(std::io::ErrorKind::IsADirectory.into()));
            }
            sources.push(Box::new(file));
        }
        Self::read(paths, sources, hints, device)
    }

    /// Reads a trace from memory, under the name `name`.
    ///
    /// # Errors
    /// As [`Trace::open`].
    pub fn from_bytes(
        name: &str,
        bytes: Vec<u8>,
        hints: &Hints,
        device: Option<&str>,
    ) -> Result<Self, TraceError> {
        Self::read(&[PathBuf::from(name)], vec![Box::new(Cursor::new(bytes))], hints, device)
    }

    fn read(
        paths: &[PathBuf],
        sources: Vec<Source>,
        hints: &Hints,
        device: Option<&str>,
    ) -> Result<Self, TraceError> {
        let opened = open(paths, sources, hints, device);
        let (header, ordered) = opened.map_err(|(fault, paths)| fault.named(&paths))?;
        Ok(Self { header, paths: paths.to_vec(), ordered })
    }

    /// Adds the next requests to `records`, in ascending time; false when there are no more.
    ///
    /// # Errors
    /// At the first that cannot be used, with its line or byte.
    pub fn fill(&mut self, records: &mut Vec<Record>) -> Result<bool, TraceError> {
        self.ordered.fill(records).map_err(|fault| fault.named(&self.paths))
    }

    /// What the trace says of itself.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// The devices that were seen so far.
    pub fn devices(&self) -> &[TraceDevice] {
        self.ordered.devices()
    }

    /// What was put right or left out so far, and before by whoever wrote the file.
    pub fn corrections(&self) -> &Corrections {
        &self.ordered.batch.corrections
    }
}

/// The format of the file `path`, by its content.
///
/// # Errors
/// When it cannot be read, or fits none or several formats.
pub fn format_of(path: &Path) -> Result<Format, TraceError> {
    let failed = |source| TraceError::Io { action: "open", path: path.to_owned(), source };
    let mut file: Source = Box::new(File::open(path).map_err(failed)?);
    let mut head = read_head(&mut file).map_err(failed)?;
    if is_packed(&head) {
        let rest = Cursor::new(head).chain(file);
        let mut inside: Source = Box::new(flate2::read::MultiGzDecoder::new(rest));
        head = read_head(&mut inside).map_err(failed)?;
    }
    Format::of_content(&head).map_err(|fault| fault.named(&[path.to_owned()]))
}

/// Finds out the format of `sources` and opens them; a fault is told with the paths that it counts in.
fn open(
    paths: &[PathBuf],
    sources: Vec<Source>,
    hints: &Hints,
    device: Option<&str>,
) -> Result<(TraceHeader, Ordered), (Fault, Vec<PathBuf>)> {
    let all = |fault| (fault, paths.to_vec());
    let (mut files, mut format) = (Vec::new(), None);
    for (number, source) in sources.into_iter().enumerate() {
        let one = |fault| (fault, paths[number..=number].to_vec());
        let (head, file) = with_head(source).map_err(|e| one(Fault::Io(0, e)))?;
        let found = match hints.format {
            Some(format) => format,
            None => Format::of_content(&head).map_err(one)?,
        };
        found.check(hints).map_err(one)?;
        if let Some(fault) = format::asks_for_waits(found, hints, &head) {
            return Err(one(fault));
        }
        if number > 0 && (found != Format::Blktrace || format != Some(found)) {
            let what = "several files are one trace only when all are blktrace's, one for each processor";
            return Err(one(Fault::Usage(Complaint::new(what).help("give the files one by one"))));
        }
        format = Some(found);
        files.push(file);
    }
    let Some(format) = format else {
        return Err(all(Fault::Usage(Complaint::new("no file was given"))));
    };
    let facts = format.facts(hints);
    // Who has said what the unit is, is not asked.
    let is_looked_at = facts.is_blocks && hints.unit.is_none() && format != Format::Blktrace;
    let suspicion = is_looked_at.then_some(Suspicion { unit: facts.unit });
    if let (Format::Native, Some(file)) = (format, files.pop_if(|_| format == Format::Native)) {
        let (header, reader) = native::open(file).map_err(all)?;
        return Ok((header, Ordered::new(Box::new(reader), None, device)));
    }
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let header = TraceHeader {
        format,
        source: paths.iter().map(name).collect(),
        unit: facts.unit,
        clock: facts.clock,
        resolution_ns: facts.resolution_ns,
        level: facts.level,
        origin: Origin::Captured,
    };
    let reader = format::open(format, hints, files).map_err(all)?;
    Ok((header, Ordered::new(reader, suspicion, device)))
}

/// The begin of a source, unpacked where it is packed by gzip, and the whole of it again.
fn with_head(mut source: Source) -> std::io::Result<(Vec<u8>, Source)> {
    let head = read_head(&mut source)?;
    if !is_packed(&head) {
        return Ok((head.clone(), Box::new(Cursor::new(head).chain(source))));
    }
    let mut inside: Source = Box::new(flate2::read::MultiGzDecoder::new(Cursor::new(head).chain(source)));
    let head = read_head(&mut inside)?;
    Ok((head.clone(), Box::new(Cursor::new(head).chain(inside))))
}

/// Whether these are the first bytes of gzip (RFC 1952, section 2.3.1).
fn is_packed(head: &[u8]) -> bool {
    head.starts_with(&[0x1f, 0x8b])
}

fn read_head(source: &mut Source) -> std::io::Result<Vec<u8>> {
    let (mut head, mut length) = (vec![0; HEAD_BYTES], 0);
    while length < head.len() {
        match read_some(source, &mut head[length..])? {
            0 => break,
            read => length += read,
        }
    }
    head.truncate(length);
    Ok(head)
}

#[cfg(test)]
#[path = "trace_tests.rs"]
pub(crate) mod tests;
