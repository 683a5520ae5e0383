//! Summary of a recording, from its journals and indexes: no event is read.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use keepup_stream::ledger::{Count, LossCause};
use keepup_stream::rejected::Rejected;
use keepup_stream::wire::StreamInfo;
use serde::{Deserialize, Serialize};

use crate::access::walk;
use crate::archived::{ArchiveStates, ArchivedSegments};
use crate::duplicates::duplicates;
use crate::error::RecordingError;
use crate::id::Id;
use crate::journal::{DamagedLine, Rotation};
use crate::manifest::{Keep, Origin, Placement};
use crate::reader::Recording;
use crate::retention::{Drained, KeepUntil, RemovedStream};
use crate::seal::{SegmentLookup, StreamSummary};
use crate::volume::{Segment, Volume};

/// Summary of a recording.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordingInfo {
    /// Its name.
    pub name: String,
    /// Its identity.
    pub recording: Id,
    /// Run number, where runs are numbered.
    pub run: Option<u64>,
    /// Metadata.
    pub metadata: BTreeMap<String, String>,
    /// State of completion.
    pub state: State,
    /// Creation time, ns since the Unix epoch.
    pub created_unix_ns: u64,
    /// For a copy, its original.
    pub origin: Option<Origin>,
    /// Version of the keepup that wrote it.
    pub tool_version: String,
    /// Placement of blocks on the volumes.
    pub placement: Placement,
    /// Retention limit; `None` keeps everything.
    pub keep: Option<Keep>,
    /// Reductions applied to events before they were written.
    pub reductions: Vec<String>,
    /// NeXus master, if there is one.
    pub master: Option<PathBuf>,
    /// Volumes found.
    pub volumes: Vec<VolumeInfo>,
    /// Archives in object stores.
    #[serde(default)]
    pub archives: Vec<ArchiveInfo>,
    /// State files of archives that cannot be used, with the reasons.
    #[serde(default)]
    pub archive_faults: Vec<String>,
    /// Volumes taken out of rotation and brought back, in order.
    pub rotations: Vec<Rotation>,
    /// Volumes that were not found, as given at recording time.
    pub missing_volumes: Vec<PathBuf>,
    /// Unusable journal lines; the information in them is missing here.
    pub damaged_lines: Vec<DamagedLine>,
    /// Data that arrived and were not recorded.
    #[serde(default)]
    pub rejected: Vec<Rejected>,
    /// Streams, by id; only durable events count.
    pub streams: BTreeMap<u32, StreamSummaryInfo>,
}

/// State of completion of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// A recorder is writing it.
    BeingMade,
    /// It ended as requested, and everything received is present.
    Clean,
    /// It ended otherwise, and all of it is sealed.
    Unclean {
        /// Reason for the end.
        reason: String,
    },
    /// It was interrupted and has not been recovered.
    CutOff,
}

/// Part of a recording on one volume.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VolumeInfo {
    /// Directory.
    pub directory: PathBuf,
    /// Number of sealed segments.
    pub sealed: usize,
    /// Number of unsealed segments.
    pub open: usize,
    /// Durable bytes, payload and overhead.
    pub bytes: u64,
    /// Of the sealed segments, those that are durable at another recorder, in a sink or in a directory, where
    /// drains note this: in recordings with a retention limit that needs it.
    #[serde(default)]
    pub drained: Option<usize>,
    /// Of the sealed segments, those that an archive in an object store has confirmed.
    #[serde(default)]
    pub archived: usize,
    /// State of each segment, from [`info_with_segments`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<SegmentInfo>,
}

/// One segment on a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentInfo {
    /// Number on its volume.
    pub index: u32,
    /// Durable bytes, payload and overhead.
    pub bytes: u64,
    /// Whether it is sealed.
    pub sealed: bool,
    /// Whether all its events are known to be durable at another recorder, in a sink or in a directory.
    pub drained: bool,
    /// Whether an archive in an object store has confirmed it.
    pub archived: bool,
}

/// One archive of a recording, according to the state file of the copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveInfo {
    /// Address of the archive.
    pub to: String,
    /// Confirmed segments, including those that were removed from their volumes.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Of these, segments with a damaged block.
    pub damaged: u64,
}

/// One stream.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StreamSummaryInfo {
    /// Its declaration.
    #[serde(flatten)]
    pub info: StreamInfo,
    /// Events recorded.
    pub events: u64,
    /// Events removed by the retention limit.
    pub removed: Count,
    /// Payload bytes of the recorded events; unknown for unsealed segments.
    pub payload_bytes: Option<u64>,
    /// Sequence number of its first event.
    pub first_sequence: Option<u64>,
    /// Sequence number of its last event.
    pub last_sequence: Option<u64>,
    /// Time of its earliest event, ns since the Unix epoch.
    pub first_timestamp_ns: Option<u64>,
    /// Time of its latest event.
    pub last_timestamp_ns: Option<u64>,
    /// Events that are missing, by cause.
    pub missing: BTreeMap<LossCause, u64>,
}

