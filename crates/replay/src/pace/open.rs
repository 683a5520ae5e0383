//! Open loop: fixed due times.
use keepup_trace::Record;

use super::{Mode, Next, Pace, scaled};
use crate::script::Script;

/// Due time of request `index`, ns since the start.
pub(super) fn due_ns(mode: Mode, script: &Script, index: usize) -> u64 {
    due(mode, &script.records, index)
}

fn due(mode: Mode, records: &[Record], index: usize) -> u64 {
    match mode {
        Mode::Paced { rate } => (index as f64 * 1e9 / rate) as u64,
        Mode::Timed { speed } => scaled(records[index].issue_ns, speed),
        _ => records[index].issue_ns,
    }
}

/// Requests at fixed times.
pub(super) struct Open<'a> {
    mode: Mode,
    records: &'a [Record],
    at: usize,
}

impl<'a> Open<'a> {
    pub(super) fn new(mode: Mode, script: &'a Script) -> Self {
        Self { mode, records: &script.records, at: 0 }
    }
}

impl Pace for Open<'_> {
    fn next(&mut self, now_ns: u64, _under_way: usize) -> Next {
        if self.at >= self.records.len() {
            return Next::Over;
        }
        let due_ns = due(self.mode, self.records, self.at);
        if due_ns > now_ns {
            return Next::At(due_ns);
        }
        self.at += 1;
        Next::Due(self.at - 1, due_ns)
    }
}
