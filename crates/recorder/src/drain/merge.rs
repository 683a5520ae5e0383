//! Merges the blocks of several volumes so that every stream's blocks come in order.
//!
//! A volume has a stream's blocks in order, except those that were placed again after another
//! volume failed or was slow. The location of such a block is remembered, and it is read again
//! when its turn comes. The merge waits for a missing block as long as a volume may still deliver
//! it. It skips the block when the journals list it as lost, or when part of a volume is
//! unreadable and nothing has come for [`SETTLE_NS`]. Memory is bounded by one block per volume
//! and [`DEFERRED_MAX`] locations.
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use keepup_measure::sum::Sums;
use keepup_recording::error::RecordingError;
use keepup_recording::follow::Follower;
use keepup_recording::id::Id;
use keepup_recording::journal::RotationState;
use keepup_recording::layout::BlockHeader;
use keepup_recording::reader::{Events, SegmentReader};
use keepup_recording::retention::Drained;
use keepup_stream::rejected::Rejected;
use keepup_stream::wire::{SentRecording, StreamInfo};

use super::cursor::{BLOCK_BYTES_MAX, BlockLocation, Cursor, LoadedBlock, copy_block};
use super::delivery::{Deliver, Delivery, Resume};
use super::missing::Losses;
use crate::RecorderError;

/// Most blocks set aside; reading stops at that number until one of them is sent.
const DEFERRED_MAX: usize = 1 << 16;
/// Most skipped ranges remembered per stream.
const SKIPPED_MAX: usize = 1000;
/// How long to wait for a block that may have been on an unreadable volume, counted from when a
/// later block was read: another volume may have taken it over and must write its earlier blocks
/// first. In nanoseconds.
const SETTLE_NS: u64 = 10_000_000_000;

/// Result of one step.
pub(super) enum Step {
    /// A block was handed over.
    Sent { until_ns: u64 },
    /// A block was set aside or skipped; take another step.
    Deferred,
    /// Nothing more is readable now; `is_settling` when blocks already read will be sent after a
    /// wait.
    Nothing { is_settling: bool },
    /// The recording has ended and everything readable was handed over.
    Ended,
}

/// A block that was read and not handed over yet.
struct DeferredBlock {
    first_sequence: u64,
    end_sequence: u64,
    seen_ns: u64,
    /// Its locations: two volumes when a write that was reported failed reached the disk after
    /// all.
    places: Vec<BlockLocation>,
    /// Why it cannot be handed over when it has no location.
    why: String,
}

/// Progress of one stream.
#[derive(Default)]
struct Progress {
    /// First sequence number of the stream.
    start: u64,
    /// Number of the next block to hand over.
    block: u64,
    /// One past the last event handed over or missing.
    sequence: u64,
    /// One past the last number that was delivered, in a block or as a loss.
    delivered: u64,
    /// Events handed over, and missing events that no journal lists as lost.
    accounted: u64,
    /// Highest `sequence` ever reached: events sent again count once.
    reached: u64,
    deferred: BTreeMap<u64, DeferredBlock>,
    /// Numbers of skipped blocks.
    skipped: Vec<Range<u64>>,
    /// First event that was skipped though no journal lists it as lost.
    first_skipped: Option<u64>,
}

/// Position of a stream's first block that was read and not handed over.
#[derive(Clone, Copy)]
struct First {
    block: u64,
    first_sequence: u64,
    seen_ns: u64,
    /// Volume that has it as its head; `None` when it was set aside.
    head: Option<usize>,
}

/// All volumes of a recording, merged.
pub(super) struct Merge {
    follower: Follower,
    cursors: Vec<Cursor>,
    streams: BTreeMap<u32, Progress>,
    deferred: usize,
    pub(super) losses: Losses,
}

