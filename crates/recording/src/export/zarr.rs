//! References for Zarr: one JSON file with the location of each event in the segments, after the
//! specification of kerchunk (<https://fsspec.github.io/kerchunk/spec.html>, version 1).
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use keepup_stream::ledger::Gap;
use keepup_stream::wire::{ElementType, StreamInfo};
use keepup_sys::output::finish;

use super::{Exported, create, gaps_of, missing, require_sealed, wants};
use crate::error::RecordingError;
use crate::files::{open_regular, read_fully_at};
use crate::layout::{MESSAGE_HEADER, SECTOR, parse_block_sector};
use crate::merged::{About, MergedRecording};
use crate::ranges::Seen;
use crate::seal::{IndexedBlock, SegmentLookup, link_names};
use crate::volume::Segment;

/// Names of the arrays of a stream, as in the HDF5 view.
const DATA: &str = "data";
const VALID: &str = "valid";
/// Rows of a chunk of `valid`.
const VALID_ROWS: u64 = 4096;

/// Writes references to the streams that have a shape, are not compressed, and have only events
/// of that size, to the file `path`, which must not exist. Each is a group with the arrays `data` and
/// `valid`: row n is event n, or zeros if that is missing. The file has the rows of `valid` itself.
///
/// # Errors
/// A segment is unsealed or cannot be read, or `path` cannot be written.
pub fn zarr_reference<'a>(
    recording: impl Into<MergedRecording<'a>>,
    stream: Option<u32>,
    path: &Path,
) -> Result<Exported, RecordingError> {
    let recording = &recording.into();
    require_sealed(recording)?;
    let streams = recording.streams();
    let names = group_names(streams.iter().map(|(&id, stream)| (id, stream.name.as_str())));
    let mut out = BufWriter::with_capacity(1 << 20, create(path)?);
    let mut exported = Exported { missing: missing(recording, stream)?, ..Exported::default() };
    let failed = |error| RecordingError::io("write", path)(error);
    let opening = r#"{"version": 1, "refs": {".zgroup": "{\"zarr_format\": 2}""#;
    let about = json(&about(recording.about()).to_string());
    write!(out, "{opening},\n\".zattrs\": {about}").map_err(failed)?;
    for (&id, name) in names.iter().filter(|(id, _)| wants(stream, **id)) {
        let Some(&info) = streams.get(&id) else { continue };
        match Array::new(recording, info, &exported.missing)? {
            Some(array) => {
                array.put(name, &mut out, &mut exported)?.map_err(failed)?;
                exported.streams += 1;
            }
            None => exported.left_out += 1,
        }
    }
    out.write_all(b"}}\n").and_then(|()| finish(out)).map_err(failed)?;
    Ok(exported)
}

/// Name of the group of each stream: that of its HDF5 group, unless Zarr cannot read it.
fn group_names<'a>(streams: impl Iterator<Item = (u32, &'a str)>) -> BTreeMap<u32, String> {
    let mut names = link_names(streams);
    for (id, name) in &mut names {
        // zarr takes a backslash for a slash, and fsspec the others for a pattern.
        let is_reserved = name.starts_with(".z") || name.starts_with("__");
        if is_reserved || name.contains(['\\', '*', '?', '[']) {
            *name = format!("stream-{id}");
        }
    }
    names
}

/// Name and metadata of the recording.
fn about(recording: &About) -> serde_json::Value {
    let mut about = serde_json::json!({ "name": recording.name });
    if let Some(run) = recording.run {
        about["run"] = run.into();
    }
    if !recording.metadata.is_empty() {
        about["metadata"] = serde_json::json!(recording.metadata);
    }
    about
}

/// A stream as an array with one row per event.
struct Array<'a> {
    recording: &'a MergedRecording<'a>,
    info: &'a StreamInfo,
    event_bytes: u64,
    rows: u64,
}

impl<'a> Array<'a> {
    /// `None` if the stream's events do not all have one shape.
    fn new(
        recording: &'a MergedRecording<'a>,
        info: &'a StreamInfo,
        missing: &[Gap],
    ) -> Result<Option<Self>, RecordingError> {
        let Some(event_bytes) = info.event_bytes().filter(|_| info.compression.is_none()) else {
            return Ok(None);
        };
        let gaps = missing.iter().filter(|gap| gap.stream == info.id);
        let mut rows = gaps.map(|gap| gap.first_sequence.saturating_add(gap.events)).max().unwrap_or(0);
        for (_, segment) in recording.segments() {
            let lookup = SegmentLookup::open(segment)?;
            if let Some(summary) = lookup.streams.iter().find(|s| s.stream == info.id) {
                if !summary.is_array {
                    return Ok(None);
                }
                rows = summary.last_sequence.saturating_add(1).max(rows);
            }
        }
        Ok(Some(Self { recording, info, event_bytes, rows }))
    }

