//! Comparison of events that are in several recordings, by digests of many events at a time. Where these
//! differ, those of fewer events show which events do.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{ControlFlow, Range};

use serde::{Deserialize, Serialize};

use super::Accounting;
use crate::access::{From, StreamReader};
use crate::crc::{Crc32, crc32};
use crate::ranges::Ranges;
use crate::reader::Recording;

/// Sequence numbers in a digest, from the first comparison to single events.
const STEPS: [u64; 3] = [1 << 16, 1 << 8, 1];

/// Most digests of a request, and of all requests to a host at a time.
const DIGESTS_MAX: u64 = 1 << 16;

/// Events of a stream of which digests are to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DigestRequest {
    /// The stream.
    pub stream: u32,
    /// First sequence number.
    pub start: u64,
    /// One past the last sequence number.
    pub end: u64,
    /// Sequence numbers in each digest.
    pub step: u64,
}

/// Digest of the events of a recording in a range of sequence numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Digest {
    /// Number of events.
    pub events: u64,
    /// Their payload bytes.
    pub bytes: u64,
    /// CRC-32 of the sequence number, length and CRC-32 of each.
    pub crc: u32,
}

/// Digests of a request, or why its events cannot be read.
pub type DigestResult = Result<Vec<Digest>, String>;

/// Makes digests of events, wherever their recordings are.
pub trait Digests {
    /// Answers the requests to hosts, each in order: at most 65,536 digests for each host.
    fn digests(
        &mut self,
        requests: &BTreeMap<&str, Vec<DigestRequest>>,
    ) -> BTreeMap<String, Vec<DigestResult>>;
}

