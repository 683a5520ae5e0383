//! One volume's part of a recording, according to its manifest and journal.
//!
//! Invariant: journal records are accepted only if they are consistent with earlier ones, so that
//! segments are numbered without holes and watermarks never go back. Damaged journal lines are
//! skipped and listed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use keepup_error::Cause;
use keepup_stream::ledger::{Explained, Gap, LossCause};
use keepup_stream::rejected::{Rejected, Rejections};
use keepup_stream::wire::{SEQUENCE_END, StreamInfo};

use crate::error::RecordingError;
use crate::files::{open_regular, read_fully_at};
use crate::id::Id;
use crate::journal::{
    DamagedLine, JOURNAL_FILE, JournalReader, JournalRecord, Rotation, RotationState, StreamEnd, TornTail,
};
use crate::layout::{ChannelBytes, LayoutError, SECTOR, SegmentIdentity, parse_preamble, segment_file_name};
use crate::manifest::{MANIFEST_FILE, Manifest, ManifestSum};
use crate::ranges::Ranges;
use crate::retention::{Removed, RemovedStream};

/// Defect of a journal that belongs to another recording.
const FOREIGN: &str = "it is of another recording or volume than the manifest";

/// Most removed segments with lost lines: bounds the memory that one number in a file can cause.
const LOST_SEGMENTS_MAX: u32 = 1 << 20;

/// State of one volume's part of a recording.
#[derive(Clone, Debug)]
pub struct Volume {
    dir: PathBuf,
    manifest: Manifest,
    /// Checksums of the manifest and of the one that it replaced, from the journal.
    manifest_sums: Vec<ManifestSum>,
    has_begun: bool,
    /// All segments, including removed ones.
    segments: Vec<Segment>,
    removed: Removed,
    streams: BTreeMap<u32, StreamInfo>,
    /// First sequence numbers of streams that do not start at 0.
    starts: BTreeMap<u32, u64>,
    gaps: Vec<Gap>,
    explained: Vec<Explained>,
    /// Stream and sequence numbers of events that recovery found again.
    found: Vec<(u32, Range<u64>)>,
    rejections: Rejections,
    rotations: Vec<Rotation>,
    end: Option<End>,
    torn_tail: Option<TornTail>,
    damaged_lines: Vec<DamagedLine>,
    /// Whether the journal belongs to another recording or volume.
    is_foreign: bool,
}

/// Gaps in the journals of `volumes`, by stream and position: every missing event once, with the cause that
/// became known, without events that were found again.
pub(crate) fn gaps<'a>(volumes: impl Iterator<Item = &'a Volume>) -> Vec<Gap> {
    let (mut gaps, mut explained, mut found) = (Vec::new(), BTreeMap::new(), Vec::new());
    for volume in volumes {
        gaps.extend_from_slice(&volume.gaps);
        found.extend_from_slice(&volume.found);
        for &Explained { stream, end_sequence, cause } in &volume.explained {
            let known = explained.entry(stream).or_insert((end_sequence, cause));
            *known = (end_sequence.max(known.0), cause);
        }
    }
    for gap in gaps.iter_mut().filter(|gap| gap.cause == LossCause::SequenceGap) {
        let cause = explained.get(&gap.stream).filter(|(end, _)| gap.first_sequence < *end);
        gap.cause = cause.map_or(gap.cause, |(_, cause)| *cause);
    }
    // Of several causes the first is the more specific one.
    gaps.sort_by_key(|gap| (gap.stream, gap.first_sequence, gap.cause, gap.events));
    found.sort_by_key(|(stream, events)| (*stream, events.start));
    let found: BTreeMap<u32, Ranges> = found
        .chunk_by(|a, b| a.0 == b.0)
        .filter_map(|part| {
            Some((part.first()?.0, Ranges::join(part.iter().map(|(_, events)| events.clone()))))
        })
        .collect();
    let (mut all, mut at) = (Vec::with_capacity(gaps.len()), (0, 0));
    for gap in gaps {
        let end = gap.first_sequence.saturating_add(gap.events);
        let start = if at.0 == gap.stream { gap.first_sequence.max(at.1) } else { gap.first_sequence };
        if start >= end {
            continue;
        }
        at = (gap.stream, end);
        let span = start..end;
        let parts = found.get(&gap.stream).map_or_else(|| vec![span.clone()], |found| found.outside(&span));
        let part =
            |part: Range<u64>| Gap { first_sequence: part.start, events: part.end - part.start, ..gap };
        all.extend(parts.into_iter().map(part));
    }
    all
}

