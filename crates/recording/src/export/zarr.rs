//! References for Zarr: one JSON file with the location of each event in the segments, after the
//! specification of kerchunk (<https://fsspec.github.io/kerchunk/spec.html>, version 1).
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use keepup_stream::wire::{ElementType, StreamInfo};
use keepup_sys::output::finish;

use super::{Exported, create, require_sealed, wants};
use crate::error::RecordingError;
use crate::files::{open_regular, read_fully_at};
use crate::layout::{MESSAGE_HEADER, SECTOR, parse_block_sector};
use crate::merged::{About, MergedRecording};
use crate::ranges::Seen;
use crate::seal::{IndexedBlock, SegmentLookup, link_names};
use crate::volume::Segment;

/// Writes references to the streams that have a shape, are not compressed, and have only events
/// of that size, to the file `path`, which must not exist. Row n of a stream's array is event n,
/// or zeros if that is missing.
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
    let names = array_names(streams.iter().map(|(&id, stream)| (id, stream.name.as_str())));
    let mut out = BufWriter::with_capacity(1 << 20, create(path)?);
    let mut exported = Exported::default();
    let failed = |error| RecordingError::io("write", path)(error);
    let opening = r#"{"version": 1, "refs": {".zgroup": "{\"zarr_format\": 2}""#;
    let about = json(&about(recording.about()).to_string());
    write!(out, "{opening},\n\".zattrs\": {about}").map_err(failed)?;
    for (&id, name) in names.iter().filter(|(id, _)| wants(stream, **id)) {
        let Some(&info) = streams.get(&id) else { continue };
        match Array::new(recording, info)? {
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

/// Name of the array of each stream: that of its HDF5 group, unless Zarr cannot read it.
fn array_names<'a>(streams: impl Iterator<Item = (u32, &'a str)>) -> BTreeMap<u32, String> {
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

/// A stream as an array.
struct Array<'a> {
    recording: &'a MergedRecording<'a>,
    info: &'a StreamInfo,
    event_bytes: u64,
    rows: u64,
}

impl<'a> Array<'a> {
    /// `None` if the stream's events do not all have one shape.
    fn new(recording: &'a MergedRecording<'a>, info: &'a StreamInfo) -> Result<Option<Self>, RecordingError> {
        let Some(event_bytes) = info.event_bytes().filter(|_| info.compression.is_none()) else {
            return Ok(None);
        };
        let mut rows = 0;
        for (_, segment) in recording.segments() {
            let lookup = SegmentLookup::open(segment)?;
            if let Some(summary) = lookup.streams.iter().find(|s| s.stream == info.id) {
                if !summary.is_array {
                    return Ok(None);
                }
                rows = (summary.last_sequence + 1).max(rows);
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
        if let Err(error) = self.put_head(name, out) {
            return Ok(Err(error));
        }
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
                    let key = json(&format!("{name}/{row}{zeros}"));
                    if let Err(error) = write!(out, ",\n{key}: [{file}, {at}, {}]", self.event_bytes) {
                        return Ok(Err(error));
                    }
                    exported.events += 1;
                    exported.payload_bytes += self.event_bytes;
                }
            }
        }
        Ok(Ok(()))
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

    /// Writes the array's metadata.
    fn put_head(&self, name: &str, out: &mut dyn Write) -> io::Result<()> {
        let with_first = |first: u64| -> Vec<u64> {
            std::iter::once(first).chain(self.info.shape.iter().copied()).collect()
        };
        let array = serde_json::json!({
            "zarr_format": 2,
            "shape": with_first(self.rows),
            "chunks": with_first(1),
            "dtype": dtype(self.info.element),
            "compressor": null,
            "filters": null,
            "fill_value": 0,
            "order": "C",
        });
        let attributes = serde_json::json!({ "stream_id": self.info.id, "stream_name": self.info.name });
        for (part, text) in [(".zarray", array.to_string()), (".zattrs", attributes.to_string())] {
            write!(out, ",\n{}: {}", json(&format!("{name}/{part}")), json(&text))?;
        }
        Ok(())
    }
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
