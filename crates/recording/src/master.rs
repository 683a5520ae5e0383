//! NeXus master: one small HDF5 file that shows a whole recording as one dataset per stream, over
//! all segments of all volumes, without a copy; also over the recordings of several hosts. A row that is in
//! several segments is taken from the first.
//!
//! Row n of a stream's datasets is event n. Where an event is missing, `valid` is 0 and the rest
//! is zero. Invariants: the master holds no events; its paths are relative, so it still works
//! after the whole recording was moved; it is replaced atomically.
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use keepup_measure::sum::Sums;
use keepup_stream::detector_map::is_map;
use keepup_stream::wire::StreamInfo;

use crate::contents::{Contents, contents};
use crate::crc::Crc32;
use crate::error::RecordingError;
use crate::files::{open_regular, replace};
use crate::hdf5::{
    Attribute, Dataset, ElementKind, HdfWriter, Links, Mapping, SUPERBLOCK_BYTES, Selection, Storage,
    can_be_chunk, is_superblock, superblock,
};
use crate::merged::{About, MergedRecording};
use crate::nxmx::{self, DataRows, ImageStream, MapStream, put_nodes};
use crate::ranges::Seen;
use crate::reader::Recording;
use crate::seal::{MAP_DATASET, attributes, key_names, link_names, master_names};

/// Name of the master in the recording's directory on the first volume.
pub const MASTER_FILE: &str = "recording.nxs";
/// Start of the last bytes of a master. The CRC-32 of everything between it and the superblock follows.
const FOOTER_MAGIC: &[u8; 4] = b"KUNX";
/// Attribute `left_out` of a stream that has `data` in some segments and `length` in the others.
const LEFT_OUT: &str = "data and length: the events have one size in some segments only; read the segments";
const FOOTER_BYTES: usize = FOOTER_MAGIC.len() + 4;

impl Recording {
    /// Path of the NeXus master, which exists once the recording has ended.
    pub fn master_path(&self) -> PathBuf {
        self.volumes()[0].dir().join(MASTER_FILE)
    }

    /// Whether the master exists as a regular file, not a link.
    pub fn has_master(&self) -> bool {
        fs::symlink_metadata(self.master_path()).is_ok_and(|meta| meta.is_file())
    }
}

/// The part of one stream in one segment.
struct Part {
    segment: usize,
    /// Rows of its events, ascending, adjacent ranges joined; without those of an earlier part.
    rows: Vec<Range<u64>>,
    /// Rows in the segment's dataset at which these ranges start.
    firsts: Vec<u64>,
    events: u64,
    is_array: bool,
    last_timestamp_ns: u64,
}

/// A segment, seen from the master.
struct Source {
    path: String,
    /// Label of its recording, if there are several.
    label: Option<String>,
    volume: u32,
    index: u32,
    names: BTreeMap<u32, String>,
}

/// Writes the master of a recording over its sealed segments; returns its path.
///
/// Unsealed segments are skipped: their events count as missing.
///
/// # Errors
/// A segment or the master cannot be read or written.
pub fn write_master(recording: &Recording) -> Result<PathBuf, RecordingError> {
    let path = recording.master_path();
    write_master_to(&recording.into(), &path)?;
    Ok(path)
}

/// Writes the master of one or several recordings to `path`; its links lead from there to the segments in
/// their current location.
///
/// # Errors
/// As [`write_master`].
pub fn write_master_to(recording: &MergedRecording<'_>, path: &Path) -> Result<MasterCounts, RecordingError> {
    let home = path.parent().filter(|home| !home.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let created = UNIX_EPOCH + Duration::from_nanos(recording.about().created_unix_ns);
    let start_time = humantime::format_rfc3339_millis(created).to_string();
    let survey = survey(recording, home)?;
    let written = replace(path, |file| {
        let mut out = BufWriter::with_capacity(1 << 20, file);
        out.write_all(&[0; SUPERBLOCK_BYTES])?;
        let mut summed = Summed { out: &mut out, crc: Crc32::new() };
        let mut place = HdfWriter::new(&mut summed, SUPERBLOCK_BYTES as u64);
        let root = put_master(recording, &start_time, &survey, &mut place)?;
        let superblock = superblock(0, root, place.at + FOOTER_BYTES as u64);
        let crc = summed.crc.value();
        out.write_all(FOOTER_MAGIC)?;
        out.write_all(&crc.to_le_bytes())?;
        out.seek(SeekFrom::Start(0))?;
        out.write_all(&superblock)?;
        out.flush()?;
        file.set_permissions(Permissions::from_mode(0o444))
    });
    written.map_err(RecordingError::io("write", path))?;
    let parts = survey.parts.values();
    Ok(MasterCounts {
        streams: recording.streams().len() as u64,
        events: parts.clone().flatten().map(|part| part.events).saturating_sum(),
        left_out: parts.filter(|parts| signal_of(parts).is_none()).count() as u64,
    })
}

/// Contents of a master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MasterCounts {
    /// Streams.
    pub streams: u64,
    /// Recorded events of all streams.
    pub events: u64,
    /// Streams whose events are the rows of a dataset in some segments only: they have neither `data` nor
    /// `length`.
    pub left_out: u64,
}