/// Reads the preamble of a segment, or returns its defect.
pub(crate) fn preamble(file: &File) -> io::Result<Result<SegmentIdentity, LayoutError>> {
    let mut sector = [0; SECTOR];
    let read = read_fully_at(file, &mut sector, 0)?;
    Ok(parse_preamble(&sector[..read]))
}

/// Removed events of each stream, over all volumes.
pub(crate) fn removed<'a>(volumes: impl Iterator<Item = &'a Volume>) -> BTreeMap<u32, RemovedStream> {
    let mut streams: BTreeMap<u32, RemovedStream> = BTreeMap::new();
    for (&id, stream) in volumes.flat_map(|volume| &volume.removed.streams) {
        streams.entry(id).or_default().add(stream);
    }
    streams
}

/// Rejected data in the journals of `volumes`, without repetition.
pub(crate) fn rejected<'a>(volumes: impl Iterator<Item = &'a Volume>) -> Vec<Rejected> {
    let mut all = Rejections::default();
    for row in volumes.flat_map(Volume::rejected) {
        all.raise(&row);
    }
    all.rows()
}

/// First sequence numbers of streams that do not start at 0, over all volumes.
pub(crate) fn starts<'a>(volumes: impl Iterator<Item = &'a Volume>) -> BTreeMap<u32, u64> {
    let mut starts: BTreeMap<u32, u64> = BTreeMap::new();
    for (&id, &start) in volumes.flat_map(|volume| &volume.starts) {
        let known = starts.entry(id).or_insert(start);
        *known = start.min(*known);
    }
    starts
}

/// A segment listed in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Number of the segment on its volume.
    pub index: u32,
    /// Its identity.
    pub id: Id,
    /// Its file.
    pub path: PathBuf,
    /// Progress.
    pub state: SegmentState,
}

/// Progress of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentState {
    /// In progress, or interrupted.
    Open {
        /// Everything below this offset is durable, bytes.
        durable_bytes: u64,
        /// Blocks below that offset.
        blocks: u64,
    },
    /// Complete.
    Ended {
        /// Length of the file including its tail, bytes.
        bytes: u64,
        /// End of its blocks and start of its tail, bytes.
        data_bytes: u64,
        /// Blocks in it.
        blocks: u64,
    },
}

/// A journal's end record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Whether the run ended as requested and everything received is durable.
    pub clean: bool,
    /// Reason for the end.
    pub reason: String,
    /// Final counts over all volumes.
    pub streams: Vec<StreamEnd>,
}

impl Segment {
    /// Blocks below this offset may be read: they are complete and durable. Bytes.
    pub fn readable_bytes(&self) -> u64 {
        match self.state {
            SegmentState::Open { durable_bytes, .. } => durable_bytes,
            SegmentState::Ended { data_bytes, .. } => data_bytes,
        }
    }

    /// Used bytes of the file: blocks, and the tail if there is one.
    pub fn file_bytes(&self) -> u64 {
        match self.state {
            SegmentState::Open { durable_bytes, .. } => durable_bytes,
            SegmentState::Ended { bytes, .. } => bytes,
        }
    }

    /// Blocks below [`readable_bytes`](Self::readable_bytes).
    pub fn readable_blocks(&self) -> u64 {
        match self.state {
            SegmentState::Open { blocks, .. } | SegmentState::Ended { blocks, .. } => blocks,
        }
    }

    /// Whether it is complete.
    pub fn is_ended(&self) -> bool {
        matches!(self.state, SegmentState::Ended { .. })
    }
}

impl Volume {
    /// A volume before its journal is read.
    pub fn new(dir: &Path, manifest: Manifest) -> Volume {
        Volume {
            dir: dir.to_path_buf(),
            manifest,
            manifest_sums: Vec::new(),
            has_begun: false,
            segments: Vec::new(),
            removed: Removed::default(),
            streams: BTreeMap::new(),
            starts: BTreeMap::new(),
            gaps: Vec::new(),
            explained: Vec::new(),
            found: Vec::new(),
            rejections: Rejections::default(),
            rotations: Vec::new(),
            end: None,
            torn_tail: None,
            damaged_lines: Vec::new(),
            is_foreign: false,
        }
    }