/// Summarizes a recording, without its segments. Reads one index per segment; for unsealed segments, the
/// block headers.
///
/// # Errors
/// A segment or a state file of an archive cannot be read, or an index is damaged.
pub fn info(recording: &Recording) -> Result<RecordingInfo, RecordingError> {
    let mut info = info_with_segments(recording)?;
    info.volumes.iter_mut().for_each(|volume| volume.segments.clear());
    Ok(info)
}

/// Like [`info`], with the state of each segment.
///
/// # Errors
/// As [`info`].
pub fn info_with_segments(recording: &Recording) -> Result<RecordingInfo, RecordingError> {
    let manifest = recording.manifest();
    let mut streams: BTreeMap<u32, StreamSummaryInfo> =
        recording.streams().into_iter().map(|(id, info)| (id, StreamSummaryInfo::new(info))).collect();
    let archives = archives(recording);
    let mut volumes = Vec::new();
    for volume in recording.volumes() {
        let copies = Copies::read(volume, &archives)?;
        let mut segments = Vec::new();
        for segment in volume.segments() {
            let summaries = summaries(volume, segment)?;
            segments.push(copies.describe(segment, &summaries));
            for summary in summaries {
                if let Some(stream) = streams.get_mut(&summary.stream) {
                    stream.add(&summary, segment.is_ended());
                }
            }
        }
        volumes.push(VolumeInfo::new(volume, segments, copies.drained.is_some()));
    }
    // A block that is on two volumes counts once.
    for duplicate in duplicates(recording.volumes().iter()).values().flatten() {
        if let Some(stream) = streams.get_mut(&duplicate.stream) {
            let Count { events, bytes } = duplicate.count;
            stream.events = stream.events.saturating_sub(events);
            stream.payload_bytes = stream.payload_bytes.map(|known| known.saturating_sub(bytes));
        }
    }
    for (id, removed) in recording.removed() {
        if let Some(stream) = streams.get_mut(&id) {
            stream.removed = removed.count();
        }
    }
    for gap in recording.gaps() {
        if let Some(stream) = streams.get_mut(&gap.stream) {
            let missing = stream.missing.entry(gap.cause).or_default();
            *missing = missing.saturating_add(gap.events);
        }
    }
    Ok(RecordingInfo {
        name: manifest.name.clone(),
        recording: manifest.recording,
        run: manifest.run,
        metadata: manifest.metadata.clone(),
        state: state(recording),
        created_unix_ns: manifest.created_unix_ns,
        origin: manifest.origin.clone(),
        tool_version: manifest.tool_version.clone(),
        placement: manifest.placement,
        keep: manifest.keep,
        reductions: manifest.reductions.clone(),
        master: recording.has_master().then(|| recording.master_path()),
        volumes,
        archives: archives.archives().map(ArchiveInfo::new).collect(),
        archive_faults: archives
            .faults()
            .map(|(path, what)| format!("cannot use {}: {what}", path.display()))
            .collect(),
        rotations: recording.rotations(),
        missing_volumes: recording.missing().to_vec(),
        damaged_lines: recording.damaged_lines().cloned().collect(),
        rejected: recording.rejected(),
        streams,
    })
}

/// What archives have confirmed.
pub(crate) fn archives(recording: &Recording) -> ArchiveStates {
    let first = recording.volumes().iter().find(|volume| volume.manifest().volume_index == 0);
    let dir = first.map_or(Path::new(""), Volume::dir);
    let mut archives = ArchiveStates::new(dir, recording.manifest().recording, None);
    if first.is_some() {
        archives.poll();
    }
    archives
}

/// Copies of the segments of one volume elsewhere.
struct Copies<'a> {
    volume: u32,
    drained: Option<Drained>,
    archives: &'a ArchiveStates,
}

impl<'a> Copies<'a> {
    fn read(volume: &Volume, archives: &'a ArchiveStates) -> Result<Self, RecordingError> {
        let manifest = volume.manifest();
        let is_noted = manifest.keep.is_some_and(|keep| !keep.disposable && keep.until == KeepUntil::Drained);
        let read = || Drained::read(volume.dir(), manifest.recording);
        let drained = is_noted.then(read).transpose()?;
        Ok(Self { volume: manifest.volume_index, drained, archives })
    }