impl Merge {
    pub(super) fn open(directories: &[PathBuf]) -> Result<Self, RecordingError> {
        let follower = Follower::open(directories)?;
        let cursors = follower.volumes().iter().map(|_| Cursor::default()).collect();
        let mut merge =
            Self { follower, cursors, streams: BTreeMap::new(), deferred: 0, losses: Losses::default() };
        merge.review();
        Ok(merge)
    }

    /// Reads new lines of the journals.
    pub(super) fn poll(&mut self) {
        self.follower.poll();
        self.review();
    }

    /// Notes where streams start, failed volumes and unreadable journals.
    fn review(&mut self) {
        for (stream, start) in self.follower.starts() {
            let progress = || Progress {
                start,
                sequence: start,
                delivered: start,
                reached: start,
                ..Progress::default()
            };
            self.streams.entry(stream).or_insert_with(progress);
        }
        for (at, cursor) in self.cursors.iter_mut().enumerate() {
            let mut noted = Vec::new();
            if let Some(fault) = self.follower.fault(at)
                && !std::mem::replace(&mut cursor.is_silent, true)
            {
                noted.push(fault.to_string());
            }
            if let Some((RotationState::Failed, why)) = self.follower.rotation(at)
                && !std::mem::replace(&mut cursor.has_failed, true)
            {
                noted.push(format!("{} failed: {why}", self.follower.volumes()[at].dir().display()));
            }
            for what in noted {
                self.losses.faults.push(what.clone());
                cursor.impaired = Some(what);
            }
        }
    }

    /// Description of the recording for the other side; `None` when its manifest has values that
    /// a hello cannot carry.
    pub(super) fn sent_recording(&self) -> Option<SentRecording> {
        let manifest = self.follower.volumes().first()?.manifest();
        Some(manifest.sent()).filter(SentRecording::is_valid)
    }

    /// Streams that the journals declare so far, with their first sequence numbers.
    pub(super) fn streams(&self) -> impl Iterator<Item = (&StreamInfo, u64)> {
        let infos = self.follower.volumes().iter().flat_map(|volume| volume.streams().values());
        infos.map(|info| (info, self.streams.get(&info.id).map_or(0, |progress| progress.start)))
    }

    /// Writes the drain marks on every volume, given that each stream is durable elsewhere up to
    /// `ends`; only for a recording with a retention limit. No mark passes a skipped event.
    pub(super) fn mark_drained(&mut self, mut ends: BTreeMap<u32, u64>) {
        let segments: Vec<u32> = self.cursors.iter_mut().map(|cursor| cursor.marks.drained(&ends)).collect();
        for (stream, end) in &mut ends {
            let limit = self.streams.get(stream).and_then(|progress| progress.first_skipped);
            *end = limit.map_or(*end, |limit| limit.min(*end));
        }
        for ((volume, cursor), segments) in
            self.follower.volumes().iter().zip(&mut self.cursors).zip(segments)
        {
            let manifest = volume.manifest();
            if manifest.keep.is_none_or(|keep| keep.disposable) {
                continue;
            }
            if let Err(error) = Drained::enter(volume.dir(), manifest.recording, &ends, segments)
                && !std::mem::replace(&mut cursor.is_unmarked, true)
            {
                self.losses.faults.push(error.to_string());
            }
        }
    }

    /// Data that the recording has rejected, so far.
    pub(super) fn rejected(&self) -> Vec<Rejected> {
        self.follower.rejected()
    }

    /// Identity of the recording.
    pub(super) fn recording(&self) -> Option<Id> {
        self.follower.volumes().first().map(|volume| volume.manifest().recording)
    }

    /// Restarts at the first segments that are not durable elsewhere; the streams in `resume`
    /// continue from there, the others from their position.
    pub(super) fn rewind(&mut self, resume: &Resume) {
        for (stream, &(block, sequence)) in resume {
            let progress = self.streams.entry(*stream).or_default();
            (progress.sequence, progress.delivered) = (sequence, sequence);
            if let Some(block) = block {
                progress.block = block;
                progress.skipped.retain(|blocks| blocks.start < block);
            }
        }
        self.streams.values_mut().for_each(|progress| progress.deferred.clear());
        self.deferred = 0;
        for (cursor, volume) in self.cursors.iter_mut().zip(self.follower.volumes()) {
            cursor.rewind(volume);
        }
    }

