//! Reads a trace: opens and decompresses its files, detects the format, and returns requests in order.
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use crate::error::{ParseError, ReadError, TraceError};
use crate::format::{self, Hints};
use crate::gzip::{GzipReader, is_gzip};
use crate::header::{Corrections, Format, Origin, TraceDevice, TraceHeader};
use crate::native;
use crate::order::Sorter;
use crate::record::Record;
use crate::stages::StageTimes;
use crate::text::read_some;
use crate::units::UnitCheck;

/// Size of a file's head for format detection, bytes.
const HEAD_BYTES: usize = 64 << 10;
/// Byte order mark of a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Largest number of files; blktrace writes one per processor.
const FILES_MAX: usize = 512;

/// Reader of a trace.
pub struct Trace {
    header: TraceHeader,
    paths: Vec<PathBuf>,
    sorter: Sorter,
}

type Source = Box<dyn Read + Send>;

impl Trace {
    /// Opens the trace in `paths`; several files must be those of blktrace, one per processor. With `device`,
    /// returns only requests to that device.
    ///
    /// # Errors
    /// An unreadable file, an unknown or ambiguous format or unit, or `hints` that do not apply.
    pub fn open(paths: &[PathBuf], hints: &Hints, device: Option<&str>) -> Result<Self, TraceError> {
        if paths.len() > FILES_MAX {
            let what = format!("cannot read {} files as one trace: the limit is {FILES_MAX}", paths.len());
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
        let (header, sorter, paths) = opened.map_err(|(error, paths)| error.with_paths(&paths))?;
        Ok(Self { header, paths, sorter })
    }

    /// Appends the next requests to `records` in ascending time; false at the end.
    ///
    /// # Errors
    /// An invalid request, with its line or byte.
    pub fn fill(&mut self, records: &mut Vec<Record>) -> Result<bool, TraceError> {
        self.sorter.fill(records).map_err(|error| error.with_paths(&self.paths))
    }

    /// Header of the trace.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// Devices so far.
    pub fn devices(&self) -> &[TraceDevice] {
        self.sorter.devices()
    }

    /// Times before and after the dispatch of the requests so far; `None` if the trace has no dispatches.
    pub fn stages(&self) -> Option<StageTimes> {
        self.sorter.stages.times()
    }

    /// Corrections so far, including those recorded in a native trace.
    pub fn corrections(&self) -> &Corrections {
        &self.sorter.batch.corrections
    }
}

/// Detects the format of a file from its content.
///
/// # Errors
/// An unreadable file, or one that matches no format or several.
pub fn detect_format(path: &Path) -> Result<Format, TraceError> {
    let failed = |source| TraceError::Io { action: "open", path: path.to_owned(), source };
    let file: Source = Box::new(File::open(path).map_err(failed)?);
    let (head, _) = with_head(file).map_err(failed)?;
    Format::detect(&head).map_err(|error| error.with_paths(&[path.to_owned()]))
}

/// Header and requests of a trace, and the paths of its files that are not empty.
type Opened = (TraceHeader, Sorter, Vec<PathBuf>);

/// Detects the format of `sources` and opens them. Returns also the paths of those that are not empty. An
/// error is returned with the paths that its file number refers to.
fn open(
    paths: &[PathBuf],
    sources: Vec<Source>,
    hints: &Hints,
    device: Option<&str>,
) -> Result<Opened, (ReadError, Vec<PathBuf>)> {
    let all = |error| (error, paths.to_vec());
    let (mut files, mut format, mut empty_files) = (Vec::new(), None, 0);
    let (several, mut used) = (sources.len() > 1, Vec::new());
    for (number, source) in sources.into_iter().enumerate() {
        let one = |error| (error, paths[number..=number].to_vec());
        let (head, file) = with_head(source).map_err(|e| one(ReadError::Io(0, e)))?;
        // blktrace writes an empty file for a processor without requests.
        if several && head.is_empty() {
            empty_files += 1;
            continue;
        }
        let found = match hints.format {
            Some(format) => format,
            None => Format::detect(&head).map_err(one)?,
        };
        found.check(hints).map_err(one)?;
        if let Some(error) = format::ambiguous_waits(found, hints, &head) {
            return Err(one(error));
        }
        if several && (found != Format::Blktrace || format.is_some_and(|format| format != found)) {
            let what = "cannot read several files as one trace: only blktrace writes one file per processor";
            return Err(one(ReadError::Usage(ParseError::new(what).help("read the files one by one"))));
        }
        format = Some(found);
        files.push(file);
        used.push(paths[number].clone());
    }
    let Some(format) = format else {
        let what = if several { "all of its files are empty" } else { "no file was given" };
        return Err(all(ReadError::Usage(ParseError::new(what))));
    };
    let properties = format.properties(hints);
    let needs_unit_check = properties.is_blocks && hints.unit.is_none() && format != Format::Blktrace;
    let unit_check = needs_unit_check.then_some(UnitCheck { unit: properties.unit });
    if let (Format::Native, Some(file)) = (format, files.pop_if(|_| format == Format::Native)) {
        let (header, reader) = native::open(file).map_err(all)?;
        return Ok((header, Sorter::new(Box::new(reader), None, device), used));
    }
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let header = TraceHeader {
        format,
        source: paths.iter().map(name).collect(),
        unit: properties.unit,
        clock: properties.clock,
        resolution_ns: properties.resolution_ns,
        level: properties.level,
        origin: Origin::Captured,
    };
    let reader = match format::open(format, hints, files) {
        Ok(reader) => reader,
        Err(error) => return Err((error, used)),
    };
    let mut sorter = Sorter::new(reader, unit_check, device);
    sorter.batch.corrections.empty_files = empty_files;
    Ok((header, sorter, used))
}

/// Returns the head of a source, decompressed if it is gzipped, and the complete source.
fn with_head(mut source: Source) -> std::io::Result<(Vec<u8>, Source)> {
    let mut head = read_head(&mut source)?;
    if is_gzip(&head) {
        source = Box::new(GzipReader::new(Cursor::new(head).chain(source)));
        head = read_head(&mut source)?;
    }
    // Programs for spreadsheets write a byte order mark in front of a text.
    if head.starts_with(BYTE_ORDER_MARK) {
        head.drain(..BYTE_ORDER_MARK.len());
    }
    Ok((head.clone(), Box::new(Cursor::new(head).chain(source))))
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
