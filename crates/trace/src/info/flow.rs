//! Sizes and times of requests that come one after the other.
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use keepup_measure::histogram::Latency;

use super::{Mix, Outstanding, SizeClass};
use crate::record::Record;

/// Requests under way that are remembered.
const OUTSTANDING_MAX: usize = 1 << 20;
/// Classes of sizes: 0, and one for each power of two that 32 bits hold.
const CLASSES: usize = 33;

/// The account of requests, in ascending time.
#[derive(Clone)]
pub(super) struct Flow {
    sizes: [(u64, u64); CLASSES],
    first_ns: Option<u64>,
    last_ns: u64,
    gaps: Latency,
    gap_max_ns: u64,
    service: Latency,
    service_sum_ns: u128,
    completed_ns: u64,
    /// Times of completion of those under way, the earliest on top.
    under_way: BinaryHeap<Reverse<u64>>,
    peak: usize,
    is_peak_bound: bool,
    records: u64,
    bytes: u64,
}

impl Flow {
    pub(super) fn new() -> Self {
        Self {
            sizes: [(0, 0); CLASSES],
            first_ns: None,
            last_ns: 0,
            gaps: Latency::new(),
            gap_max_ns: 0,
            service: Latency::new(),
            service_sum_ns: 0,
            completed_ns: 0,
            under_way: BinaryHeap::new(),
            peak: 0,
            is_peak_bound: false,
            records: 0,
            bytes: 0,
        }
    }

    #[inline]
    pub(super) fn take(&mut self, record: &Record) {
        let bytes = u64::from(record.bytes);
        self.records += 1;
        self.bytes += bytes;
        let (records, sum) = &mut self.sizes[(u32::BITS - record.bytes.leading_zeros()) as usize];
        *records += 1;
        *sum += bytes;
        match self.first_ns {
            None => self.first_ns = Some(record.issue_ns),
            Some(_) => {
                let gap_ns = record.issue_ns - self.last_ns;
                self.gap_max_ns = self.gap_max_ns.max(gap_ns);
                self.gaps.record_ns(gap_ns);
            }
        }
        self.last_ns = record.issue_ns;
        if let Some(completion_ns) = record.completion_ns() {
            self.complete(record.issue_ns, completion_ns);
        }
    }

    #[inline]
    fn complete(&mut self, issue_ns: u64, completion_ns: u64) {
        let service_ns = completion_ns - issue_ns;
        self.service.record_ns(service_ns);
        self.service_sum_ns += u128::from(service_ns);
        self.completed_ns = self.completed_ns.max(completion_ns);
        while self.under_way.peek().is_some_and(|Reverse(ns)| *ns <= issue_ns) {
            self.under_way.pop();
        }
        if self.under_way.len() < OUTSTANDING_MAX {
            self.under_way.push(Reverse(completion_ns));
        } else {
            self.is_peak_bound = true;
        }
        self.peak = self.peak.max(self.under_way.len());
    }

    /// What it comes to; nothing without a request.
    pub(super) fn mix(&self) -> Option<Mix> {
        let first_ns = self.first_ns?;
        let seconds = (self.last_ns - first_ns) as f64 / 1e9;
        let over = |count: u64| (seconds > 0.0).then(|| count as f64 / seconds);
        let sizes = self.sizes.iter().enumerate().skip(1).filter(|(_, (records, _))| *records > 0);
        let sizes = sizes.map(|(class, (records, bytes))| SizeClass {
            from_bytes: 1 << (class - 1),
            records: *records,
            bytes: *bytes,
        });
        let has_completions = self.service.summary().count > 0;
        let time_ns = self.completed_ns.max(self.last_ns) - first_ns;
        Some(Mix {
            sizes: sizes.collect(),
            first_ns,
            last_ns: self.last_ns,
            // The first request opens the time, so it is not one of those that came in it.
            rate: over(self.records - 1),
            bytes_per_second: over(self.bytes),
            gaps: (self.records > 1).then(|| self.gaps.summary()),
            gap_max_ns: self.gap_max_ns,
            service: has_completions.then(|| self.service.summary()),
            outstanding: has_completions.then(|| Outstanding {
                peak: self.peak as u64,
                mean: (time_ns > 0).then(|| self.service_sum_ns as f64 / time_ns as f64),
                is_peak_bound: self.is_peak_bound,
            }),
        })
    }
}