/// Writer that counts the CRC-32 of what passes.
struct Summed<W> {
    out: W,
    crc: Crc32,
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.crc.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Checks a master against its checksums; the error is its defect. `None`: it has no checksum.
pub(crate) fn check_master(path: &Path) -> Result<Option<()>, String> {
    let read = |error: io::Error| format!("cannot read it: {error}");
    let mut file = open_regular(path).map_err(read)?;
    let bytes = file.metadata().map_err(read)?.len();
    let Some(body_bytes) = bytes.checked_sub((SUPERBLOCK_BYTES + FOOTER_BYTES) as u64) else {
        return Err("it is too short".to_owned());
    };
    let mut first = [0; SUPERBLOCK_BYTES];
    file.read_exact(&mut first).map_err(read)?;
    let mut body = Summed { out: io::sink(), crc: Crc32::new() };
    io::copy(&mut (&file).take(body_bytes), &mut body).map_err(read)?;
    let mut footer = [0; FOOTER_BYTES];
    file.read_exact(&mut footer).map_err(read)?;
    let (magic, crc) = footer.split_at(FOOTER_MAGIC.len());
    if magic != FOOTER_MAGIC {
        return Ok(None);
    } else if !is_superblock(&first, 0) {
        return Err("its superblock is damaged".to_owned());
    } else if crc != body.crc.value().to_le_bytes() {
        return Err(format!("its CRC-32 is {:08x}, not that at its end", body.crc.value()));
    }
    Ok(Some(()))
}

/// Segments and the streams in them.
#[derive(Default)]
struct Survey {
    sources: Vec<Source>,
    /// By stream.
    parts: BTreeMap<u32, Vec<Part>>,
}

fn survey(recording: &MergedRecording<'_>, home: &Path) -> Result<Survey, RecordingError> {
    let Survey { mut sources, mut parts } = Survey::default();
    let streams = recording.streams();
    let mut seen: BTreeMap<u32, Seen> = BTreeMap::new();
    for (label, volume) in recording.volumes() {
        let way = relative(home, volume.dir()).map_err(RecordingError::io("find", volume.dir()))?;
        for segment in volume.segments().iter().filter(|segment| segment.is_ended()) {
            let Contents { streams: found, .. } = contents(volume, segment)?;
            for (summary, blocks) in &found {
                let rows = blocks.iter().map(|block| block.first_sequence..block.end());
                let (rows, firsts) = unseen(&joined(rows), seen.entry(summary.stream).or_default());
                if rows.is_empty() {
                    continue;
                }
                parts.entry(summary.stream).or_default().push(Part {
                    segment: sources.len(),
                    events: rows.iter().map(|rows| rows.end - rows.start).saturating_sum(),
                    rows,
                    firsts,
                    is_array: summary.is_array,
                    last_timestamp_ns: summary.last_timestamp_ns,
                });
            }
            let name = |id: &u32| Some((*id, streams.get(id)?.name.as_str()));
            let ids = found.iter().filter_map(|(summary, _)| name(&summary.stream));
            sources.push(Source {
                path: way.join(segment.path.file_name().unwrap_or_default()).to_string_lossy().into_owned(),
                label: label.map(str::to_owned),
                volume: volume.manifest().volume_index,
                index: segment.index,
                names: link_names(ids),
            });
        }
    }
    Ok(Survey { sources, parts })
}

/// Rows that are not in `seen`, and the place of each range among all rows.
fn unseen(rows: &[Range<u64>], seen: &mut Seen) -> (Vec<Range<u64>>, Vec<u64>) {
    let (mut fresh, mut firsts) = (Vec::new(), Vec::new());
    let mut before = 0;
    for range in rows {
        for part in seen.add(range.clone()) {
            firsts.push(before + (part.start - range.start));
            fresh.push(part);
        }
        before += range.end - range.start;
    }
    (fresh, firsts)
}

/// Sorted ranges with adjacent ones joined.
fn joined(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => joined.push(range),
        }
    }
    joined
}

