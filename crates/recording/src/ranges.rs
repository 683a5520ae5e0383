//! Sets of sequence numbers as ranges.
use std::collections::BTreeMap;
use std::ops::Range;

use keepup_measure::sum::Sums;
use serde::{Deserialize, Serialize};

/// Sorted ranges that do not touch.
#[derive(Debug, Default)]
pub(crate) struct Ranges(Vec<Range<u64>>);

impl Ranges {
    /// Joins ranges that are sorted by their start.
    pub(crate) fn join(sorted: impl Iterator<Item = Range<u64>>) -> Ranges {
        let mut joined: Vec<Range<u64>> = Vec::new();
        for range in sorted {
            match joined.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        Ranges(joined)
    }

    /// One past the last number; 0 when empty.
    pub(crate) fn end(&self) -> u64 {
        self.0.last().map_or(0, |range| range.end)
    }

    /// Parts of the ranges within `span`, in order.
    pub(crate) fn within(&self, span: &Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let first = self.0.partition_point(|range| range.end <= span.start);
        let span = span.clone();
        let parts = self.0[first..].iter().map(move |r| r.start.max(span.start)..r.end.min(span.end));
        parts.take_while(|part| !part.is_empty())
    }

    /// Number of values in `span` that are in a range.
    pub(crate) fn count_within(&self, span: &Range<u64>) -> u64 {
        self.within(span).map(|part| part.end - part.start).saturating_sum()
    }

    /// First number of `span` in a range.
    pub(crate) fn first_within(&self, span: &Range<u64>) -> Option<u64> {
        self.within(span).next().map(|part| part.start)
    }

    /// First number of `span` outside all ranges; the end of `span` when all are inside.
    pub(crate) fn first_outside(&self, span: &Range<u64>) -> u64 {
        self.within(span).fold(span.start, |at, part| if part.start == at { part.end } else { at })
    }

    /// Parts of `span` outside all ranges, in order.
    pub(crate) fn outside(&self, span: &Range<u64>) -> Vec<Range<u64>> {
        let mut holes = Vec::new();
        let mut at = span.start;
        for part in self.within(span) {
            if part.start > at {
                holes.push(at..part.start);
            }
            at = part.end;
        }
        if at < span.end {
            holes.push(at..span.end);
        }
        holes
    }
}

/// Sequence numbers seen so far, in any order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub(crate) struct Seen(BTreeMap<u64, u64>);

impl TryFrom<Vec<(u64, u64)>> for Seen {
    type Error = &'static str;

    fn try_from(ranges: Vec<(u64, u64)>) -> Result<Self, Self::Error> {
        let is_sorted = ranges.windows(2).all(|pair| pair[0].1 < pair[1].0);
        match is_sorted && ranges.iter().all(|(start, end)| start < end) {
            true => Ok(Seen(ranges.into_iter().collect())),
            false => Err("ranges that are empty, touch or are not in order"),
        }
    }
}

impl From<Seen> for Vec<(u64, u64)> {
    fn from(seen: Seen) -> Self {
        seen.0.into_iter().collect()
    }
}

impl Seen {
    /// Adds the numbers of `range`; returns the parts that were not there, in order.
    pub(crate) fn add(&mut self, range: Range<u64>) -> Vec<Range<u64>> {
        let (mut fresh, mut joined) = (Vec::new(), range.clone());
        if range.is_empty() {
            return fresh;
        }
        let mut at = range.start;
        // Ranges that touch or overlap, from the last one that starts before the new one.
        let before = self.0.range(..range.start).next_back().filter(|(_, end)| **end >= range.start);
        let from = before.map_or(range.start, |(start, _)| *start);
        let touching: Vec<u64> = self.0.range(from..=range.end).map(|(start, _)| *start).collect();
        for start in touching {
            let Some(end) = self.0.remove(&start) else { continue };
            if at < start.min(range.end) {
                fresh.push(at..start.min(range.end));
            }
            at = at.max(end);
            joined = joined.start.min(start)..joined.end.max(end);
        }
        if at < range.end {
            fresh.push(at..range.end);
        }
        self.0.insert(joined.start, joined.end);
        fresh
    }

    /// First number, if any.
    pub(crate) fn start(&self) -> Option<u64> {
        self.0.first_key_value().map(|(&start, _)| start)
    }

    /// One past the last number; 0 when empty.
    pub(crate) fn end(&self) -> u64 {
        self.0.last_key_value().map_or(0, |(_, &end)| end)
    }

    /// The numbers.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.0.iter().map(|(&start, &end)| start..end)
    }
}

#[cfg(test)]
#[path = "ranges_tests.rs"]
mod tests;
