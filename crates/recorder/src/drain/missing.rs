//! Events that a drain could not send, with causes: listed up to a limit, counted beyond it.
use keepup_recording::account::Incidents;
use keepup_stream::ledger::Gap;
use serde::Serialize;

/// Most spans of missing events that are listed.
const LISTED_MAX: usize = 1000;

/// Consecutive events of one stream that were not sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// Stream id.
    pub stream: u32,
    /// First missing event.
    pub first_sequence: u64,
    /// Number of events.
    pub events: u64,
    /// Cause, from the journals or from the read error.
    pub cause: String,
}

/// All events that were not sent, with the faults.
#[derive(Clone, Debug, Default)]
pub(super) struct Losses {
    pub(super) events: u64,
    pub(super) listed: Vec<Missing>,
    pub(super) faults: Incidents,
}

impl Losses {
    /// Enters that events of `stream` from `start` to before `end` are missing: those in `lost`
    /// with the journals' causes, the others with `cause`. Returns the number of the others.
    pub(super) fn miss(&mut self, stream: u32, (start, end): (u64, u64), lost: &[Gap], cause: &str) -> u64 {
        let (mut at, mut others) = (start, 0);
        for gap in lost {
            others += gap.first_sequence.saturating_sub(at);
            self.enter(stream, at, gap.first_sequence, cause);
            at = gap.first_sequence.saturating_add(gap.events);
            self.enter(stream, gap.first_sequence, at, &gap.cause.to_string());
        }
        others += end.saturating_sub(at);
        self.enter(stream, at, end, cause);
        others
    }

    fn enter(&mut self, stream: u32, start: u64, end: u64, cause: &str) {
        let events = end.saturating_sub(start);
        if events == 0 {
            return;
        }
        self.events = self.events.saturating_add(events);
        let goes_on = |last: &&mut Missing| {
            let last_end = last.first_sequence.saturating_add(last.events);
            (last.stream, last_end, last.cause.as_str()) == (stream, start, cause)
        };
        if let Some(last) = self.listed.last_mut().filter(goes_on) {
            last.events += events;
        } else if self.listed.len() < LISTED_MAX {
            self.listed.push(Missing { stream, first_sequence: start, events, cause: cause.to_owned() });
        }
    }
}
