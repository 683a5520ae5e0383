//! Summary of a recording, from its journals and indexes: no event is read.
use std::collections::BTreeMap;
use std::path::PathBuf;

use keepup_stream::ledger::{Count, LossCause};
use keepup_stream::wire::StreamInfo;
use serde::{Deserialize, Serialize};

use crate::access::walk;
use crate::duplicates::duplicates;
use crate::error::RecordingError;
use crate::id::Id;
use crate::journal::{DamagedLine, Rotation};
use crate::manifest::{Keep, Origin, Placement};
use crate::reader::Recording;
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
    /// Volumes taken out of rotation and brought back, in order.
    pub rotations: Vec<Rotation>,
    /// Volumes that were not found, as given at recording time.
    pub missing_volumes: Vec<PathBuf>,
    /// Unusable journal lines; the information in them is missing here.
    pub damaged_lines: Vec<DamagedLine>,
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

/// Summarizes a recording. Reads one index per segment; for unsealed segments, the block headers.
///
/// # Errors
/// A segment cannot be read, or its index is damaged.
pub fn info(recording: &Recording) -> Result<RecordingInfo, RecordingError> {
    let manifest = recording.manifest();
    let mut streams: BTreeMap<u32, StreamSummaryInfo> =
        recording.streams().into_iter().map(|(id, info)| (id, StreamSummaryInfo::new(info))).collect();
    for volume in recording.volumes() {
        for segment in volume.segments() {
            for summary in summaries(volume, segment)? {
                if let Some(stream) = streams.get_mut(&summary.stream) {
                    stream.add(&summary, segment.is_ended());
                }
            }
        }
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
    let volumes = recording.volumes().iter().map(|volume| {
        let sealed = volume.segments().iter().filter(|segment| segment.is_ended()).count();
        VolumeInfo {
            directory: volume.dir().to_path_buf(),
            sealed,
            open: volume.segments().len() - sealed,
            bytes: volume.segments().iter().map(Segment::file_bytes).fold(0, u64::saturating_add),
        }
    });
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
        volumes: volumes.collect(),
        rotations: recording.rotations(),
        missing_volumes: recording.missing().to_vec(),
        damaged_lines: recording.damaged_lines().cloned().collect(),
        streams,
    })
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