    /// Directory of the recording on this volume.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Expected preamble of this volume's segment `index`, with a creation time of 0.
    pub fn identity(&self, index: u32, id: Id) -> SegmentIdentity {
        SegmentIdentity {
            recording: self.manifest.recording,
            segment: id,
            volume_index: self.manifest.volume_index,
            segment_index: index,
            created_unix_ns: 0,
        }
    }

    /// Existing segments, by number.
    pub fn segments(&self) -> &[Segment] {
        self.segments.get(self.removed.first_segment as usize..).unwrap_or_default()
    }

    /// The segment of this number, if it was started and not removed.
    pub fn segment(&self, index: u32) -> Option<&Segment> {
        self.segments.get(index as usize).filter(|_| index >= self.removed.first_segment)
    }

    /// Number of the next segment to start.
    pub fn next_segment(&self) -> u32 {
        self.segments.len() as u32
    }

    /// Events removed by the retention limit.
    pub fn removed(&self) -> &Removed {
        &self.removed
    }

    /// Streams that this volume's journal declares, by id.
    pub fn streams(&self) -> &BTreeMap<u32, StreamInfo> {
        &self.streams
    }

    /// First sequence numbers of streams that do not start at 0, by id.
    pub fn starts(&self) -> &BTreeMap<u32, u64> {
        &self.starts
    }

    /// End record, if the run has ended.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Data that arrived and were not recorded, according to this volume's journal.
    pub(crate) fn rejected(&self) -> Vec<Rejected> {
        self.rejections.rows()
    }

    /// Volumes taken out of rotation and brought back, according to this volume's journal.
    pub fn rotations(&self) -> &[Rotation] {
        &self.rotations
    }

    /// Whether this volume's own journal says that it failed: its segments may be unsealed.
    pub fn has_failed(&self) -> bool {
        let own = self.manifest.volume_index;
        self.rotations.iter().any(|r| r.volume == own && r.state == RotationState::Failed)
    }

    /// Number of journal lines about losses, their causes and found events.
    pub(crate) fn gap_lines(&self) -> usize {
        self.gaps.len() + self.explained.len() + self.found.len()
    }

    /// Torn last line of the journal.
    pub fn torn_tail(&self) -> Option<TornTail> {
        self.torn_tail
    }

    /// Unusable journal lines, the first hundred, and a damaged manifest.
    pub fn damaged_lines(&self) -> &[DamagedLine] {
        &self.damaged_lines
    }

    /// Reports a journal without a begin record, unless it is being written.
    pub(crate) fn report_missing_begin(&mut self) {
        let (file, what) = (self.dir.join(JOURNAL_FILE), "it has no begin record".to_owned());
        self.damaged_lines.push(DamagedLine { file, line: 1, offset: 0, what });
    }

    /// Whether the journal has a begin record, or another line that implies one.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Reads the whole journal, skipping damaged lines.
    ///
    /// # Errors
    /// The journal is missing, belongs to another recording or volume, or cannot be read.
    pub(crate) fn read_journal(&mut self) -> Result<(), RecordingError> {
        // Needed to distinguish removed segments from those with lost lines.
        self.read_removed()?;
        // Before the journal, which has the checksum of a new manifest before the manifest is replaced.
        let found = ManifestSum::read(&self.dir)?;
        let mut journal = JournalReader::open(&self.dir)?;
        self.damaged_lines = journal.read_past_damage(&mut |record| self.apply_past_damage(record))?;
        self.torn_tail = journal.torn_tail();
        self.check_manifest(found);
        if !self.is_foreign {
            return Ok(());
        }
        let foreign = self.damaged_lines.iter().find(|line| line.what == FOREIGN);
        let (line, offset) = foreign.map_or((1, 0), |foreign| (foreign.line, foreign.offset));
        let path = self.dir.join(JOURNAL_FILE);
        Err(RecordingError::JournalLine { path, line, offset, what: FOREIGN.to_owned() })
    }

