//! Account of every stream of a recording, recorded and missing, from the indexes of its sealed
//! segments.
use std::collections::BTreeMap;
use std::ops::Range;

use keepup_error::Cause;
use keepup_stream::ledger::{Count, Gap, LossCause};

use super::StreamRecovery;
use super::volume::OpenVolume;
use crate::contents::{Contents, contents};
use crate::duplicates::{Duplicate, duplicates};
use crate::error::RecordingError;
use crate::ranges::Ranges;
use crate::volume::Volume;

/// The account of all streams.
#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) streams: BTreeMap<u32, StreamRecovery>,
    /// Missing events that no journal lists.
    pub(super) new_gaps: Vec<Gap>,
    /// Events that a journal lists as missing and that were found.
    pub(super) found_again: Vec<Gap>,
    /// Damage by volume that did not prevent the account.
    pub(super) damage: Vec<(usize, String)>,
}

/// Computes the account; all segments are sealed. An error comes with its volume's number.
pub(super) fn account(volumes: &[OpenVolume]) -> Result<Account, (usize, RecordingError)> {
    let mut runs: BTreeMap<u32, Vec<Range<u64>>> = BTreeMap::new();
    let mut account = Account::default();
    let duplicates = duplicates(volumes.iter().map(|open| &open.volume));
    for (number, volume) in volumes.iter().map(|open| &open.volume).enumerate() {
        for (&id, stream) in volume.streams() {
            account.streams.entry(id).or_default().name.clone_from(&stream.name);
        }
        let damage = survey(volume, &mut runs, &mut account.streams).map_err(|error| (number, error))?;
        account.damage.extend(damage.into_iter().map(|what| (number, what)));
    }
    for Duplicate { stream, count, .. } in duplicates.values().flatten() {
        let stream = account.streams.entry(*stream).or_default();
        stream.recorded = stream.recorded - *count;
    }
    let mut gaps: BTreeMap<u32, Vec<Gap>> = BTreeMap::new();
    for gap in crate::volume::gaps(volumes.iter().map(|open| &open.volume)) {
        gaps.entry(gap.stream).or_default().push(gap);
    }
    let starts = crate::volume::starts(volumes.iter().map(|open| &open.volume));
    let mut removed = crate::volume::removed(volumes.iter().map(|open| &open.volume));
    for &stream in gaps.keys() {
        account.streams.entry(stream).or_default();
    }
    for (&stream, summary) in &mut account.streams {
        let mut recorded = runs.remove(&stream).unwrap_or_default();
        recorded.sort_by_key(|run| run.start);
        let recorded = Ranges::join(recorded.into_iter());
        let gaps = gaps.remove(&stream).unwrap_or_default();
        for gap in &gaps {
            let span = gap.first_sequence..gap.first_sequence.saturating_add(gap.events);
            let there = recorded.count_within(&span);
            account.found_again.extend(recorded.within(&span).map(|part| part_of(*gap, &part)));
            if gap.events > there {
                let missing = summary.missing.entry(gap.cause).or_default();
                *missing = missing.saturating_add(gap.events - there);
            }
        }
        let known = Ranges::join(gaps.iter().map(|gap| gap.first_sequence..gap.first_sequence + gap.events));
        let mut removed = removed.remove(&stream).unwrap_or_default();
        summary.removed = removed.count();
        let cut_off = Gap { stream, first_sequence: 0, events: 0, cause: LossCause::CutOff };
        let start = starts.get(&stream).copied().unwrap_or(0);
        // A loss may stand behind the last block that survived.
        let end = recorded.end().max(known.end());
        for mut hole in recorded.outside(&(start..end)).iter().flat_map(|hole| known.outside(hole)) {
            hole.start += removed.explain(&hole, hole.end - hole.start);
            if hole.is_empty() {
                continue;
            }
            let missing = summary.missing.entry(LossCause::CutOff).or_default();
            *missing = missing.saturating_add(hole.end - hole.start);
            account.new_gaps.push(part_of(cut_off, &hole));
        }
    }
    Ok(account)
}

fn part_of(gap: Gap, part: &Range<u64>) -> Gap {
    Gap { first_sequence: part.start, events: part.end - part.start, ..gap }
}

/// Enters the events of a volume's segments; returns the damage of their indexes.
fn survey(
    volume: &Volume,
    runs: &mut BTreeMap<u32, Vec<Range<u64>>>,
    streams: &mut BTreeMap<u32, StreamRecovery>,
) -> Result<Vec<String>, RecordingError> {
    let mut damaged = Vec::new();
    for segment in volume.segments() {
        let Contents { streams: found, damage } = contents(volume, segment)?;
        damaged.extend(damage.map(|damage| Cause::of(&damage).to_text()));
        for (summary, blocks) in found {
            let known = runs.entry(summary.stream).or_default();
            for block in blocks {
                let end = block.end();
                match known.last_mut() {
                    Some(last) if last.end == block.first_sequence => last.end = end,
                    _ => known.push(block.first_sequence..end),
                }
            }
            let stream = streams.entry(summary.stream).or_default();
            stream.recorded += Count { events: summary.events, bytes: summary.payload_bytes };
        }
    }
    Ok(damaged)
}