    fn put(
        &self,
        name: &str,
        out: &mut dyn Write,
        exported: &mut Exported,
    ) -> Result<io::Result<()>, RecordingError> {
        let mut events = 0;
        let zeros = ".0".repeat(self.info.shape.len());
        let mut seen = Seen::default();
        for (_, segment) in self.recording.segments() {
            let lookup = SegmentLookup::open(segment)?;
            let Some(summary) = lookup.streams.iter().find(|s| s.stream == self.info.id) else { continue };
            let opened = open_regular(&segment.path);
            let blocks_file = opened.map_err(RecordingError::open("open the segment", &segment.path))?;
            let file = std::path::absolute(&segment.path).unwrap_or_else(|_| segment.path.clone());
            let file = json(&file.to_string_lossy());
            for block in lookup.blocks_of(summary, segment)? {
                self.check(&blocks_file, segment, block)?;
                for row in seen.add(block.first_sequence..block.end()).into_iter().flatten() {
                    let record_bytes = self.event_bytes + MESSAGE_HEADER as u64;
                    let at = block.offset + SECTOR as u64 + (row - block.first_sequence) * record_bytes;
                    let key = json(&format!("{name}/{DATA}/{row}{zeros}"));
                    if let Err(error) = write!(out, ",\n{key}: [{file}, {at}, {}]", self.event_bytes) {
                        return Ok(Err(error));
                    }
                    events += 1;
                }
            }
        }
        exported.events += events;
        exported.payload_bytes =
            exported.payload_bytes.saturating_add(events.saturating_mul(self.event_bytes));
        let head = self.put_head(name, events, &exported.missing, out);
        Ok(head.and_then(|()| self.put_valid(name, &seen, out)))
    }

    /// Checks that the block exists and has events of the expected size: programs that follow the
    /// references do not check.
    fn check(&self, file: &File, segment: &Segment, block: IndexedBlock) -> Result<(), RecordingError> {
        let (path, offset) = (&segment.path, block.offset);
        let mut sector = [0; SECTOR];
        let read = read_fully_at(file, &mut sector, offset).map_err(RecordingError::io("read", path))?;
        let found = parse_block_sector(&sector[..read]).map_err(RecordingError::layout(path, offset))?.header;
        let is_it = found.stream == self.info.id && IndexedBlock::new(offset, &found) == block;
        if is_it && found.payload_bytes == u64::from(block.events).saturating_mul(self.event_bytes) {
            return Ok(());
        }
        let what = "the block here is another than the segment's index says".into();
        Err(RecordingError::Segment { path: path.clone(), offset, what })
    }

    /// Writes the rows of `valid` that are not 0, as text in the references.
    fn put_valid(&self, name: &str, seen: &Seen, out: &mut dyn Write) -> io::Result<()> {
        let mut at: Option<(u64, Vec<u8>)> = None;
        for rows in seen.ranges() {
            let mut next = rows.start;
            while next < rows.end {
                let (number, first) = (next / VALID_ROWS, next % VALID_ROWS);
                let end = rows.end.min((number + 1).saturating_mul(VALID_ROWS));
                if at.as_ref().is_some_and(|(open, _)| *open != number) {
                    put_valid_chunk(name, at.take(), out)?;
                }
                let (_, chunk) = at.get_or_insert_with(|| (number, vec![0; VALID_ROWS as usize]));
                chunk[first as usize..][..(end - next) as usize].fill(1);
                next = end;
            }
        }
        put_valid_chunk(name, at, out)
    }

    /// Writes the metadata of the group and its arrays. `events` is the number of recorded events.
    fn put_head(&self, name: &str, events: u64, gaps: &[Gap], out: &mut dyn Write) -> io::Result<()> {
        let with_first = |first: u64| -> Vec<u64> {
            std::iter::once(first).chain(self.info.shape.iter().copied()).collect()
        };
        let array = |shape: Vec<u64>, chunks: Vec<u64>, dtype: &str| {
            serde_json::json!({
                "zarr_format": 2,
                "shape": shape,
                "chunks": chunks,
                "dtype": dtype,
                "compressor": null,
                "filters": null,
                "fill_value": 0,
                "order": "C",
            })
        };
        let attributes = serde_json::json!({
            "stream_id": self.info.id,
            "stream_name": self.info.name,
            "events": events,
            "missing": gaps_of(gaps, self.info.id),
        });
        let data = array(with_first(self.rows), with_first(1), &dtype(self.info.element));
        let valid = array(vec![self.rows], vec![VALID_ROWS], &dtype(ElementType::U8));
        for (part, value) in [
            (".zgroup".to_owned(), serde_json::json!({ "zarr_format": 2 })),
            (".zattrs".to_owned(), attributes),
            (format!("{DATA}/.zarray"), data),
            (format!("{VALID}/.zarray"), valid),
        ] {
            write!(out, ",\n{}: {}", json(&format!("{name}/{part}")), json(&value.to_string()))?;
        }
        Ok(())
    }
}

/// Writes a chunk of `valid`, if there is one.
fn put_valid_chunk(name: &str, chunk: Option<(u64, Vec<u8>)>, out: &mut dyn Write) -> io::Result<()> {
    let Some((number, rows)) = chunk else { return Ok(()) };
    let key = json(&format!("{name}/{VALID}/{number}"));
    write!(out, ",\n{key}: \"base64:{}\"", STANDARD.encode(rows))
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// NumPy's name of an element type, little endian.
fn dtype(element: ElementType) -> String {
    let order = if element.bytes() == 1 { '|' } else { '<' };
    let name = element.as_str();
    format!("{order}{}{}", &name[..1], element.bytes())
}

#[cfg(test)]
#[path = "zarr_tests.rs"]
mod tests;