    /// Whether the journal has a checksum of the manifest.
    pub fn has_manifest_sum(&self) -> bool {
        !self.manifest_sums.is_empty()
    }

    /// Compares the manifest with its checksum. That of the manifest before is accepted too: a crash may have
    /// come between the journal's line and the new manifest.
    fn check_manifest(&mut self, found: ManifestSum) {
        let Some(last) = self.manifest_sums.last().filter(|_| !self.manifest_sums.contains(&found)) else {
            return;
        };
        let what = format!(
            "it has {} bytes with the CRC-32 {:08x}, and the journal has {} bytes with {:08x}; name, times, \
             run or \
             metadata may be wrong",
            found.bytes, found.crc32, last.bytes, last.crc32
        );
        let file = self.dir.join(MANIFEST_FILE);
        self.damaged_lines.push(DamagedLine { file, line: 0, offset: 0, what });
    }

    /// Applies a record that may follow lost lines.
    fn apply_past_damage(&mut self, record: JournalRecord) -> Result<(), String> {
        if self.is_foreign {
            return Err("it stands behind that".to_owned());
        }
        match record {
            JournalRecord::Segment { index, .. } => self.find_segments(index),
            JournalRecord::Watermark { segment: index, .. } | JournalRecord::SegmentEnd { index, .. } => {
                self.find_segments(index.saturating_add(1));
            }
            _ => {}
        }
        let is_first = !self.has_begun && !matches!(record, JournalRecord::Begin { .. });
        self.has_begun |= is_first;
        self.apply(record)?;
        if is_first { Err("there is no begin record before it".to_owned()) } else { Ok(()) }
    }

    /// Adds segments below `end` with lost lines, if their files exist or were removed.
    pub(crate) fn find_segments(&mut self, end: u32) {
        while self.segments.len() < end as usize {
            let index = self.segments.len() as u32;
            let path = self.dir.join(segment_file_name(index));
            let state = SegmentState::Open { durable_bytes: 0, blocks: 0 };
            if index < self.removed.first_segment.min(LOST_SEGMENTS_MAX) {
                self.segments.push(Segment { index, id: Id::default(), path, state });
                continue;
            }
            let found = open_regular(&path).and_then(|file| preamble(&file)).ok().and_then(Result::ok);
            match found {
                Some(found) if self.is_own(&found, index) => {
                    self.segments.push(Segment { index, id: found.segment, path, state });
                }
                _ => return,
            }
        }
    }

    /// Whether a preamble is that of this volume's segment `index`, with any segment identity.
    pub(crate) fn is_own(&self, found: &SegmentIdentity, index: u32) -> bool {
        self.identity(index, found.segment) == SegmentIdentity { created_unix_ns: 0, ..*found }
    }

    /// Applies new journal lines; returns whether there were any.
    pub(crate) fn catch_up(&mut self, journal: &mut JournalReader) -> Result<bool, RecordingError> {
        let has_grown = journal.poll(&mut |record| self.apply(record))?;
        self.read_removed()?;
        self.torn_tail = journal.torn_tail();
        Ok(has_grown)
    }

    /// Applies new removals.
    pub(crate) fn read_removed(&mut self) -> Result<(), RecordingError> {
        if self.manifest.keep.is_some() {
            self.removed = Removed::read(&self.dir, &self.manifest)?;
        }
        Ok(())
    }

