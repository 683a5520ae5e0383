//! When requests are due: one contract, one file for each mode. Modes are never mixed.
mod afap;
mod dep;
mod open;

use super::error::ReplayError;
use super::script::Script;

/// How requests are timed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// Each at its own time, divided by `speed`, whatever has become of those before it.
    Timed {
        /// How many times as fast as the trace.
        speed: f64,
    },
    /// As fast as they can be done, `depth` at a time, in the trace's order.
    Afap {
        /// Requests under way.
        depth: usize,
    },
    /// Each when those that had ended before it was made, in the trace, have ended, and as long after them.
    Dep {
        /// How many times shorter the time between is.
        speed: f64,
    },
    /// At a constant rate, whatever has become of those before.
    Paced {
        /// Requests per second.
        rate: f64,
    },
}

impl Mode {
    /// Its name, as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Timed { .. } => "timed",
            Self::Afap { .. } => "afap",
            Self::Dep { .. } => "dep",
            Self::Paced { .. } => "paced",
        }
    }

    /// Whether it keeps a time that does not depend on the target: an open loop.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Timed { .. } | Self::Paced { .. })
    }

    /// Whether the requests of `script` can be timed so.
    ///
    /// # Errors
    /// When the trace does not have the times that it takes.
    pub fn check(self, script: &Script) -> Result<(), ReplayError> {
        let unfit = |what: &str| ReplayError::Unfit {
            trace: script.told.trace.clone(),
            what: what.into(),
            hint: "--mode afap, or paced with --rate".into(),
        };
        match self {
            Self::Timed { .. } | Self::Dep { .. } if !script.told.has_times => {
                Err(unfit("it has no times, only an order"))
            }
            Self::Dep { .. } if script.records.iter().all(|record| record.completion_ns().is_none()) => {
                Err(unfit("it does not say when requests ended, so none is seen to depend on another"))
            }
            _ => Ok(()),
        }
    }

    /// From the first request's time to the last one's as they are asked for, ns; only of an open loop.
    pub(super) fn span_ns(self, script: &Script) -> Option<u64> {
        let last = script.records.len().saturating_sub(1);
        self.is_open().then(|| open::due_ns(self, script, last))
    }

    /// Median of the times between requests as they are asked for, ns.
    pub(super) fn gap_ns(self, script: &Script) -> u64 {
        match self {
            Self::Timed { speed } | Self::Dep { speed } => scaled(script.median_gap_ns(), speed),
            Self::Paced { rate } => (1e9 / rate) as u64,
            Self::Afap { .. } => 0,
        }
    }

    /// The one that says when requests are due.
    pub(super) fn pace(self, script: &Script) -> Box<dyn Pace + '_> {
        match self {
            Self::Timed { .. } | Self::Paced { .. } => Box::new(open::Open::new(self, script)),
            Self::Afap { depth } => Box::new(afap::Afap::new(depth, script.records.len())),
            Self::Dep { speed } => Box::new(dep::Dep::new(speed, script)),
        }
    }
}

/// A time of the trace at so many times its speed, ns; exact where nothing is scaled.
fn scaled(ns: u64, speed: f64) -> u64 {
    if speed == 1.0 { ns } else { (ns as f64 / speed) as u64 }
}

/// What comes next; times in ns from the begin of the pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// This request, which was due at that time.
    Due(usize, u64),
    /// Nothing before that time.
    At(u64),
    /// Nothing before a request has ended.
    Ended,
    /// Nothing any more.
    Over,
}

/// Says when each request is due.
pub(super) trait Pace {
    /// What comes next; a request that is given is under way from then on.
    fn next(&mut self, now_ns: u64, under_way: usize) -> Next;

    /// Request `index` has ended.
    fn ended(&mut self, _index: usize, _now_ns: u64) {}
}
