//! Streams of a set: events in the union of its recordings, duplicates and missing events.
//!
//! Invariants: only indexes and block headers are read, except for the comparison of duplicates; a missing
//! event has a cause in a journal, may be in a recording that is not here, or is a fault; the account follows
//! from facts, which may come from other hosts, and from digests of duplicates.

mod compare;
mod holders;

pub use compare::{Digest, DigestRequest, DigestResult, Digests, digest};

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;

use keepup_measure::sum::Sums;
use keepup_stream::ledger::{Gap, LossCause};
use keepup_stream::rejected::{Rejected, Rejections, makes_incomplete};
use keepup_stream::wire::StreamInfo;
use serde::{Deserialize, Serialize};

use super::SetMove;
use crate::duplicates::blocks_of;
use crate::error::RecordingError;
use crate::id::Id;
use crate::info::{RecordingInfo, State, StreamSummaryInfo};
use crate::journal::JOURNAL_FILE;
use crate::merged::check_declarations;
use crate::ranges::{Ranges, Seen};
use crate::reader::Recording;
use crate::retention::RemovedStream;

/// Account of the streams of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetAccount {
    /// Streams, by id.
    pub streams: BTreeMap<u32, SetStream>,
    /// Data that arrived and were not recorded, over all recordings that are here.
    #[serde(default)]
    pub rejected: Vec<Rejected>,
    /// Hosts with a recording that is not, or not completely, here.
    pub incomplete_hosts: Vec<String>,
    /// Faults of the set as a whole. Faults of a single recording are in its own report.
    pub faults: Vec<String>,
}

/// A stream in the union of all recordings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetStream {
    /// Its name.
    pub name: String,
    /// Hosts with recordings of it, in the order of the set.
    pub hosts: Vec<String>,
    /// Events; one that is in several recordings counts once.
    pub events: u64,
    /// Copies of events beyond the first: events that are in two recordings, if none is in three.
    pub duplicates: u64,
    /// Duplicates with another payload than the first copy; `None` where they were not compared.
    pub different: Option<u64>,
    /// Payload bytes of the events without duplicates; `None` where unknown without reading events.
    pub payload_bytes: Option<u64>,
    /// Lowest sequence number.
    pub first_sequence: Option<u64>,
    /// Highest sequence number.
    pub last_sequence: Option<u64>,
    /// Time of the earliest event, ns since the Unix epoch.
    pub first_timestamp_ns: Option<u64>,
    /// Time of the latest event.
    pub last_timestamp_ns: Option<u64>,
    /// Events that are in no recording here, by their cause in a journal.
    pub missing: BTreeMap<LossCause, u64>,
    /// Events removed by the retention limit.
    pub removed: u64,
    /// Other events that are in no recording here. They may be in a recording that is not here, or not
    /// recovered; otherwise they are a fault.
    pub unexplained: u64,
    /// Whether its last recording is complete and ended cleanly. Otherwise later events may be missing.
    pub is_end_known: bool,
}

impl SetAccount {
    /// Whether all events of all streams are here, up to ends that are known.
    pub fn is_complete(&self) -> bool {
        let is_complete = |stream: &SetStream| {
            let missing = stream.missing.values().any(|events| *events > 0) || stream.unexplained > 0;
            !missing && stream.is_end_known && stream.different.unwrap_or(0) == 0
        };
        let events = self.streams.values().map(|stream| stream.events).fold(0, u64::saturating_add);
        let is_whole = self.incomplete_hosts.is_empty() && !makes_incomplete(&self.rejected, events);
        self.faults.is_empty() && is_whole && self.streams.values().all(is_complete)
    }
}

/// Missing sequence numbers and their cause in a journal.
type KnownGap = (Range<u64>, LossCause);

/// What a recording says about its streams: all that the account of a set needs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordingFacts {
    /// Identity.
    pub recording: Id,
    /// Directory on its first volume.
    pub directory: PathBuf,
    /// State of completion.
    pub state: State,
    /// Whether all its volumes were found.
    is_complete: bool,
    /// Whether a line with a declaration may be lost.
    is_damaged: bool,
    /// Declared streams.
    streams: BTreeMap<u32, StreamSummaryInfo>,
    /// Sequence numbers in its blocks, by stream.
    seen: BTreeMap<u32, Seen>,
    /// First sequence numbers of streams that do not start at 0.
    starts: BTreeMap<u32, u64>,
    /// Removed by the retention limit.
    removed: BTreeMap<u32, RemovedStream>,
    /// Missing events in the journals.
    pub gaps: Vec<Gap>,
    /// Data that arrived and were not recorded.
    #[serde(default)]
    rejected: Vec<Rejected>,
}

impl RecordingFacts {
    pub(super) fn read(recording: &Recording, info: &RecordingInfo) -> Result<Self, RecordingError> {
        Ok(RecordingFacts {
            recording: info.recording,
            directory: recording.volumes().first().map(|volume| volume.dir().into()).unwrap_or_default(),
            state: info.state.clone(),
            is_complete: info.missing_volumes.is_empty(),
            is_damaged: !info.damaged_lines.is_empty(),
            streams: info.streams.clone(),
            seen: seen(recording)?,
            starts: recording.starts(),
            removed: recording.removed(),
            gaps: recording.gaps(),
            rejected: recording.rejected(),
        })
    }