    /// Durable bytes that have not been read.
    pub(super) fn behind_bytes(&self) -> u64 {
        self.follower
            .volumes()
            .iter()
            .zip(&self.cursors)
            .map(|(volume, cursor)| cursor.behind_bytes(volume))
            .saturating_sum()
    }

    /// Durable bytes that have been read, once each.
    pub(super) fn passed_bytes(&self) -> u64 {
        self.cursors.iter().map(|cursor| cursor.passed_bytes).saturating_sum()
    }

    /// Whether a recorder is writing the recording.
    pub(super) fn is_being_made(&self) -> bool {
        !self.follower.is_ended() && self.follower.is_being_made()
    }

    /// Blocks that were read and wait for earlier ones.
    pub(super) fn held_back(&self) -> usize {
        self.deferred + self.cursors.iter().filter(|cursor| cursor.head.is_some()).count()
    }

    /// Hands over the next block in order, if there is one.
    pub(super) fn step(&mut self, now_ns: u64, deliver: &mut Deliver<'_>) -> Result<Step, RecorderError> {
        for at in 0..self.cursors.len() {
            if self.cursors[at].head.is_none() {
                self.load(at, now_ns);
            }
        }
        for at in 0..self.cursors.len() {
            let Some(head) = &self.cursors[at].head else { continue };
            let turn = self.streams.get(&head.header.stream).map_or(0, |progress| progress.block);
            if head.header.stream_block <= turn
                && let Some(head) = self.cursors[at].head.take()
            {
                return if head.header.stream_block == turn {
                    self.hand_over(&head, deliver)
                } else {
                    self.handle_late(&head);
                    Ok(Step::Deferred)
                };
            }
        }
        let can_bring_more =
            !(0..self.cursors.len()).all(|at| self.cursors[at].head.is_some() || self.is_over(at));
        let has_space = self.deferred < DEFERRED_MAX;
        let has_head = self.cursors.iter().any(|cursor| cursor.head.is_some());
        let is_impaired = self.cursors.iter().any(|cursor| cursor.impaired.is_some());
        let may_settle = is_impaired && !self.is_any_resting();
        let mut waits = false;
        for (stream, first) in self.firsts() {
            let is_old = may_settle && now_ns.saturating_sub(first.seen_ns) >= SETTLE_NS;
            let is_all = !(can_bring_more || has_head && has_space);
            if self.is_turn(stream, first) || self.is_explained(stream, first) || is_old || is_all {
                return self.hand_over_first(stream, first, now_ns, deliver);
            }
            waits = true;
        }
        if has_head && has_space {
            self.defer_heads();
            return Ok(Step::Deferred);
        }
        Ok(if can_bring_more || waits {
            Step::Nothing { is_settling: waits && may_settle }
        } else {
            Step::Ended
        })
    }

    /// Whether a volume will deliver nothing more.
    fn is_over(&self, at: usize) -> bool {
        let has_failed = matches!(self.follower.rotation(at), Some((RotationState::Failed, _)));
        let has_ended = self.follower.volumes()[at].end().is_some() || self.follower.fault(at).is_some();
        has_failed || has_ended || self.cursors[at].is_dead()
    }

    /// Whether a volume that is out of rotation for being slow may still write blocks.
    fn is_any_resting(&self) -> bool {
        let rests =
            |at| matches!(self.follower.rotation(at), Some((RotationState::Slow, _))) && !self.is_over(at);
        (0..self.cursors.len()).any(rests)
    }