/// Relative path from one existing directory to another.
fn relative(from: &Path, to: &Path) -> io::Result<PathBuf> {
    let (from, to) = (fs::canonicalize(from)?, fs::canonicalize(to)?);
    let common = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(common).map(|_| Component::ParentDir);
    Ok(up.chain(to.components().skip(common)).collect())
}

fn put_master<W: Write>(
    recording: &MergedRecording<'_>,
    start_time: &str,
    survey: &Survey,
    place: &mut HdfWriter<'_, W>,
) -> io::Result<u64> {
    let Survey { sources, parts } = survey;
    let streams = recording.streams();
    let ends = event_ends(recording, parts);
    let (images, maps) = (image_streams(&streams, &ends, parts), map_streams(&streams, &ends, survey));
    let detectors = nxmx::detectors(&recording.about().metadata, &images, &maps);
    let of_detectors: BTreeSet<u32> = detectors.iter().flat_map(nxmx::Detector::streams).collect();
    let more: &[&str] = if detectors.is_empty() { &[] } else { &nxmx::ENTRY_NAMES };
    let names = master_names(streams.iter().map(|(&id, stream)| (id, stream.name.as_str())), more);
    let mut images = BTreeMap::new();
    let mut entry = Links::default();
    let mut default = None;
    for (id, &stream) in &streams {
        let Some(name) = names.get(id) else { continue };
        let end = ends.get(id).copied().unwrap_or(0);
        let parts = parts.get(id).map(Vec::as_slice).unwrap_or_default();
        let data_links = if of_detectors.contains(id) { 2 } else { 1 };
        let rows = Rows { stream, end, parts, sources, data_links };
        let has_signal = rows.signal().is_some();
        let (group, data) = rows.put(place)?;
        entry.add(name, group);
        images.extend(data.map(|address| (*id, address)));
        if !is_map(&stream.name) && has_signal {
            default.get_or_insert(name.clone());
        }
    }
    put_about(recording.about(), start_time, &mut entry, place)?;
    let nodes = nxmx::describe(&detectors, &names, last_time(parts, &of_detectors));
    put_nodes(&nodes, &images, &mut entry, place)?;
    let mut files = Links::default();
    for source in sources {
        let label = source.label.as_ref().map_or_else(String::new, |label| format!("{label}-"));
        let name = format!("{label}volume-{}-segment-{:06}", source.volume, source.index);
        files.add_file(&name, &source.path);
    }
    let collection = [Attribute::Text("NX_class", "NXcollection".into())];
    entry.add("segments", place.put_group(files, &collection)?);
    let mut about = vec![Attribute::Text("NX_class", "NXentry".into())];
    about.extend(default.map(|name| Attribute::Text("default", name)));
    let entry = place.put_group(entry, &about)?;
    let mut root = Links::default();
    root.add("entry", entry);
    place.put_group(
        root,
        &[
            Attribute::Text("NX_class", "NXroot".into()),
            Attribute::Text("default", "entry".into()),
            Attribute::Text("creator", concat!("keepup ", env!("CARGO_PKG_VERSION")).into()),
            Attribute::Text("recording", recording.about().id.to_string()),
        ],
    )
}

/// Streams with images as the rows of one dataset.
fn image_streams<'a>(
    streams: &BTreeMap<u32, &'a StreamInfo>,
    ends: &BTreeMap<u32, u64>,
    parts: &BTreeMap<u32, Vec<Part>>,
) -> Vec<ImageStream<'a>> {
    let image_stream = |(&id, &stream): (&u32, &&'a StreamInfo)| {
        let &[height, width] = &stream.shape[..] else { return None };
        let is_array = parts.get(&id).is_some_and(|parts| is_array(parts));
        let rows = *ends.get(&id)?;
        is_array.then_some(ImageStream { id, name: &stream.name, size: [height, width], rows })
    };
    streams.iter().filter_map(image_stream).collect()
}