    /// Whether it is complete, and ended as requested.
    fn is_clean(&self) -> bool {
        self.state == State::Clean && self.is_complete
    }

    /// Whether it has ended, or was recovered.
    fn is_settled(&self) -> bool {
        !matches!(self.state, State::BeingMade | State::CutOff)
    }

    /// Payload bytes of a stream, if known.
    fn payload_bytes(&self, id: u32) -> Option<u64> {
        self.streams.get(&id).map_or(Some(0), |stream| stream.payload_bytes)
    }
}

/// A recording of a set.
#[derive(Clone, Copy)]
pub(super) struct Found<'a> {
    pub(super) host: &'a str,
    /// Whether it is not, or not completely, here.
    pub(super) is_incomplete: bool,
    /// Its facts, or why they cannot be read; `None` if it is not here.
    pub(super) facts: Option<&'a Result<RecordingFacts, String>>,
}

/// Summarizes the streams of a set. With `digests`, compares the payloads of duplicates by their CRC-32,
/// which reads the events that are in several recordings.
pub(super) fn account<'a>(
    moves: &'a [SetMove],
    found: impl Iterator<Item = Found<'a>>,
    digests: Option<&mut dyn Digests>,
) -> SetAccount {
    let mut accounting = Accounting::new(moves, found);
    digests.into_iter().for_each(|digests| accounting.compare(digests));
    accounting.conclude()
}

/// The facts of a host.
#[derive(Clone, Copy)]
struct Part<'a> {
    host: &'a str,
    facts: &'a RecordingFacts,
}

struct Accounting<'a> {
    parts: Vec<Part<'a>>,
    infos: BTreeMap<u32, &'a StreamInfo>,
    moves: &'a [SetMove],
    /// Hosts whose streams moved to others.
    left: BTreeSet<&'a str>,
    account: SetAccount,
}

impl<'a> Accounting<'a> {
    fn new(moves: &'a [SetMove], found: impl Iterator<Item = Found<'a>>) -> Self {
        let left = moves.iter().map(|moved| moved.from.as_str()).collect();
        let account = SetAccount::default();
        let mut all = Self { parts: Vec::new(), infos: BTreeMap::new(), moves, left, account };
        for Found { host, is_incomplete, facts } in found {
            match facts {
                Some(Ok(facts)) => all.parts.push(Part { host, facts }),
                Some(Err(error)) => all.account.faults.push(format!("host {host}: {error}")),
                None => {}
            }
            if is_incomplete || matches!(facts, Some(Err(_))) {
                all.account.incomplete_hosts.push(host.to_owned());
            }
        }
        let declarations = all.parts.iter().map(|Part { facts, .. }| {
            let streams = facts.streams.iter().map(|(id, stream)| (*id, &stream.info));
            (facts.directory.join(JOURNAL_FILE), streams)
        });
        all.account.faults.extend(check_declarations(declarations).err().map(|error| error.to_string()));
        for Part { host, facts } in &all.parts {
            for (&id, stream) in &facts.streams {
                all.infos.entry(id).or_insert(&stream.info);
                all.account.streams.entry(id).or_default().add(host, stream);
            }
        }
        all.count();
        all
    }

    /// Counts events and duplicates.
    fn count(&mut self) {
        for (id, stream) in &mut self.account.streams {
            let of_stream = || self.parts.iter().filter_map(|part| part.facts.seen.get(id));
            let mut union = Seen::default();
            let stored = of_stream().flat_map(Seen::ranges).map(length).fold(0, u64::saturating_add);
            of_stream().flat_map(Seen::ranges).for_each(|range| drop(union.add(range)));
            stream.events = union.ranges().map(length).saturating_sum();
            stream.duplicates = stored.saturating_sub(stream.events);
            if stream.duplicates > 0 {
                let event_bytes = self.infos.get(id).and_then(|info| fixed_event_bytes(info));
                stream.payload_bytes =
                    event_bytes.zip(stream.payload_bytes).and_then(|(event, stored_bytes)| {
                        let is_fixed = stored.checked_mul(event) == Some(stored_bytes);
                        is_fixed.then(|| stream.events * event)
                    });
            }
        }
    }