    /// First block of each stream that was read and not handed over.
    fn firsts(&self) -> Vec<(u32, First)> {
        let mut firsts: BTreeMap<u32, First> = BTreeMap::new();
        for (&stream, progress) in &self.streams {
            if let Some((&block, deferred)) = progress.deferred.first_key_value() {
                let (first_sequence, seen_ns) = (deferred.first_sequence, deferred.seen_ns);
                firsts.insert(stream, First { block, first_sequence, seen_ns, head: None });
            }
        }
        for (at, held) in self.cursors.iter().enumerate().filter_map(|(at, c)| Some((at, c.head.as_ref()?))) {
            let BlockHeader { stream, stream_block: block, first_sequence, .. } = held.header;
            let first = First { block, first_sequence, seen_ns: held.seen_ns, head: Some(at) };
            let known = firsts.entry(stream).or_insert(first);
            if block < known.block {
                *known = first;
            }
        }
        firsts.into_iter().collect()
    }

    fn is_turn(&self, stream: u32, first: First) -> bool {
        first.block == self.streams.get(&stream).map_or(0, |progress| progress.block)
    }

    /// Whether the journals list everything before a block as lost.
    fn is_explained(&mut self, stream: u32, first: First) -> bool {
        let start = self.streams.get(&stream).map_or(0, |progress| progress.sequence);
        let lost = self.follower.lost(stream, start..first.first_sequence);
        let events: u64 = lost.iter().map(|gap| gap.events).saturating_sum();
        events > 0 && start.saturating_add(events) == first.first_sequence
    }

    fn defer_heads(&mut self) {
        for at in 0..self.cursors.len() {
            if let Some(LoadedBlock { header, place, seen_ns, .. }) = self.cursors[at].head.take()
                && let Some(deferred) = self.deferred_entry(&header, seen_ns)
            {
                deferred.places.push(place);
            }
        }
    }

    /// Entry of a block that waits for its turn; `None` when its turn has passed.
    fn deferred_entry(&mut self, header: &BlockHeader, seen_ns: u64) -> Option<&mut DeferredBlock> {
        let progress = self.streams.entry(header.stream).or_default();
        if header.stream_block < progress.block {
            return None;
        }
        Some(progress.deferred.entry(header.stream_block).or_insert_with(|| {
            self.deferred += 1;
            DeferredBlock {
                first_sequence: header.first_sequence,
                end_sequence: header.first_sequence.saturating_add(header.event_count.into()),
                seen_ns,
                places: Vec::new(),
                why: String::new(),
            }
        }))
    }

    /// Handles a block that comes after its number was handed over or skipped.
    fn handle_late(&mut self, held: &LoadedBlock) {
        let BlockHeader { stream, stream_block, .. } = held.header;
        let skipped =
            self.streams.get(&stream).map(|progress| progress.skipped.as_slice()).unwrap_or_default();
        if skipped.iter().any(|blocks| blocks.contains(&stream_block)) {
            self.cursors[held.place.volume].marks.skipped(held.place.segment);
            self.losses.faults.push(format!(
                "block {stream_block} of stream {stream} came after later ones were sent and is skipped"
            ));
        }
    }