/// Streams with a map that was recorded.
fn map_streams<'a>(
    streams: &BTreeMap<u32, &'a StreamInfo>,
    ends: &BTreeMap<u32, u64>,
    survey: &'a Survey,
) -> Vec<MapStream<'a>> {
    let map_stream = |(id, &stream): (&u32, &&'a StreamInfo)| {
        let [part] = &survey.parts.get(id)?[..] else { return None };
        let is_whole = part.is_array && (ends.get(id), part.events) == (Some(&1), 1);
        let source = survey.sources.get(part.segment).filter(|_| is_whole && is_map(&stream.name))?;
        let (file, dataset) = (&source.path, format!("/{}/{MAP_DATASET}", source.names.get(id)?));
        Some(MapStream { name: &stream.name, shape: &stream.shape, file, dataset })
    };
    streams.iter().filter_map(map_stream).collect()
}

/// Time of the last event of these streams.
fn last_time(parts: &BTreeMap<u32, Vec<Part>>, streams: &BTreeSet<u32>) -> Option<String> {
    let parts = streams.iter().filter_map(|id| parts.get(id)).flatten();
    let last = UNIX_EPOCH + Duration::from_nanos(parts.map(|part| part.last_timestamp_ns).max()?);
    Some(humantime::format_rfc3339_millis(last).to_string())
}

/// Whether the events of a stream are the rows of one dataset.
fn is_array(parts: &[Part]) -> bool {
    !parts.is_empty() && parts.iter().all(|part| part.is_array)
}

/// Dataset with the events or their lengths, if every segment has it.
fn signal_of(parts: &[Part]) -> Option<&'static str> {
    match parts.iter().filter(|part| part.is_array).count() {
        0 => Some("length"),
        count if count == parts.len() => Some("data"),
        _ => None,
    }
}

/// One past the last known event of each stream, recorded or missing.
fn event_ends(recording: &MergedRecording<'_>, parts: &BTreeMap<u32, Vec<Part>>) -> BTreeMap<u32, u64> {
    let found = parts
        .iter()
        .flat_map(|(&id, parts)| parts.iter().filter_map(move |part| Some((id, part.rows.last()?.end))));
    let missing = recording.gaps().map(|gap| (gap.stream, gap.first_sequence.saturating_add(gap.events)));
    let mut ends = BTreeMap::new();
    for (id, end) in found.chain(missing) {
        let known = ends.entry(id).or_insert(end);
        *known = end.max(*known);
    }
    ends
}

/// Writes the recording's name and metadata.
fn put_about<W: Write>(
    about: &About,
    start_time: &str,
    entry: &mut Links,
    place: &mut HdfWriter<'_, W>,
) -> io::Result<()> {
    for (name, text) in [("title", about.name.as_str()), ("start_time", start_time)] {
        entry.add(name, put_text(place, text, Vec::new())?);
    }
    if let Some(run) = about.run {
        entry.add("entry_identifier", put_text(place, &run.to_string(), Vec::new())?);
    }
    if about.metadata.is_empty() {
        return Ok(());
    }
    let mut metadata = Links::default();
    let names = key_names(about.metadata.keys().map(String::as_str));
    for (name, (key, value)) in names.iter().zip(&about.metadata) {
        metadata.add(name, put_text(place, value, vec![Attribute::Text("key", key.clone())])?);
    }
    let collection = [Attribute::Text("NX_class", "NXcollection".into())];
    entry.add("metadata", place.put_group(metadata, &collection)?);
    Ok(())
}

fn put_text<W: Write>(
    place: &mut HdfWriter<'_, W>,
    text: &str,
    attributes: Vec<Attribute>,
) -> io::Result<u64> {
    let bytes = if text.is_empty() { b"\0" } else { text.as_bytes() };
    let address = place.put(bytes)?;
    place.put_dataset(&Dataset {
        element: ElementKind::text(bytes.len()),
        dimensions: Vec::new(),
        storage: Storage::Contiguous { address },
        fill: Vec::new(),
        attributes,
    })
}

/// One stream's datasets.
struct Rows<'a> {
    stream: &'a StreamInfo,
    end: u64,
    parts: &'a [Part],
    sources: &'a [Source],
    /// Links to each of the datasets `data` and `valid`.
    data_links: u32,
}