    /// Applies one journal record; the error is the contradiction.
    pub(crate) fn apply(&mut self, record: JournalRecord) -> Result<(), String> {
        if self.end.is_some() && !matches!(record, JournalRecord::Recover { .. }) {
            return Err("it stands behind the end record".to_owned());
        } else if !self.has_begun && !matches!(record, JournalRecord::Begin { .. }) {
            return Err("it stands before the begin record".to_owned());
        }
        match record {
            JournalRecord::Begin { recording, volume, .. } => self.begin(recording, volume),
            JournalRecord::Manifest(sum) => {
                let before = self.manifest_sums.len().saturating_sub(1);
                self.manifest_sums.drain(..before);
                self.manifest_sums.push(sum);
                Ok(())
            }
            JournalRecord::Stream(stream) => self.add_stream(stream),
            JournalRecord::Start { stream, first_sequence } => self.add_start(stream, first_sequence),
            JournalRecord::Segment { index, id, file, .. } => self.add_segment(index, id, &file),
            JournalRecord::Watermark { segment, written_bytes, durable_bytes, blocks } => {
                if durable_bytes > written_bytes || !durable_bytes.is_multiple_of(SECTOR as u64) {
                    return Err("its durable offset is odd or beyond what was written".to_owned());
                }
                self.advance(segment, SegmentState::Open { durable_bytes, blocks })
            }
            JournalRecord::SegmentEnd { index, bytes, data_bytes, blocks } => {
                if data_bytes == 0 || data_bytes >= bytes || !data_bytes.is_multiple_of(SECTOR as u64) {
                    return Err("its length is not that of a segment".to_owned());
                }
                self.advance(index, SegmentState::Ended { bytes, data_bytes, blocks })
            }
            JournalRecord::Gap(gap) => {
                if gap.events == 0 || gap.first_sequence.checked_add(gap.events).is_none() {
                    return Err("its gap is empty or overflows".to_owned());
                }
                self.gaps.push(gap);
                Ok(())
            }
            JournalRecord::Rejected(row) => {
                self.rejections.raise(&row);
                Ok(())
            }
            JournalRecord::Explained(explained) => {
                self.explained.push(explained);
                Ok(())
            }
            JournalRecord::Rotation(rotation) => {
                self.rotations.push(rotation);
                Ok(())
            }
            JournalRecord::Recover { .. } => {
                self.end = None;
                Ok(())
            }
            JournalRecord::Found { stream, first_sequence, events } => {
                let end = first_sequence.checked_add(events).filter(|_| events > 0);
                let end = end.ok_or("it is empty or overflows")?;
                self.found.push((stream, first_sequence..end));
                Ok(())
            }
            JournalRecord::End { clean, reason, streams } => {
                self.end = Some(End { clean, reason, streams });
                Ok(())
            }
        }
    }

    fn begin(&mut self, recording: Id, volume: Id) -> Result<(), String> {
        if self.has_begun {
            return Err("it is a second begin record".to_owned());
        } else if (recording, volume) != (self.manifest.recording, self.manifest.volume) {
            self.is_foreign = true;
            return Err(FOREIGN.to_owned());
        }
        self.has_begun = true;
        Ok(())
    }

    fn add_stream(&mut self, stream: StreamInfo) -> Result<(), String> {
        ChannelBytes::new(&stream).map_err(|error| Cause::of(&error).to_text())?;
        stream.check_shape()?;
        match self.streams.insert(stream.id, stream) {
            None => Ok(()),
            Some(known) => Err(format!("it declares stream {} a second time", known.id)),
        }
    }

    fn add_start(&mut self, stream: u32, first_sequence: u64) -> Result<(), String> {
        if first_sequence == 0 || first_sequence >= SEQUENCE_END {
            return Err(format!("stream {stream} cannot start at event {first_sequence}"));
        }
        if self.starts.contains_key(&stream) {
            return Err(format!("it states the start of stream {stream} a second time"));
        }
        self.starts.insert(stream, first_sequence);
        Ok(())
    }

    fn add_segment(&mut self, index: u32, id: Id, file: &str) -> Result<(), String> {
        let name = segment_file_name(index);
        if index as usize != self.segments.len() {
            return Err(format!("it is segment {index}, the next is {}", self.segments.len()));
        } else if file != name {
            return Err(format!("its segment {index} is not called {name}"));
        }
        let state = SegmentState::Open { durable_bytes: 0, blocks: 0 };
        self.segments.push(Segment { index, id, path: self.dir.join(name), state });
        Ok(())
    }

    fn advance(&mut self, index: u32, state: SegmentState) -> Result<(), String> {
        let Some(segment) = self.segments.get_mut(index as usize) else {
            return Err(format!("it is of segment {index}, that was not begun"));
        };
        if segment.is_ended() {
            return Err(format!("it is of segment {index}, that has ended"));
        }
        let next = Segment { state, ..segment.clone() };
        let is_back = next.readable_bytes() < segment.readable_bytes()
            || next.readable_blocks() < segment.readable_blocks();
        if is_back {
            return Err(format!("it takes segment {index} back to an earlier point"));
        }
        segment.state = state;
        Ok(())
    }
}