/// Reads events of a recording and makes their digests.
pub fn digest(recording: &Recording, requests: &[DigestRequest]) -> Vec<DigestResult> {
    let (mut open, mut left): (Option<(u32, StreamReader<'_>)>, u64) = (None, DIGESTS_MAX);
    let mut make = |request: &DigestRequest| {
        let reader = match &mut open {
            Some((stream, reader)) if *stream == request.stream => reader,
            other => {
                let opened = StreamReader::open(recording, request.stream).map_err(|e| e.to_string())?;
                let opened = opened.ok_or_else(|| "no journal declares the stream".to_owned())?;
                &mut other.insert((request.stream, opened)).1
            }
        };
        left -= request.count().filter(|count| *count <= left).ok_or("too many events for digests")?;
        request.read(reader)
    };
    requests.iter().map(&mut make).collect()
}

impl DigestRequest {
    /// Number of its digests; none of a request that is invalid, or has too many.
    pub fn count(&self) -> Option<u64> {
        let count = self.end.checked_sub(self.start)?.checked_next_multiple_of(self.step)? / self.step;
        (count <= DIGESTS_MAX).then_some(count)
    }

    fn read(&self, reader: &mut StreamReader<'_>) -> DigestResult {
        let count = self.count().ok_or("an invalid range of events")?;
        let mut found = vec![Digest::default(); count as usize];
        let read = reader.read(From::Sequence(self.start), &mut |event| {
            let at = event.sequence.saturating_sub(self.start) / self.step;
            let Some(digest) = found.get_mut(at as usize).filter(|_| event.sequence < self.end) else {
                return ControlFlow::Break(());
            };
            let (bytes, mut crc) = (event.payload.len() as u64, Crc32::resume(digest.crc));
            crc.update(&event.sequence.to_le_bytes());
            crc.update(&bytes.to_le_bytes());
            crc.update(&crc32(event.payload).to_le_bytes());
            *digest = Digest {
                events: digest.events + 1,
                bytes: digest.bytes.saturating_add(bytes),
                crc: crc.value(),
            };
            if event.sequence + 1 >= self.end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        read.map(|_| found).map_err(|error| error.to_string())
    }
}

/// Result for the duplicates of a stream.
#[derive(Default)]
struct Comparison {
    different: u64,
    first_different: Option<u64>,
    /// Payload bytes of the duplicates.
    bytes: u64,
    failed: Option<String>,
}

/// Events that two recordings have: the first one that has them, and a later one.
struct Task {
    stream: u32,
    /// Indexes of the recordings.
    parts: [usize; 2],
    range: Range<u64>,
    /// Index in [`STEPS`].
    level: usize,
}

impl Task {
    fn request(&self) -> DigestRequest {
        let Range { start, end } = self.range;
        DigestRequest { stream: self.stream, start, end, step: STEPS[self.level] }
    }
}

impl Accounting<'_> {
    /// Compares the duplicates of all streams; unreadable ones are faults.
    pub(super) fn compare(&mut self, digests: &mut dyn Digests) {
        let ids = self.account.streams.keys();
        let mut results: BTreeMap<u32, Comparison> = ids.map(|id| (*id, Comparison::default())).collect();
        let mut tasks: VecDeque<Task> = results.keys().flat_map(|id| self.duplicates(*id)).collect();
        while !tasks.is_empty() {
            self.compare_some(&mut tasks, &mut results, digests);
        }
        for (id, result) in results {
            let Some(stream) = self.account.streams.get_mut(&id) else { continue };
            if let Some(first) = result.first_different {
                let events = result.different;
                let what = format!(
                    "stream {id}: {events} duplicates have another payload, the first is event {first}"
                );
                self.account.faults.push(what);
            }
            if let Some(error) = result.failed {
                let what = format!("cannot compare the duplicates of stream {id}: {error}");
                self.account.faults.push(what);
                continue;
            }
            stream.different = Some(result.different);
            let mut stored = self.parts.iter().map(|part| part.facts.payload_bytes(id));
            let stored = stored.try_fold(0_u64, |sum, bytes| Some(sum.saturating_add(bytes?)));
            stream.payload_bytes = stored.and_then(|stored| stored.checked_sub(result.bytes));
        }
    }

    /// Events that a recording of a stream and an earlier one have, each with the first one that has it.
    fn duplicates(&self, stream: u32) -> Vec<Task> {
        let (mut tasks, mut earlier) = (Vec::new(), Vec::<(usize, Ranges)>::new());
        for (copy, part) in self.parts.iter().enumerate() {
            let Some(seen) = part.facts.seen.get(&stream) else { continue };
            let mut left: Vec<Range<u64>> = seen.ranges().collect();
            for (first, known) in &earlier {
                if left.is_empty() {
                    break;
                }
                let both = left.iter().flat_map(|range| known.within(range));
                tasks.extend(both.map(|range| Task { stream, parts: [*first, copy], range, level: 0 }));
                left = left.iter().flat_map(|range| known.outside(range)).collect();
            }
            earlier.push((copy, Ranges::join(seen.ranges())));
        }
        tasks
    }

    /// Executes the first tasks; adds others for events whose digests differ.
    fn compare_some(
        &self,
        tasks: &mut VecDeque<Task>,
        results: &mut BTreeMap<u32, Comparison>,
        digests: &mut dyn Digests,
    ) {
        let mut requests: BTreeMap<&str, Vec<DigestRequest>> = BTreeMap::new();
        let (mut batch, mut left) = (Vec::new(), DIGESTS_MAX);
        while left > 0 {
            let Some(mut task) = tasks.pop_front() else { break };
            // Differences that are known already are still located.
            let has_failed = results.get(&task.stream).is_some_and(|result| result.failed.is_some());
            if has_failed && task.level == 0 {
                continue;
            }
            let Range { start, end } = task.range;
            task.range.end = end.min(start.saturating_add(left.saturating_mul(STEPS[task.level])));
            if task.range.end < end {
                tasks.push_front(Task { range: task.range.end..end, ..task });
            }
            let request = task.request();
            left -= request.count().unwrap_or(left);
            let places = task.parts.map(|part| {
                let of_host = requests.entry(self.parts[part].host).or_default();
                of_host.push(request);
                of_host.len() - 1
            });
            batch.push((task, places));
        }
        let answers = digests.digests(&requests);
        for (task, places) in batch {
            let Some(result) = results.get_mut(&task.stream) else { continue };
            let answer = |side: usize| {
                let of_host = answers.get(self.parts[task.parts[side]].host);
                let found = of_host.and_then(|all| all.get(places[side])).ok_or("no digests")?.as_ref()?;
                match Some(found.len() as u64) == task.request().count() {
                    true => Ok(found),
                    false => Err("another number of digests".to_owned()),
                }
            };
            match (answer(0), answer(1)) {
                (Ok(known), Ok(copies)) => result.take(&task, known, copies, tasks),
                (Err(error), _) | (_, Err(error)) => result.failed = result.failed.take().or(Some(error)),
            }
        }
    }
}

impl Comparison {
    /// Takes the digests of a task; adds tasks for the parts that differ.
    fn take(&mut self, task: &Task, known: &[Digest], copies: &[Digest], tasks: &mut VecDeque<Task>) {
        let step = STEPS[task.level];
        let starts = (task.range.start..task.range.end).step_by(step as usize);
        for (start, (known, copy)) in
            starts.zip(known.iter().zip(copies)).filter(|(_, (_, copy))| copy.events > 0)
        {
            if known != copy && task.level + 1 < STEPS.len() {
                let range = start..task.range.end.min(start.saturating_add(step));
                // First, so that the number of tasks stays small.
                tasks.push_front(Task { range, level: task.level + 1, ..*task });
                continue;
            }
            self.bytes = self.bytes.saturating_add(copy.bytes);
            if known != copy {
                self.different += 1;
                self.first_different = self.first_different.into_iter().chain([start]).min();
            }
        }
    }
}
