//! Comparison of events that are in several recordings.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

use super::{Accounting, Part};
use crate::access::{From, StreamReader};
use crate::crc::crc32;
use crate::error::RecordingError;
use crate::merged::MergedRecording;
use crate::ranges::{Ranges, Seen};

/// Most events that are compared at a time.
const EVENTS_MAX: u64 = 1 << 16;

/// Result for the duplicates of a stream.
#[derive(Default)]
struct Comparison {
    different: u64,
    first_different: Option<u64>,
    /// Payload bytes of the duplicates.
    bytes: u64,
}

impl Accounting<'_> {
    /// Compares the duplicates of all streams; unreadable ones are faults.
    pub(super) fn compare(&mut self) {
        let ids: Vec<u32> = self.account.streams.keys().copied().collect();
        for id in ids {
            let (result, failed) = self.compare_stream(id);
            let Some(stream) = self.account.streams.get_mut(&id) else { continue };
            match failed {
                Some(error) => {
                    let what = format!("cannot compare the duplicates of stream {id}: {error}");
                    self.account.faults.push(what);
                }
                None => {
                    stream.different = Some(result.different);
                    let stored = self.parts.iter().map(|part| part.payload_bytes(id)).sum::<Option<u64>>();
                    stream.payload_bytes = stored.and_then(|stored| stored.checked_sub(result.bytes));
                }
            }
            if let Some(first) = result.first_different {
                let events = result.different;
                let what = format!(
                    "stream {id}: {events} duplicates have another payload, the first is event {first}"
                );
                self.account.faults.push(what);
            }
        }
    }

    /// Compares each recording with those before it.
    fn compare_stream(&self, id: u32) -> (Comparison, Option<RecordingError>) {
        let (mut result, mut union, mut before) = (Comparison::default(), Seen::default(), Vec::new());
        for part in &self.parts {
            let Some(seen) = part.seen.get(&id) else { continue };
            let known = Ranges::join(union.ranges());
            let both: Vec<_> =
                seen.ranges().flat_map(|range| known.within(&range).collect::<Vec<_>>()).collect();
            if let Err(error) = compare_parts(id, (&before, part), &both, &mut result) {
                return (result, Some(error));
            }
            seen.ranges().for_each(|range| drop(union.add(range)));
            before.push(part);
        }
        (result, None)
    }
}

/// Compares the events in `ranges` of a recording with those of the recordings before it.
fn compare_parts(
    id: u32,
    (before, part): (&[&Part<'_>], &Part<'_>),
    ranges: &[Range<u64>],
    result: &mut Comparison,
) -> Result<(), RecordingError> {
    if ranges.is_empty() {
        return Ok(());
    }
    let about = MergedRecording::from(part.recording).about().clone();
    let first = before.iter().map(|part| (part.host.to_owned(), part.recording)).collect();
    let first = MergedRecording::new(about, first)?;
    let Some(mut first) = StreamReader::open_merged(&first, id)? else { return Ok(()) };
    let Some(mut second) = StreamReader::open(part.recording, id)? else { return Ok(()) };
    for range in ranges {
        let mut at = range.start;
        while at < range.end {
            let end = range.end.min(at.saturating_add(EVENTS_MAX));
            let [mut known, copies] = [digests(&mut first, at..end)?, digests(&mut second, at..end)?];
            for (sequence, copy) in copies {
                result.bytes = result.bytes.saturating_add(copy.1);
                if known.remove(&sequence) != Some(copy) {
                    result.different += 1;
                    result.first_different = result.first_different.or(Some(sequence));
                }
            }
            at = end;
        }
    }
    Ok(())
}

/// CRC-32 and length of each payload.
fn digests(
    reader: &mut StreamReader<'_>,
    range: Range<u64>,
) -> Result<BTreeMap<u64, (u32, u64)>, RecordingError> {
    let mut found = BTreeMap::new();
    reader.read(From::Sequence(range.start), &mut |event| {
        if event.sequence >= range.end {
            return ControlFlow::Break(());
        }
        found.insert(event.sequence, (crc32(event.payload), event.payload.len() as u64));
        if event.sequence + 1 >= range.end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(found)
}