    fn describe(&self, segment: &Segment, streams: &[StreamSummary]) -> SegmentInfo {
        let (index, bytes, sealed) = (segment.index, segment.file_bytes(), segment.is_ended());
        let end = |summary: &StreamSummary| RemovedStream {
            end_sequence: summary.last_sequence.saturating_add(1),
            ..RemovedStream::default()
        };
        let ends: Vec<_> = streams.iter().map(|summary| (summary.stream, end(summary))).collect();
        let is_in = |archive: &ArchivedSegments| {
            archive.segments.get(&(self.volume, index)).is_some_and(|found| found.bytes == bytes)
        };
        SegmentInfo {
            index,
            bytes,
            sealed,
            drained: sealed && self.drained.as_ref().is_some_and(|drained| drained.has(index, &ends)),
            archived: sealed && self.archives.archives().any(is_in),
        }
    }
}

impl VolumeInfo {
    fn new(volume: &Volume, segments: Vec<SegmentInfo>, is_drain_noted: bool) -> Self {
        let count = |is_it: fn(&SegmentInfo) -> bool| segments.iter().filter(|s| is_it(s)).count();
        let sealed = count(|segment| segment.sealed);
        Self {
            directory: volume.dir().to_path_buf(),
            sealed,
            open: segments.len() - sealed,
            bytes: segments.iter().map(|segment| segment.bytes).fold(0, u64::saturating_add),
            drained: is_drain_noted.then(|| count(|segment| segment.drained)),
            archived: count(|segment| segment.archived),
            segments,
        }
    }
}

impl ArchiveInfo {
    fn new(archive: &ArchivedSegments) -> Self {
        let segments = || archive.segments.values();
        Self {
            to: archive.to.clone(),
            segments: segments().count() as u64,
            bytes: segments().map(|segment| segment.bytes).fold(0, u64::saturating_add),
            damaged: segments().filter(|segment| segment.intact == Some(false)).count() as u64,
        }
    }
}

fn summaries(volume: &Volume, segment: &Segment) -> Result<Vec<StreamSummary>, RecordingError> {
    if segment.is_ended() {
        return Ok(SegmentLookup::open(segment)?.streams);
    }
    let mut streams: BTreeMap<u32, StreamSummary> = BTreeMap::new();
    walk(volume, segment, &mut |stream, block| {
        let summary = streams.entry(stream).or_insert(StreamSummary { stream, ..StreamSummary::none() });
        summary.events += u64::from(block.events);
        summary.first_sequence = summary.first_sequence.min(block.first_sequence);
        summary.last_sequence = summary.last_sequence.max(block.end().saturating_sub(1));
        summary.first_timestamp_ns = summary.first_timestamp_ns.min(block.first_timestamp_ns);
        summary.last_timestamp_ns = summary.last_timestamp_ns.max(block.last_timestamp_ns);
    })?;
    Ok(streams.into_values().collect())
}

/// State of completion, from the journals alone.
pub fn state(recording: &Recording) -> State {
    let volumes = recording.volumes();
    let sealed = volumes.iter().flat_map(|volume| volume.segments()).all(Segment::is_ended);
    if recording.is_being_made() {
        return State::BeingMade;
    } else if !recording.is_ended() || !sealed {
        return State::CutOff;
    }
    match volumes.iter().filter_map(|volume| volume.end()).find(|end| !end.clean) {
        Some(end) => State::Unclean { reason: end.reason.clone() },
        None => State::Clean,
    }
}

impl StreamSummaryInfo {
    fn new(info: &StreamInfo) -> Self {
        Self {
            info: info.clone(),
            events: 0,
            removed: Count::default(),
            payload_bytes: Some(0),
            first_sequence: None,
            last_sequence: None,
            first_timestamp_ns: None,
            last_timestamp_ns: None,
            missing: BTreeMap::new(),
        }
    }

    fn add(&mut self, summary: &StreamSummary, is_sealed: bool) {
        self.events += summary.events;
        let bytes = is_sealed.then_some(summary.payload_bytes);
        self.payload_bytes = self.payload_bytes.zip(bytes).map(|(known, more)| known + more);
        let earlier = |known: Option<u64>, new: u64| known.into_iter().chain([new]).min();
        self.first_sequence = earlier(self.first_sequence, summary.first_sequence);
        self.last_sequence = self.last_sequence.max(Some(summary.last_sequence));
        self.first_timestamp_ns = earlier(self.first_timestamp_ns, summary.first_timestamp_ns);
        self.last_timestamp_ns = self.last_timestamp_ns.max(Some(summary.last_timestamp_ns));
    }
}
