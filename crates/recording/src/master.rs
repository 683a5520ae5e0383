//! NeXus master: one small HDF5 file that shows a whole recording as one dataset per stream, over
//! all segments of all volumes, without a copy; also over the recordings of several hosts. A row that is in
//! several segments is taken from the first.
//!
//! Row n of a stream's datasets is event n. Where an event is missing, `valid` is 0 and the rest
//! is zero. Many segments are divided into parts, each with a file of the same form beside the master, and
//! many parts into parts again: the master shows the last ones, and no file depends on how many others there
//! are. Invariants: the master holds no events; its paths are relative, so it still works after the whole
//! recording was moved; every file is replaced atomically, after those that it shows.
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use keepup_measure::sum::Sums;
use keepup_stream::detector_map::is_map;
use keepup_stream::ledger::Gap;
use keepup_stream::wire::StreamInfo;

use crate::contents::{Contents, contents};
use crate::crc::Crc32;
use crate::error::RecordingError;
use crate::files::{FRESH, open_regular, replace};
use crate::hdf5::{
    Attribute, Dataset, ElementKind, HdfWriter, Links, Mapping, Maps, SUPERBLOCK_BYTES, Selection, Storage,
    can_be_chunk, is_superblock, superblock,
};
use crate::merged::{About, MergedRecording};
use crate::nxmx::{self, DataRows, ImageStream, MapStream, put_nodes};
use crate::ranges::Seen;
use crate::reader::Recording;
use crate::seal::{MAP_DATASET, attributes, key_names, link_names, master_names};
use crate::volume::{Segment, Volume, preamble};

/// Name of the master in the recording's directory on the first volume.
pub const MASTER_FILE: &str = "recording.nxs";
/// Start of the last bytes of a master. The CRC-32 of everything between it and the superblock follows.
const FOOTER_MAGIC: &[u8; 4] = b"KUNX";
/// The same for a master of parts. In front of it are level, number and CRC-32 of each part, and their count.
const PARTS_MAGIC: &[u8; 4] = b"KUNP";
/// Bytes of an entry for a part.
const PART_ENTRY_BYTES: u64 = 12;
/// Mappings of each of a stream's datasets, times streams, that one file has if the bounds below allow it.
const MAPPINGS: usize = 16_384;
/// Fewest segments, or parts, in one file that could be divided into several.
const FAN_OUT_MIN: usize = 32;
/// Most of them.
const FAN_OUT_MAX: usize = 4096;
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

/// What a file shows of one stream in one source.
struct Part {
    source: usize,
    /// Rows of its events, ascending, adjacent ranges joined; without those of an earlier source.
    rows: Vec<Range<u64>>,
    /// Rows in the source's dataset at which these ranges start.
    firsts: Vec<u64>,
    events: u64,
    /// Dataset with the events or their lengths, if all segments of the source have it.
    signal: Option<&'static str>,
    last_timestamp_ns: u64,
    /// File and name of a dataset with its only event as it is, without the dimension of the rows.
    map: Option<(String, String)>,
}

