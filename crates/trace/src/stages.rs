//! Time of requests before and after their dispatch to the driver, where a trace contains it.
use keepup_measure::histogram::{Latency, LatencySummary};
use serde::Serialize;

use crate::batch::{NO_TIME, RawRecord};

/// Parts of the time to completion, as btt of blktrace names them.
#[derive(Clone, Debug, Serialize)]
pub struct StageTimes {
    /// Requests with both times.
    pub records: u64,
    /// From the queue event to the dispatch (Q2D): merging, plugging and scheduling in the kernel.
    pub q2d: LatencySummary,
    /// From the dispatch to the completion (D2C): driver and device.
    pub d2c: LatencySummary,
    /// Share of Q2D in the sum of both, 0 to 1; null if both are 0.
    pub q2d_share: Option<f64>,
}

/// Counts requests with a dispatch and a completion.
#[derive(Default)]
pub(crate) struct Stages {
    /// Histograms of both times, and their sums in ns.
    times: Option<Box<(Latency, Latency)>>,
    sums_ns: (u128, u128),
}

impl Stages {
    #[inline]
    pub(crate) fn take(&mut self, raw: &RawRecord) {
        if raw.dispatch_ns != NO_TIME {
            self.add(raw);
        }
    }

    fn add(&mut self, raw: &RawRecord) {
        // The clocks of two processors can differ by a little: such a request counts for neither.
        if raw.dispatch_ns < raw.time_ns || raw.completion_ns < raw.dispatch_ns {
            return;
        }
        let (q2d, d2c) = (raw.dispatch_ns.abs_diff(raw.time_ns), raw.completion_ns.abs_diff(raw.dispatch_ns));
        let times = self.times.get_or_insert_with(|| Box::new((Latency::new(), Latency::new())));
        times.0.record_ns(q2d);
        times.1.record_ns(d2c);
        self.sums_ns.0 += u128::from(q2d);
        self.sums_ns.1 += u128::from(d2c);
    }

    pub(crate) fn times(&self) -> Option<StageTimes> {
        let (q2d, d2c) = &**self.times.as_ref()?;
        let (q2d, d2c) = (q2d.summary(), d2c.summary());
        let sum = self.sums_ns.0 + self.sums_ns.1;
        let q2d_share = (sum > 0).then(|| self.sums_ns.0 as f64 / sum as f64);
        Some(StageTimes { records: q2d.count, q2d, d2c, q2d_share })
    }
}
