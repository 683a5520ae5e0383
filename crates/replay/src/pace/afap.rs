//! Closed loop: constant queue depth, in trace order, without pauses.
use super::{Next, Pace};

/// As fast as possible.
pub(super) struct Afap {
    depth: usize,
    requests: usize,
    at: usize,
}

impl Afap {
    pub(super) fn new(depth: usize, requests: usize) -> Self {
        Self { depth, requests, at: 0 }
    }
}

impl Pace for Afap {
    fn next(&mut self, now_ns: u64, in_flight: usize) -> Next {
        if self.at >= self.requests {
            return Next::Over;
        }
        if in_flight >= self.depth {
            return Next::Ended;
        }
        self.at += 1;
        Next::Due(self.at - 1, now_ns)
    }
}