    fn conclude(mut self) -> SetAccount {
        let mut account = std::mem::take(&mut self.account);
        let mut rejections = Rejections::default();
        for row in self.parts.iter().flat_map(|part| &part.facts.rejected) {
            rejections.merge(row);
        }
        account.rejected = rejections.rows();
        let (gaps, mut removed) = (self.gaps(), self.removed());
        for (&id, stream) in &mut account.streams {
            let union = Ranges::join(self.sorted(id).into_iter());
            let gaps = gaps.get(&id).map(Vec::as_slice).unwrap_or_default();
            let removed = removed.entry(id).or_default();
            let gaps_end = gaps.last().map_or(0, |(range, _)| range.end);
            let end = self.end(id).max(gaps_end).max(removed.end_sequence);
            let mut first = None;
            for hole in union.outside(&(self.first_expected(id, &account.incomplete_hosts)..end)) {
                if stream.explain(&hole, gaps, removed) > 0 {
                    first.get_or_insert(hole);
                }
            }
            stream.is_end_known = self.is_end_known(id);
            let may_be_elsewhere = !account.incomplete_hosts.is_empty() || !self.is_settled(id);
            if let Some(hole) = first.filter(|_| !may_be_elsewhere) {
                let (events, start, last) = (stream.unexplained, hole.start, hole.end - 1);
                account.faults.push(format!(
                    "stream {id}: {events} events are missing, the first between {start} and {last}, and no \
                     journal says why"
                ));
            }
        }
        account
    }

    /// Ranges of all recordings of a stream, by start.
    fn sorted(&self, id: u32) -> Vec<Range<u64>> {
        let of_stream = self.parts.iter().filter_map(|part| part.facts.seen.get(&id));
        let mut ranges: Vec<Range<u64>> = of_stream.flat_map(Seen::ranges).collect();
        ranges.sort_by_key(|range| range.start);
        ranges
    }

    /// Gaps in the journals, by stream and position. They do not overlap: of several causes the first counts.
    fn gaps(&self) -> BTreeMap<u32, Vec<KnownGap>> {
        let mut streams: BTreeMap<u32, (Seen, Vec<KnownGap>)> = BTreeMap::new();
        for gap in self.parts.iter().flat_map(|part| &part.facts.gaps) {
            let (seen, gaps) = streams.entry(gap.stream).or_default();
            let fresh = seen.add(gap.first_sequence..gap.first_sequence.saturating_add(gap.events));
            gaps.extend(fresh.into_iter().map(|range| (range, gap.cause)));
        }
        let sorted = |(id, (_, mut gaps)): (u32, (Seen, Vec<KnownGap>))| {
            gaps.sort_by_key(|(range, _)| range.start);
            (id, gaps)
        };
        streams.into_iter().map(sorted).collect()
    }

    /// Events removed by the retention limit, by stream.
    fn removed(&self) -> BTreeMap<u32, RemovedStream> {
        let mut streams: BTreeMap<u32, RemovedStream> = BTreeMap::new();
        for (id, more) in self.parts.iter().flat_map(|part| &part.facts.removed) {
            streams.entry(*id).or_default().add(more);
        }
        streams
    }

    /// Whether all recordings of the stream have ended.
    fn is_settled(&self, id: u32) -> bool {
        let mut of_stream = self.parts.iter().filter(|part| part.declares(id));
        of_stream.all(|part| part.facts.is_settled())
    }
}

impl SetStream {
    fn add(&mut self, host: &str, found: &StreamSummaryInfo) {
        let is_first = self.hosts.is_empty();
        if is_first {
            (self.name, self.payload_bytes) = (found.info.name.clone(), Some(0));
        }
        self.hosts.push(host.to_owned());
        let bytes = self.payload_bytes.zip(found.payload_bytes);
        self.payload_bytes = bytes.map(|(known, more)| known.saturating_add(more));
        let earlier = |known: Option<u64>, new: Option<u64>| known.into_iter().chain(new).min();
        self.first_sequence = earlier(self.first_sequence, found.first_sequence);
        self.last_sequence = self.last_sequence.max(found.last_sequence);
        self.first_timestamp_ns = earlier(self.first_timestamp_ns, found.first_timestamp_ns);
        self.last_timestamp_ns = self.last_timestamp_ns.max(found.last_timestamp_ns);
        self.removed = self.removed.saturating_add(found.removed.events);
    }

    /// Enters the causes of a hole in the union; returns how many of its events have none.
    fn explain(&mut self, hole: &Range<u64>, gaps: &[KnownGap], removed: &mut RemovedStream) -> u64 {
        let mut left = length(hole.clone());
        let first = gaps.partition_point(|(gap, _)| gap.end <= hole.start);
        for (gap, cause) in gaps[first..].iter().take_while(|(gap, _)| gap.start < hole.end) {
            let within = length(gap.start.max(hole.start)..gap.end.min(hole.end));
            *self.missing.entry(*cause).or_default() += within;
            left -= within;
        }
        left -= removed.explain(hole, left);
        self.unexplained += left;
        left
    }
}

/// Sequence numbers in the blocks of a recording.
fn seen(recording: &Recording) -> Result<BTreeMap<u32, Seen>, RecordingError> {
    let mut streams: BTreeMap<u32, Seen> = BTreeMap::new();
    for volume in recording.volumes() {
        for segment in volume.segments() {
            for (stream, block) in blocks_of(volume, segment)? {
                streams.entry(stream).or_default().add(block.first_sequence..block.end());
            }
        }
    }
    Ok(streams)
}

/// Length of each event of a stream that declares it.
fn fixed_event_bytes(info: &StreamInfo) -> Option<u64> {
    info.event_bytes().filter(|_| info.compression.is_none())
}

fn length(range: Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

#[cfg(test)]
#[path = "account_tests.rs"]
mod tests;
