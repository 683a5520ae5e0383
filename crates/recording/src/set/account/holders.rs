//! The recordings that had a stream: where the set should start, and whether its end is known.
//!
//! Invariant: a journal declares a stream, with its start, before the first block of the stream on that
//! volume. A complete recording without damaged journal lines that does not declare a stream never had
//! acknowledged events of it.

use std::collections::BTreeSet;

use super::{Accounting, Part};
use crate::ranges::Seen;

impl Part<'_> {
    /// Whether a journal declares the stream.
    pub(super) fn declares(&self, id: u32) -> bool {
        self.facts.streams.contains_key(&id)
    }

    /// Sequence number at which the stream starts here, according to the journals.
    fn start(&self, id: u32) -> u64 {
        self.facts.starts.get(&id).copied().unwrap_or(0)
    }

    /// One past the last event of the stream that was recorded here; its start if none was.
    fn end(&self, id: u32) -> u64 {
        let seen = self.facts.seen.get(&id).map_or(0, Seen::end);
        let removed = self.facts.removed.get(&id).map_or(0, |removed| removed.end_sequence);
        seen.max(removed).max(self.start(id))
    }
}

impl Accounting<'_> {
    /// First event that the set should have: the lowest start of the stream, because a run may continue an
    /// earlier one. It is 0 if another host of the set may have recorded the events before.
    pub(super) fn first_expected(&self, id: u32, incomplete_hosts: &[String]) -> u64 {
        let declaring = || self.parts.iter().filter(|part| part.declares(id));
        let start = declaring().map(|part| part.start(id)).min().unwrap_or(0);
        if start == 0 {
            return 0;
        }
        let hosts: BTreeSet<&str> = declaring().map(|part| part.host).collect();
        let first_hosts: BTreeSet<&str> =
            declaring().filter(|part| part.start(id) == start).map(|part| part.host).collect();
        let is_known = |host: &str| hosts.contains(host);
        let may_be_before = incomplete_hosts.iter().any(|host| !is_known(host))
            || self.parts.iter().any(|part| !part.declares(id) && part.facts.is_damaged)
            || self.moves.iter().any(|moved| {
                let to_first = moved.to.as_ref().is_some_and(|to| first_hosts.contains(to.as_str()));
                to_first && !is_known(&moved.from)
            });
        if may_be_before {
            return 0;
        }
        let seen = self.parts.iter().filter_map(|part| part.facts.seen.get(&id)?.start());
        seen.fold(start, u64::min)
    }

    /// One past the last known event of the stream in any recording; at least the highest start, because
    /// another recorder has acknowledged the events before it.
    pub(super) fn end(&self, id: u32) -> u64 {
        self.parts.iter().map(|part| part.end(id)).max().unwrap_or(0)
    }

    /// Whether a complete recording that ended cleanly reaches the end of the stream, and no recording that
    /// may have continued the stream ended otherwise.
    pub(super) fn is_end_known(&self, id: u32) -> bool {
        let end = self.end(id);
        let of_stream =
            || self.parts.iter().filter(|part| part.declares(id) || part.facts.seen.contains_key(&id));
        let ended = of_stream().filter(|part| part.facts.is_clean() && part.end(id) == end);
        let Some(start) = ended.map(|part| part.start(id)).max() else { return false };
        let may_continue = |part: &Part<'_>| {
            // Of two recordings without events at the end, a host that lost its streams is not the last one.
            let may_be_after = start == end && !self.left.contains(part.host);
            part.start(id) > start || (part.start(id) == start && may_be_after)
        };
        !of_stream().any(|part| !part.facts.is_clean() && may_continue(part))
    }
}

#[cfg(test)]
#[path = "holders_tests.rs"]
mod tests;