/// A segment or a part, seen from the file that shows it.
struct Source {
    path: String,
    /// Link to it, and the object that this leads to.
    link: (String, &'static str),
    /// Group with the streams.
    base: &'static str,
    names: Arc<BTreeMap<u32, String>>,
}

/// What a file shows.
#[derive(Default)]
struct Survey {
    sources: Vec<Source>,
    /// By stream.
    parts: BTreeMap<u32, Vec<Part>>,
    /// Entries of the footer, if the sources are parts.
    entries: Vec<Entry>,
}

/// A part, as the file that shows it names it.
#[derive(Clone, Copy)]
struct Entry {
    level: u32,
    number: u32,
    crc: u32,
}

/// A file whose checksum is right.
struct Checked {
    crc: u32,
    parts: Vec<Entry>,
}

/// Writes the master of a recording over its sealed segments; returns its path. Files of earlier masters that
/// it does not need are removed.
///
/// Unsealed segments are skipped: their events count as missing.
///
/// # Errors
/// A segment or the master cannot be read or written.
pub fn write_master(recording: &Recording) -> Result<PathBuf, RecordingError> {
    let path = recording.master_path();
    let shown = recording.into();
    let mut master = Master::new(&shown, &path);
    master.write()?;
    let home = path.parent().unwrap_or(Path::new("."));
    for name in part_names(home).map_err(RecordingError::io("list", home))? {
        let part = home.join(name);
        if !master.parts.contains(&part) {
            fs::remove_file(&part).map_err(RecordingError::io("remove", &part))?;
        }
    }
    Ok(path)
}

/// Writes the master of one or several recordings to `path`, with its parts beside it; its links lead from
/// there to the segments in their current location.
///
/// # Errors
/// As [`write_master`]; a file with the name of a part exists.
pub fn write_master_to(recording: &MergedRecording<'_>, path: &Path) -> Result<MasterCounts, RecordingError> {
    let mut master = Master { is_new: true, ..Master::new(recording, path) };
    let written = master.write();
    if written.is_err() {
        // The error to report is the first one.
        master.parts.iter().for_each(|part| drop(fs::remove_file(part)));
    }
    written
}

/// Names of the parts of a recording's master in `home`.
fn part_names(home: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(home)? {
        names.extend(entry?.file_name().into_string().ok().filter(|name| is_part_name(name)));
    }
    Ok(names)
}

/// Whether this is the name of a part of a recording's master, or of its temporary file.
pub(crate) fn is_part_name(name: &str) -> bool {
    let (stem, extension) = MASTER_FILE.split_once('.').unwrap_or((MASTER_FILE, ""));
    let name = name.strip_suffix(FRESH).unwrap_or(name);
    let numbers = name.strip_prefix(stem).and_then(|rest| rest.strip_suffix(extension)?.strip_suffix('.'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    numbers
        .and_then(|rest| rest.strip_prefix('-')?.split_once('-'))
        .is_some_and(|(level, number)| is_number(level) && is_number(number) && number.len() >= 6)
}

/// Path of a part of the master at `path`.
fn part_path(path: &Path, level: u32, number: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{level}-{number:06}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// A segment that is shown.
type Shown<'a> = (Option<&'a str>, &'a Volume, &'a Segment);

/// A master that is written.
struct Master<'a> {
    recording: &'a MergedRecording<'a>,
    path: &'a Path,
    home: &'a Path,
    /// Whether none of its files may exist yet.
    is_new: bool,
    streams: BTreeMap<u32, &'a StreamInfo>,
    /// Names of the streams in parts.
    names: Arc<BTreeMap<u32, String>>,
    /// Most segments, or parts, in one file.
    fan_out: usize,
    seen: BTreeMap<u32, Seen>,
    /// Files of parts that were written.
    parts: Vec<PathBuf>,
}

impl<'a> Master<'a> {
    fn new(recording: &'a MergedRecording<'a>, path: &'a Path) -> Self {
        let streams = recording.streams();
        let names = master_names(streams.iter().map(|(&id, stream)| (id, stream.name.as_str())), &[]);
        Self {
            recording,
            path,
            home: path.parent().filter(|home| !home.as_os_str().is_empty()).unwrap_or(Path::new(".")),
            is_new: false,
            names: Arc::new(names),
            fan_out: (MAPPINGS / streams.len().max(1)).clamp(FAN_OUT_MIN, FAN_OUT_MAX),
            streams,
            seen: BTreeMap::new(),
            parts: Vec::new(),
        }
    }

    fn write(&mut self) -> Result<MasterCounts, RecordingError> {
        let mut segments = segments(self.recording);
        let survey = if segments.len() <= self.fan_out {
            self.survey(&segments)?
        } else {
            segments.sort_by_cached_key(|(_, _, segment)| (created(segment), segment.index));
            let mut parts = Survey::default();
            for (number, segments) in (0..).zip(segments.chunks(self.fan_out)) {
                let survey = self.survey(segments)?;
                self.write_part((1, number), survey, &mut parts)?;
            }
            parts
        };
        self.finish(survey)
    }

    /// Writes the parts of the second and further levels, and the master.
    fn finish(&mut self, mut survey: Survey) -> Result<MasterCounts, RecordingError> {
        let mut level = 2;
        while survey.sources.len() > self.fan_out {
            let mut parts = Survey::default();
            for (number, survey) in (0..).zip(survey.divide(self.fan_out)) {
                self.write_part((level, number), survey, &mut parts)?;
            }
            (survey, level) = (parts, level + 1);
        }
        let recording = self.recording;
        let created = UNIX_EPOCH + Duration::from_nanos(recording.about().created_unix_ns);
        let start_time = humantime::format_rfc3339_millis(created).to_string();
        let put = |place: &mut HdfWriter<'_, Summed<&mut BufWriter<&File>>>| {
            put_master(recording, &start_time, &survey, place)
        };
        write_file(self.path, &survey.entries, put)?;
        let parts = survey.parts.values();
        Ok(MasterCounts {
            streams: self.streams.len() as u64,
            events: parts.clone().flatten().map(|part| part.events).saturating_sum(),
            left_out: parts.filter(|parts| signal_of(parts).is_none()).count() as u64,
        })
    }

    /// Reads what these segments have that no earlier one has.
    fn survey(&mut self, segments: &[Shown<'_>]) -> Result<Survey, RecordingError> {
        let mut survey = Survey::default();
        for &(label, volume, segment) in segments {
            let way = relative(self.home, volume.dir()).map_err(RecordingError::io("find", volume.dir()))?;
            let path = way.join(segment.path.file_name().unwrap_or_default()).to_string_lossy().into_owned();
            let Contents { streams: found, .. } = contents(volume, segment)?;
            let name = |id: &u32| Some((*id, self.streams.get(id)?.name.as_str()));
            let names = link_names(found.iter().filter_map(|(summary, _)| name(&summary.stream)));
            for (summary, blocks) in &found {
                let rows = blocks.iter().map(|block| block.first_sequence..block.end());
                let (rows, firsts) = unseen(&joined(rows), self.seen.entry(summary.stream).or_default());
                if rows.is_empty() {
                    continue;
                }
                let is_one = rows.first() == Some(&(0..1)) && (rows.len(), &firsts[..]) == (1, &[0]);
                let name = names.get(&summary.stream).filter(|_| is_one && summary.is_array);
                let map = name.map(|name| (path.clone(), format!("/{name}/{MAP_DATASET}")));
                survey.parts.entry(summary.stream).or_default().push(Part {
                    source: survey.sources.len(),
                    events: rows.iter().map(|rows| rows.end - rows.start).saturating_sum(),
                    rows,
                    firsts,
                    signal: Some(if summary.is_array { "data" } else { "length" }),
                    last_timestamp_ns: summary.last_timestamp_ns,
                    map,
                });
            }
            let label = label.map_or_else(String::new, |label| format!("{label}-"));
            let (volume, index) = (volume.manifest().volume_index, segment.index);
            let link = (format!("{label}volume-{volume}-segment-{index:06}"), "/");
            survey.sources.push(Source { path, link, base: "", names: Arc::new(names) });
        }
        Ok(survey)
    }

    /// Writes what `survey` shows into a file of its own, as one more source of `parts`.
    fn write_part(
        &mut self,
        (level, number): (u32, u32),
        survey: Survey,
        parts: &mut Survey,
    ) -> Result<(), RecordingError> {
        let path = part_path(self.path, level, number);
        if self.is_new && fs::symlink_metadata(&path).is_ok() {
            return Err(RecordingError::Taken { path });
        }
        let crc = write_file(&path, &survey.entries, |place| {
            let ends = event_ends(std::iter::empty(), &survey.parts);
            let streams = self.streams.iter().filter(|(id, _)| survey.parts.contains_key(id));
            let streams = streams.map(|(&id, &stream)| (id, stream)).collect();
            let mut entry = Links::default();
            put_streams(&streams, &self.names, (&survey, &ends, &BTreeSet::new()), &mut entry, place)?;
            put_root(self.recording.about(), entry, &survey, None, place)
        })?;
        for (&stream, found) in &survey.parts {
            let rows = found.iter().flat_map(|part| part.rows.iter().cloned());
            let mut rows: Vec<_> = rows.collect();
            rows.sort_unstable_by_key(|rows| rows.start);
            let rows = joined(rows.into_iter());
            let map = match &found[..] {
                [only] => only.map.clone(),
                _ => None,
            };
            parts.parts.entry(stream).or_default().push(Part {
                source: parts.sources.len(),
                events: found.iter().map(|part| part.events).saturating_sum(),
                // Row n of a part's dataset is event n, as in the master.
                firsts: rows.iter().map(|rows| rows.start).collect(),
                rows,
                signal: signal_of(found),
                last_timestamp_ns: found.iter().map(|part| part.last_timestamp_ns).max().unwrap_or(0),
                map,
            });
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let link = (format!("part-{level}-{number:06}"), "/entry/segments");
        parts.sources.push(Source { path: name, link, base: "/entry", names: Arc::clone(&self.names) });
        parts.entries.push(Entry { level, number, crc });
        self.parts.push(path);
        Ok(())
    }
}

impl Survey {
    /// Divides it into surveys of at most `count` sources.
    fn divide(self, count: usize) -> Vec<Self> {
        let mut surveys: Vec<Self> = Vec::new();
        for (index, source) in self.sources.into_iter().enumerate() {
            if index % count == 0 {
                surveys.push(Self::default());
            }
            if let Some(survey) = surveys.last_mut() {
                survey.sources.push(source);
            }
        }
        for (survey, entries) in surveys.iter_mut().zip(self.entries.chunks(count)) {
            survey.entries = entries.to_vec();
        }
        for (stream, parts) in self.parts {
            for part in parts {
                if let Some(survey) = surveys.get_mut(part.source / count) {
                    let part = Part { source: part.source % count, ..part };
                    survey.parts.entry(stream).or_default().push(part);
                }
            }
        }
        surveys
    }
}

/// Sealed segments of all volumes.
fn segments<'a>(recording: &'a MergedRecording<'_>) -> Vec<Shown<'a>> {
    let of = |(label, volume): (Option<&'a str>, &'a Volume)| {
        let ended = volume.segments().iter().filter(|segment| segment.is_ended());
        ended.map(move |segment| (label, volume, segment))
    };
    recording.volumes().flat_map(of).collect()
}

/// Time at which a segment was created, ns since the Unix epoch: in this order, segments of all volumes with
/// neighbouring rows are in one part, which then shows few ranges of rows. `None`: it is damaged, which is
/// reported when the whole segment is read.
fn created(segment: &Segment) -> Option<u64> {
    let file = open_regular(&segment.path).ok()?;
    Some(preamble(&file).ok()?.ok()?.created_unix_ns)
}

/// Writes a file whose root is written by `put`; returns the CRC-32 of its footer.
fn write_file(
    path: &Path,
    entries: &[Entry],
    put: impl FnOnce(&mut HdfWriter<'_, Summed<&mut BufWriter<&File>>>) -> io::Result<u64>,
) -> Result<u32, RecordingError> {
    let mut crc = 0;
    let written = replace(path, |file| {
        let mut out = BufWriter::with_capacity(1 << 20, file);
        out.write_all(&[0; SUPERBLOCK_BYTES])?;
        let mut summed = Summed { out: &mut out, crc: Crc32::new() };
        let mut place = HdfWriter::new(&mut summed, SUPERBLOCK_BYTES as u64);
        let root = put(&mut place)?;
        let mut magic = FOOTER_MAGIC;
        if !entries.is_empty() {
            let count = u32::try_from(entries.len()).map_err(io::Error::other)?;
            let numbers = entries.iter().flat_map(|part| [part.level, part.number, part.crc]).chain([count]);
            place.put(&numbers.flat_map(u32::to_le_bytes).collect::<Vec<_>>())?;
            magic = PARTS_MAGIC;
        }
        let superblock = superblock(0, root, place.at + FOOTER_BYTES as u64);
        crc = summed.crc.value();
        out.write_all(magic)?;
        out.write_all(&crc.to_le_bytes())?;
        out.seek(SeekFrom::Start(0))?;
        out.write_all(&superblock)?;
        out.flush()?;
        file.set_permissions(Permissions::from_mode(0o444))
    });
    written.map_err(RecordingError::io("write", path))?;
    Ok(crc)
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

/// Checks a master and its parts against their checksums; the error is the file with the defect, and what it
/// is. `None`: it has no checksum.
pub(crate) fn check_master(path: &Path) -> Result<Option<()>, (PathBuf, String)> {
    let mut left: Vec<(PathBuf, Option<Entry>)> = vec![(path.to_path_buf(), None)];
    let (mut checked, mut seen) = (None, BTreeSet::new());
    while let Some((file, entry)) = left.pop() {
        // Files of a hostile writer could name each part many times.
        if !seen.insert((file.clone(), entry.map(|entry| entry.crc))) {
            continue;
        }
        let found = check_file(&file).map_err(|what| (file.clone(), what))?;
        match (found, entry) {
            (None, None) => return Ok(None),
            (None, Some(_)) => return Err((file, "its checksum is missing".to_owned())),
            (Some(Checked { crc, .. }), Some(entry)) if crc != entry.crc => {
                return Err((
                    file,
                    format!("its CRC-32 is {crc:08x}, not {:08x} as its master says", entry.crc),
                ));
            }
            (Some(Checked { parts, .. }), _) => {
                checked = Some(());
                for part in parts {
                    if entry.is_some_and(|entry| part.level >= entry.level) {
                        return Err((file, format!("it names a part of level {}", part.level)));
                    }
                    left.push((part_path(path, part.level, part.number), Some(part)));
                }
            }
        }
    }
    Ok(checked)
}

/// Checks one file, without its parts. `None`: it has no checksum.
fn check_file(path: &Path) -> Result<Option<Checked>, String> {
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
    if magic != FOOTER_MAGIC && magic != PARTS_MAGIC {
        return Ok(None);
    } else if !is_superblock(&first, 0) {
        return Err("its superblock is damaged".to_owned());
    } else if crc != body.crc.value().to_le_bytes() {
        return Err(format!("its CRC-32 is {:08x}, not that at its end", body.crc.value()));
    }
    let parts = if magic == PARTS_MAGIC { read_entries(&mut file, bytes).map_err(read)? } else { Vec::new() };
    Ok(Some(Checked { crc: body.crc.value(), parts }))
}

/// Entries of the parts at the end of a file of `bytes`.
fn read_entries(file: &mut File, bytes: u64) -> io::Result<Vec<Entry>> {
    let number = |bytes: &[u8]| bytes.try_into().map(u32::from_le_bytes).unwrap_or(0);
    let end = bytes.saturating_sub(FOOTER_BYTES as u64 + 4);
    file.seek(SeekFrom::Start(end))?;
    let mut count = [0; 4];
    file.read_exact(&mut count)?;
    let count = number(&count);
    let start = end.checked_sub(u64::from(count) * PART_ENTRY_BYTES).filter(|_| count <= FAN_OUT_MAX as u32);
    let start = start.ok_or_else(|| io::Error::other(format!("it cannot have {count} parts")))?;
    file.seek(SeekFrom::Start(start))?;
    let mut entries = vec![0; count as usize * PART_ENTRY_BYTES as usize];
    file.read_exact(&mut entries)?;
    let entry = |bytes: &[u8]| {
        let [level, number, crc] = [&bytes[..4], &bytes[4..8], &bytes[8..]].map(number);
        Entry { level, number, crc }
    };
    Ok(entries.chunks_exact(PART_ENTRY_BYTES as usize).map(entry).collect())
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
    let (streams, parts) = (recording.streams(), &survey.parts);
    let ends = event_ends(recording.gaps(), parts);
    let (images, maps) = (image_streams(&streams, &ends, parts), map_streams(&streams, &ends, parts));
    let detectors = nxmx::detectors(&recording.about().metadata, &images, &maps);
    let of_detectors: BTreeSet<u32> = detectors.iter().flat_map(nxmx::Detector::streams).collect();
    let more: &[&str] = if detectors.is_empty() { &[] } else { &nxmx::ENTRY_NAMES };
    let names = master_names(streams.iter().map(|(&id, stream)| (id, stream.name.as_str())), more);
    let mut entry = Links::default();
    let (images, default) = put_streams(&streams, &names, (survey, &ends, &of_detectors), &mut entry, place)?;
    put_about(recording.about(), start_time, &mut entry, place)?;
    let nodes = nxmx::describe(&detectors, &names, last_time(parts, &of_detectors));
    put_nodes(&nodes, &images, &mut entry, place)?;
    put_root(recording.about(), entry, survey, default, place)
}

/// Writes the groups of the streams. Returns the addresses of their `data`, and the name of the first one
/// with a signal.
fn put_streams<W: Write>(
    streams: &BTreeMap<u32, &StreamInfo>,
    names: &BTreeMap<u32, String>,
    (survey, ends, of_detectors): (&Survey, &BTreeMap<u32, u64>, &BTreeSet<u32>),
    entry: &mut Links,
    place: &mut HdfWriter<'_, W>,
) -> io::Result<(BTreeMap<u32, DataRows>, Option<String>)> {
    let mut images = BTreeMap::new();
    let mut default = None;
    let mut named =
        streams.iter().filter_map(|(&id, &stream)| Some((id, stream, names.get(&id)?))).peekable();
    while named.peek().is_some() {
        // Streams whose maps are in one heap.
        let (mut maps, mut ready) = (Maps::default(), Vec::new());
        while !maps.is_full()
            && let Some((id, stream, name)) = named.next()
        {
            let end = ends.get(&id).copied().unwrap_or(0);
            let parts = survey.parts.get(&id).map(Vec::as_slice).unwrap_or_default();
            let data_links = if of_detectors.contains(&id) { 2 } else { 1 };
            let rows = Rows { stream, end, parts, sources: &survey.sources, data_links };
            let datasets = rows.datasets(&mut maps);
            ready.push((id, name, rows, datasets));
        }
        let heap = place.put_maps(&maps)?;
        for (id, name, rows, datasets) in ready {
            let (group, data) = rows.put(datasets, heap, place)?;
            entry.add(name, group);
            images.extend(data.map(|address| (id, address)));
            if !is_map(&rows.stream.name) && rows.signal().is_some() {
                default.get_or_insert(name.clone());
            }
        }
    }
    Ok((images, default))
}

/// Writes links to the sources, the entry and the root group; returns the address of the latter.
fn put_root<W: Write>(
    about: &About,
    mut entry: Links,
    survey: &Survey,
    default: Option<String>,
    place: &mut HdfWriter<'_, W>,
) -> io::Result<u64> {
    let mut files = Links::default();
    for Source { path, link: (name, object), .. } in &survey.sources {
        files.add_external(name, path, object);
    }
    let collection = [Attribute::Text("NX_class", "NXcollection".into())];
    entry.add("segments", place.put_group(files, &collection)?);
    let mut attributes = vec![Attribute::Text("NX_class", "NXentry".into())];
    attributes.extend(default.map(|name| Attribute::Text("default", name)));
    let entry = place.put_group(entry, &attributes)?;
    let mut root = Links::default();
    root.add("entry", entry);
    place.put_group(
        root,
        &[
            Attribute::Text("NX_class", "NXroot".into()),
            Attribute::Text("default", "entry".into()),
            Attribute::Text("creator", concat!("keepup ", env!("CARGO_PKG_VERSION")).into()),
            Attribute::Text("recording", about.id.to_string()),
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
    parts: &'a BTreeMap<u32, Vec<Part>>,
) -> Vec<MapStream<'a>> {
    let map_stream = |(id, &stream): (&u32, &&'a StreamInfo)| {
        let [part] = &parts.get(id)?[..] else { return None };
        let is_whole = ends.get(id) == Some(&1) && is_map(&stream.name);
        let (file, dataset) = part.map.as_ref().filter(|_| is_whole)?;
        Some(MapStream { name: &stream.name, shape: &stream.shape, file, dataset: dataset.clone() })
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
    !parts.is_empty() && parts.iter().all(|part| part.signal == Some("data"))
}

/// Dataset with the events or their lengths, if every segment has it.
fn signal_of(parts: &[Part]) -> Option<&'static str> {
    let signal = parts.first().map_or(Some("length"), |part| part.signal);
    signal.filter(|_| parts.iter().all(|part| part.signal == signal))
}

/// One past the last known event of each stream, recorded or missing.
fn event_ends(gaps: impl Iterator<Item = Gap>, parts: &BTreeMap<u32, Vec<Part>>) -> BTreeMap<u32, u64> {
    let found = parts
        .iter()
        .flat_map(|(&id, parts)| parts.iter().filter_map(move |part| Some((id, part.rows.last()?.end))));
    let missing = gaps.map(|gap| (gap.stream, gap.first_sequence.saturating_add(gap.events)));
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

    /// Its datasets, whose maps are put into `maps`.
    fn datasets(&self, maps: &mut Maps) -> Vec<Virtual> {
        let element = ElementKind::of(self.stream.element);
        let mut datasets = vec![
            self.dataset(maps, "sequence", ElementKind::U64, &[]),
            self.dataset(maps, "timestamp", ElementKind::U64, &[]),
            self.dataset(maps, "valid", ElementKind::U8, &[]),
        ];
        datasets.extend(self.signal().map(|name| match name {
            "data" => self.dataset(maps, name, element, &self.stream.shape),
            _ => self.dataset(maps, name, ElementKind::U64, &[]),
        }));
        datasets
    }

    fn dataset(&self, maps: &mut Maps, name: &'static str, element: ElementKind, row: &[u64]) -> Virtual {
        let runs: Vec<Run<'_>> = self.parts.iter().flat_map(|part| self.runs(part, name, row)).collect();
        let mappings = runs.iter().map(|run| Mapping {
            file: run.file,
            dataset: &run.dataset,
            from: Selection { rows: &run.from, row },
            to: Selection { rows: run.to, row },
        });
        let dimensions = std::iter::once(self.end).chain(row.iter().copied()).collect();
        // Not every version of HDF5 opens a virtual dataset without sources.
        let object = (!runs.is_empty()).then(|| maps.add(mappings));
        Virtual { name, element, dimensions, object }
    }

    /// Writes the datasets, whose maps are in the global heap at `heap`, and their group. Returns the
    /// addresses of the group and of its `data`.
    fn put<W: Write>(
        &self,
        datasets: Vec<Virtual>,
        heap: u64,
        place: &mut HdfWriter<'_, W>,
    ) -> io::Result<(u64, Option<DataRows>)> {
        let mut links = Links::default();
        let (mut valid, mut data) = (0, None);
        for Virtual { name, element, dimensions, object } in datasets {
            let storage = object.map_or(Storage::Nowhere, |object| Storage::Virtual { heap, object });
            let dataset = Dataset { element, dimensions, storage, fill: Vec::new(), attributes: Vec::new() };
            let address = match name {
                "data" | "valid" => place.put_linked_dataset(&dataset, self.data_links)?,
                _ => place.put_linked_dataset(&dataset, 1)?,
            };
            links.add(name, address);
            match name {
                "valid" => valid = address,
                "data" => data = Some(DataRows { data: address, valid }),
                _ => {}
            }
        }
        let signal = self.signal();
        let mut attributes = attributes(self.stream, signal);
        if signal.is_none() {
            attributes.push(Attribute::Text("left_out", LEFT_OUT.to_owned()));
        }
        // HDF5 shows rows of a segment that it cannot open as missing.
        attributes
            .push(Attribute::Number("events", self.parts.iter().map(|part| part.events).saturating_sum()));
        Ok((place.put_group(links, &attributes)?, data))
    }

    /// Mappings of a source: one, or one per range if a single one cannot express them.
    fn runs<'p>(&'p self, part: &'p Part, name: &str, row: &[u64]) -> Vec<Run<'p>> {
        let Some(source) = self.sources.get(part.source) else { return Vec::new() };
        let Some(group) = source.names.get(&self.stream.id) else { return Vec::new() };
        let dataset = format!("{}/{group}/{name}", source.base);
        let run = |from: Vec<Range<u64>>, to: &'p [Range<u64>]| Run {
            file: &source.path,
            dataset: dataset.clone(),
            from,
            to,
        };
        let ranges =
            part.firsts.iter().zip(&part.rows).map(|(first, rows)| *first..first + (rows.end - rows.start));
        let from = joined(ranges.clone());
        let is_expressible = |rows: &[Range<u64>]| Selection { rows, row }.is_expressible();
        if is_expressible(&part.rows) && is_expressible(&from) {
            return vec![run(from, &part.rows)];
        }
        ranges.zip(part.rows.chunks(1)).map(|(from, to)| run(vec![from], to)).collect()
    }
}

/// A dataset over others.
struct Virtual {
    name: &'static str,
    element: ElementKind,
    dimensions: Vec<u64>,
    /// Object with its map, if it has rows anywhere.
    object: Option<u16>,
}

/// Rows of a source's dataset and their destination.
struct Run<'a> {
    file: &'a str,
    dataset: String,
    from: Vec<Range<u64>>,
    to: &'a [Range<u64>],
}

#[cfg(test)]
#[path = "master_tests.rs"]
mod tests;
