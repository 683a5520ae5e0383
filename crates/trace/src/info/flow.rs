//! Statistics of sizes and times.
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use keepup_measure::histogram::Latency;

use super::{DeviceDetail, Outstanding, SizeClass};
use crate::record::Record;

/// Largest number of requests in flight that are tracked.
const OUTSTANDING_MAX: usize = 1 << 20;
/// Size classes: 0, and one per power of two of 32 bits.
const CLASSES: usize = 33;

/// Statistics of requests in ascending time.
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
    /// Completion times of requests in flight, earliest first.
    in_flight: BinaryHeap<Reverse<u64>>,
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
            in_flight: BinaryHeap::new(),
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
        while self.in_flight.peek().is_some_and(|Reverse(ns)| *ns <= issue_ns) {
            self.in_flight.pop();
        }
        if self.in_flight.len() < OUTSTANDING_MAX {
            self.in_flight.push(Reverse(completion_ns));
        } else {
            self.is_peak_bound = true;
        }
        self.peak = self.peak.max(self.in_flight.len());
    }

    /// The result; `None` without requests.
    pub(super) fn mix(&self) -> Option<DeviceDetail> {
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
        Some(DeviceDetail {
            sizes: sizes.collect(),
            first_ns,
            last_ns: self.last_ns,
            // The interval starts with the first request, which does not count.
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