impl Rows<'_> {
    /// Dataset with the events or their lengths. Rows of a stream without events are those that its events
    /// would have.
    fn signal(&self) -> Option<&'static str> {
        let (element, shape) = (ElementKind::of(self.stream.element), &self.stream.shape);
        match self.parts {
            [] if can_be_chunk(element, shape) && !shape.is_empty() => Some("data"),
            parts => signal_of(parts),
        }
    }

    /// Returns the addresses of the group and of its `data`.
    fn put<W: Write>(&self, place: &mut HdfWriter<'_, W>) -> io::Result<(u64, Option<DataRows>)> {
        let mut links = Links::default();
        let signal = self.signal();
        let mut valid = 0;
        for (name, element) in
            [("sequence", ElementKind::U64), ("timestamp", ElementKind::U64), ("valid", ElementKind::U8)]
        {
            valid = self.put_virtual(place, name, element, &[])?;
            links.add(name, valid);
        }
        let mut data = None;
        let mut attributes = attributes(self.stream, signal);
        match signal {
            Some(name @ "data") => {
                let element = ElementKind::of(self.stream.element);
                let rows = self.put_virtual(place, name, element, &self.stream.shape)?;
                links.add(name, rows);
                data = Some(DataRows { data: rows, valid });
            }
            Some(name) => links.add(name, self.put_virtual(place, name, ElementKind::U64, &[])?),
            None => attributes.push(Attribute::Text("left_out", LEFT_OUT.to_owned())),
        }
        // HDF5 shows rows of a segment that it cannot open as missing.
        attributes
            .push(Attribute::Number("events", self.parts.iter().map(|part| part.events).saturating_sum()));
        Ok((place.put_group(links, &attributes)?, data))
    }

    fn put_virtual<W: Write>(
        &self,
        place: &mut HdfWriter<'_, W>,
        name: &str,
        element: ElementKind,
        row: &[u64],
    ) -> io::Result<u64> {
        let runs: Vec<Run<'_>> = self.parts.iter().flat_map(|part| self.runs(part, name, row)).collect();
        let maps = runs.iter().map(|run| Mapping {
            file: run.file,
            dataset: &run.dataset,
            from: Selection { rows: std::slice::from_ref(&run.from), row },
            to: Selection { rows: run.to, row },
        });
        // Not every version of HDF5 opens a virtual dataset without sources.
        let storage = match runs.len() as u64 {
            0 => Storage::Nowhere,
            count => Storage::Virtual { heap: place.put_map(count, maps)? },
        };
        let dataset = Dataset {
            element,
            dimensions: std::iter::once(self.end).chain(row.iter().copied()).collect(),
            storage,
            fill: Vec::new(),
            attributes: Vec::new(),
        };
        place.put_linked_dataset(&dataset, if matches!(name, "data" | "valid") { self.data_links } else { 1 })
    }

    /// Mappings of a segment: one, or one per run if a single one cannot express them.
    fn runs<'p>(&'p self, part: &'p Part, name: &str, row: &[u64]) -> Vec<Run<'p>> {
        let Some(source) = self.sources.get(part.segment) else { return Vec::new() };
        let Some(group) = source.names.get(&self.stream.id) else { return Vec::new() };
        let run = |first: u64, to: &'p [Range<u64>]| {
            let count: u64 = to.iter().map(|rows| rows.end - rows.start).saturating_sum();
            Run { file: &source.path, dataset: format!("/{group}/{name}"), from: first..first + count, to }
        };
        if part.is_contiguous() && (Selection { rows: &part.rows, row }).is_expressible() {
            let first = part.firsts.first().copied().unwrap_or(0);
            return vec![run(first, &part.rows)];
        }
        part.firsts.iter().zip(part.rows.chunks(1)).map(|(first, rows)| run(*first, rows)).collect()
    }
}

impl Part {
    /// Whether the ranges follow each other in the segment's dataset.
    fn is_contiguous(&self) -> bool {
        let lengths = self.rows.iter().map(|rows| rows.end - rows.start);
        let ends = self.firsts.iter().zip(lengths).map(|(first, length)| first + length);
        ends.zip(self.firsts.iter().skip(1)).all(|(end, next)| end == *next)
    }
}

/// Rows of a segment's dataset and their destination.
struct Run<'a> {
    file: &'a str,
    dataset: String,
    from: Range<u64>,
    to: &'a [Range<u64>],
}

#[cfg(test)]
#[path = "master_tests.rs"]
mod tests;
