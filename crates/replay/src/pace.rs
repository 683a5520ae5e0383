//! Due times of requests: a common trait with one implementation per mode. Modes are never mixed.
mod afap;
mod dep;
mod open;

use crate::error::ReplayError;
use crate::script::Script;

/// Timing mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// At trace times divided by `speed`, independent of earlier requests (open loop).
    Timed {
        /// Speed-up factor.
        speed: f64,
    },
    /// As fast as possible with `depth` in-flight requests, in trace order.
    Afap {
        /// In-flight requests.
        depth: usize,
    },
    /// Dependency-preserving: after the completion of the requests that had completed before it in
    /// the trace, with the same think time.
    Dep {
        /// Speed-up factor of think times.
        speed: f64,
    },
    /// At a constant rate, independent of earlier requests (open loop).
    Paced {
        /// Requests per second.
        rate: f64,
    },
}

impl Mode {
    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Timed { .. } => "timed",
            Self::Afap { .. } => "afap",
            Self::Dep { .. } => "dep",
            Self::Paced { .. } => "paced",
        }
    }

    /// Whether it is an open loop, with times independent of the target.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Timed { .. } | Self::Paced { .. })
    }

    /// Checks that `script` has the times that this mode needs.
    ///
    /// # Errors
    /// The trace lacks these times.
    pub fn check(self, script: &Script) -> Result<(), ReplayError> {
        let unfit = |what: &str| ReplayError::Unfit {
            trace: script.summary.trace.clone(),
            what: what.into(),
            hint: "--mode afap, or paced with --rate".into(),
        };
        match self {
            Self::Timed { .. } | Self::Dep { .. } if !script.summary.has_times => {
                Err(unfit("it has no times, only an order"))
            }
            Self::Dep { .. } if script.records.len() > dep::RECORDS_MAX => {
                let most = dep::RECORDS_MAX;
                let what = format!("its dependencies are kept in memory, for at most {most} requests");
                Err(ReplayError::Unfit {
                    trace: script.summary.trace.clone(),
                    what,
                    hint: "--window FROM..UNTIL or --max-records for a part of it".into(),
                })
            }
            Self::Dep { .. } if script.records.iter().all(|record| record.completion_ns().is_none()) => {
                Err(unfit("it has no completion times, so dependencies are unknown"))
            }
            _ => Ok(()),
        }
    }

    /// Requested time from the first to the last request, ns; only for an open loop.
    pub(crate) fn span_ns(self, script: &Script) -> Option<u64> {
        let last = script.records.len().saturating_sub(1);
        self.is_open().then(|| open::due_ns(self, script, last))
    }

    /// Median requested inter-arrival time, ns.
    pub(crate) fn gap_ns(self, script: &Script) -> u64 {
        match self {
            Self::Timed { speed } | Self::Dep { speed } => scaled(script.median_gap_ns(), speed),
            Self::Paced { rate } => (1e9 / rate) as u64,
            Self::Afap { .. } => 0,
        }
    }

    /// Pace of this mode.
    pub(crate) fn pace(self, script: &Script) -> Box<dyn Pace + '_> {
        match self {
            Self::Timed { .. } | Self::Paced { .. } => Box::new(open::Open::new(self, script)),
            Self::Afap { depth } => Box::new(afap::Afap::new(depth, script.records.len())),
            Self::Dep { speed } => Box::new(dep::Dep::new(speed, script)),
        }
    }
}

/// Scales a trace time, ns; exact without scaling.
fn scaled(ns: u64, speed: f64) -> u64 {
    if speed == 1.0 { ns } else { (ns as f64 / speed) as u64 }
}

/// Next action; times in ns since the start of the pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Issue this request, due at that time.
    Due(usize, u64),
    /// Wait until this time.
    At(u64),
    /// Wait for a completion.
    Ended,
    /// All requests were issued.
    Over,
}

/// Source of due times.
pub(crate) trait Pace {
    /// Next action; a returned request counts as in flight.
    fn next(&mut self, now_ns: u64, in_flight: usize) -> Next;

    /// Records the completion of request `index`.
    fn ended(&mut self, _index: usize, _now_ns: u64) {}
}
