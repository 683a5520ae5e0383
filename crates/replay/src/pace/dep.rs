//! Closed loop that preserves observed dependencies and think times.
//!
//! A request may depend on all requests that had completed when it was issued. Only the direct
//! predecessors are kept: those that completed no earlier than the latest of them was issued. (Time
//! intervals form an interval order, and this is its transitive reduction; hfplayer, FAST 2017,
//! reduces its graph for the same purpose.) In order of completion, the predecessors of a request
//! are contiguous, and so are the successors of a request in trace order. So two numbers per
//! request describe the graph.
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use keepup_trace::Record;

use super::{Next, Pace, scaled};
use crate::script::Script;

/// Maximum number of requests, of which each takes 24 bytes of memory.
pub(super) const RECORDS_MAX: usize = 100_000_000;
/// Marks a request without a known completion: nothing depends on it.
const NO_END: u32 = u32::MAX;

/// Issues requests after their predecessors.
pub(super) struct Dep<'a> {
    records: &'a [Record],
    speed: f64,
    /// Rank of each request in order of completion.
    ranks: Vec<u32>,
    /// Half-open range of completion ranks that each request depends on.
    needs: Vec<(u32, u32)>,
    /// Number of outstanding predecessors.
    left: Vec<u32>,
    /// Earliest issue time known so far, ns.
    due: Vec<u64>,
    /// Requests that only wait for their time.
    ready: BinaryHeap<Reverse<(u64, usize)>>,
    given: usize,
}

impl<'a> Dep<'a> {
    pub(super) fn new(speed: f64, script: &'a Script) -> Self {
        let records = &script.records[..];
        let (ranks, needs) = depend(records);
        let left: Vec<u32> = needs.iter().map(|(from, until)| until - from).collect();
        let mut dep = Self {
            records,
            speed,
            ranks,
            needs,
            due: vec![0; records.len()],
            ready: BinaryHeap::new(),
            given: 0,
            left,
        };
        // `needs` is ascending, so requests without predecessors come first.
        for (index, record) in records.iter().enumerate().take_while(|(index, _)| dep.left[*index] == 0) {
            dep.ready.push(Reverse((scaled(record.issue_ns, speed), index)));
        }
        dep
    }
}

impl Pace for Dep<'_> {
    fn next(&mut self, now_ns: u64, _under_way: usize) -> Next {
        match self.ready.peek() {
            Some(Reverse((due_ns, index))) if *due_ns <= now_ns => {
                let due = Next::Due(*index, *due_ns);
                self.ready.pop();
                self.given += 1;
                due
            }
            Some(Reverse((due_ns, _))) => Next::At(*due_ns),
            None if self.given < self.records.len() => Next::Ended,
            None => Next::Over,
        }
    }

    fn ended(&mut self, index: usize, now_ns: u64) {
        let rank = self.ranks[index];
        let Some(end_ns) = self.records[index].completion_ns().filter(|_| rank != NO_END) else { return };
        let first = self.needs.partition_point(|(_, until)| *until <= rank);
        for later in first..self.needs.len() {
            if self.needs[later].0 > rank {
                break;
            }
            let think_ns = scaled(self.records[later].issue_ns.saturating_sub(end_ns), self.speed);
            self.due[later] = self.due[later].max(now_ns + think_ns);
            self.left[later] -= 1;
            if self.left[later] == 0 {
                self.ready.push(Reverse((self.due[later], later)));
            }
        }
    }
}

/// Completion rank and predecessor range of each request.
fn depend(records: &[Record]) -> (Vec<u32>, Vec<(u32, u32)>) {
    let mut ends: Vec<(u64, u32)> = Vec::with_capacity(records.len());
    for (index, record) in records.iter().enumerate() {
        ends.extend(record.completion_ns().map(|end_ns| (end_ns, index as u32)));
    }
    ends.sort_unstable();
    let mut ranks = vec![NO_END; records.len()];
    for (rank, (_, index)) in ends.iter().enumerate() {
        ranks[*index as usize] = rank as u32;
    }
    let (mut from, mut until, mut latest) = (0, 0, 0);
    let needs = records.iter().enumerate().map(|(index, record)| {
        // Requests of zero duration would precede themselves or others issued at the same time.
        while let Some((end_ns, earlier)) = ends.get(until).filter(|end| (end.1 as usize) < index) {
            if *end_ns > record.issue_ns {
                break;
            }
            latest = latest.max(*earlier as usize);
            until += 1;
        }
        // The latest predecessor bounds the requests completed before it was issued.
        let is_behind =
            |(end_ns, earlier): (u64, u32)| end_ns <= records[latest].issue_ns && earlier as usize != latest;
        while from < until && is_behind(ends[from]) {
            from += 1;
        }
        (from as u32, until as u32)
    });
    let needs = needs.collect();
    (ranks, needs)
}

#[cfg(test)]
#[path = "dep_tests.rs"]
mod tests;