    /// Hands over a stream's first block, and enters what is missing before it.
    fn hand_over_first(
        &mut self,
        stream: u32,
        first: First,
        now_ns: u64,
        deliver: &mut Deliver<'_>,
    ) -> Result<Step, RecorderError> {
        if let Some(held) = first.head.and_then(|at| self.cursors[at].head.take()) {
            return self.hand_over(&held, deliver);
        }
        let deferred =
            self.streams.get_mut(&stream).and_then(|progress| progress.deferred.remove(&first.block));
        let Some(DeferredBlock { end_sequence, places, mut why, .. }) = deferred else {
            return Ok(Step::Deferred);
        };
        self.deferred -= 1;
        for place in &places {
            match self.read_again(*place, now_ns) {
                Ok(held) if (held.header.stream, held.header.stream_block) == (stream, first.block) => {
                    return self.hand_over(&held, deliver);
                }
                Ok(_) => why = "another block is in its place now".to_owned(),
                Err(error) => why = error,
            }
        }
        places.iter().for_each(|place| self.cursors[place.volume].marks.skipped(place.segment));
        self.advance(stream, first.block, first.first_sequence);
        let progress = self.streams.entry(stream).or_default();
        (progress.block, progress.sequence) = (first.block + 1, end_sequence.max(progress.sequence));
        note_skipped(&mut progress.skipped, first.block..first.block + 1);
        progress.first_skipped.get_or_insert(first.first_sequence);
        let start = first.first_sequence.max(progress.reached);
        progress.accounted += self.losses.miss(stream, (start, end_sequence), &[], &why);
        progress.reached = progress.reached.max(end_sequence);
        Ok(Step::Deferred)
    }

    fn read_again(&self, place: BlockLocation, now_ns: u64) -> Result<LoadedBlock, String> {
        let volume = &self.follower.volumes()[place.volume];
        let Some(segment) = volume.segment(place.segment) else {
            return Err("its segment was removed before it was sent".to_owned());
        };
        let read = || {
            let mut reader = SegmentReader::open(volume, segment, BLOCK_BYTES_MAX)?;
            let held = copy_block(&reader.block_at(place.offset, segment.readable_bytes())?, place, now_ns)?;
            Ok::<LoadedBlock, RecorderError>(held)
        };
        read().map_err(|error| error.to_string())
    }

    fn hand_over(&mut self, held: &LoadedBlock, deliver: &mut Deliver<'_>) -> Result<Step, RecorderError> {
        let header = &held.header;
        self.advance(header.stream, header.stream_block, header.first_sequence);
        let progress = self.streams.entry(header.stream).or_default();
        let gaps = self.follower.lost(header.stream, progress.delivered..header.first_sequence);
        let events = Events::new(header.first_sequence, &held.records);
        let end = header.first_sequence.saturating_add(header.event_count.into());
        let block = Some((header, events));
        let until_ns =
            deliver(Delivery { info: &held.info, start: progress.start, gaps: &gaps, end, block })?;
        progress.block = header.stream_block.saturating_add(1);
        (progress.sequence, progress.delivered) = (end, end);
        progress.accounted += progress.sequence.saturating_sub(progress.reached.max(header.first_sequence));
        progress.reached = progress.reached.max(progress.sequence);
        Ok(Step::Sent { until_ns })
    }

    /// Enters what is missing of a stream before `block`, which starts with event `sequence`.
    fn advance(&mut self, stream: u32, block: u64, sequence: u64) {
        let cause = impairments(&self.cursors);
        self.pass(stream, sequence, &cause);
        let progress = self.streams.entry(stream).or_default();
        if block > progress.block {
            note_skipped(&mut progress.skipped, progress.block..block);
            progress.block = block;
        }
    }

    /// Enters everything up to `sequence` that was not handed over as missing, each event once; `cause`
    /// explains what no journal lists.
    fn pass(&mut self, stream: u32, sequence: u64, cause: &str) {
        let progress = self.streams.entry(stream).or_default();
        let start = progress.sequence.max(progress.reached);
        if sequence > start {
            let lost = self.follower.lost(stream, start..sequence);
            let unexplained = self.losses.miss(stream, (start, sequence), &lost, cause);
            progress.accounted = progress.accounted.saturating_add(unexplained);
            progress.reached = sequence;
            if unexplained > 0 {
                progress.first_skipped.get_or_insert(start);
            }
        }
    }

    /// Delivers what is missing at the end of each stream of a recording that has ended.
    pub(super) fn conclude(&mut self, deliver: &mut Deliver<'_>) -> Result<(), RecorderError> {
        let ends =
            self.follower.volumes().iter().filter_map(|volume| volume.end()).flat_map(|end| &end.streams);
        let ends: BTreeMap<u32, u64> = ends.map(|end| (end.id, end.durable.events)).collect();
        let cause = impairments(&self.cursors);
        for info in self.infos() {
            let progress = self.streams.entry(info.id).or_default();
            // Events that are durable and were not found stand where no loss is listed.
            let mut rest = ends.get(&info.id).map_or(0, |durable| durable.saturating_sub(progress.accounted));
            let mut end = progress.sequence;
            for gap in self.follower.lost(info.id, end..u64::MAX) {
                rest = rest.saturating_sub(gap.first_sequence.saturating_sub(end));
                end = gap.first_sequence.saturating_add(gap.events);
            }
            end = end.saturating_add(rest).max(progress.reached);
            self.pass(info.id, end, &cause);
            self.deliver_losses(&info, end, deliver)?;
        }
        Ok(())
    }

    /// Delivers the losses that directly follow the last delivery of each stream: nothing else will come
    /// before them.
    pub(super) fn deliver_known_losses(&mut self, deliver: &mut Deliver<'_>) -> Result<(), RecorderError> {
        for info in self.infos() {
            let progress = self.streams.entry(info.id).or_default();
            let start = progress.delivered;
            let mut end = start;
            for gap in self.follower.lost(info.id, start..u64::MAX) {
                if gap.first_sequence != end {
                    break;
                }
                end = end.saturating_add(gap.events);
            }
            self.pass(info.id, end, "");
            self.deliver_losses(&info, end, deliver)?;
        }
        Ok(())
    }

    /// Delivers losses of a stream up to `end`, behind everything else.
    fn deliver_losses(
        &mut self,
        info: &StreamInfo,
        end: u64,
        deliver: &mut Deliver<'_>,
    ) -> Result<(), RecorderError> {
        let progress = self.streams.entry(info.id).or_default();
        if progress.delivered < end {
            let gaps = self.follower.lost(info.id, progress.delivered..end);
            deliver(Delivery { info, start: progress.start, gaps: &gaps, end, block: None })?;
            progress.delivered = end;
        }
        Ok(())
    }

    /// Streams that the journals declare, by id.
    fn infos(&self) -> Vec<StreamInfo> {
        let infos = self.follower.volumes().iter().flat_map(|volume| volume.streams());
        infos.collect::<BTreeMap<_, _>>().into_values().cloned().collect()
    }

    /// Loads a volume's next block into its head; skips what cannot be read.
    fn load(&mut self, at: usize, now_ns: u64) {
        loop {
            let loaded = self.cursors[at].load(at, &self.follower.volumes()[at], now_ns);
            let Err(error) = loaded else { return };
            self.poll();
            if self.cursors[at].segment < self.follower.volumes()[at].removed().first_segment {
                continue;
            }
            let (damaged, what) = self.cursors[at].skip(&self.follower.volumes()[at], &error);
            self.losses.faults.push(what.clone());
            // The header tells its position: its events are entered as missing when their turn
            // comes.
            if let Some(deferred) = damaged.and_then(|header| self.deferred_entry(&header, now_ns)) {
                deferred.why = what;
            }
        }
    }
}

/// Descriptions of what cannot be read, of all volumes.
fn impairments(cursors: &[Cursor]) -> String {
    let all: Vec<&str> = cursors.iter().filter_map(|cursor| cursor.impaired.as_deref()).collect();
    if all.is_empty() { "no journal has the cause".to_owned() } else { all.join("; ") }
}

/// Remembers skipped blocks; above the limit, the blocks between two ranges count as skipped too.
fn note_skipped(skipped: &mut Vec<Range<u64>>, blocks: Range<u64>) {
    let is_full = skipped.len() >= SKIPPED_MAX;
    match skipped.last_mut() {
        Some(last) if is_full || last.end == blocks.start => last.end = blocks.end,
        _ => skipped.push(blocks),
    }
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
