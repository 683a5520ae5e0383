//! Ledger: accounts for each event of each stream, with every gap and its cause.
//!
//! Invariant of a complete ledger, per stream: due = sent + lost at source = received + gaps
//! before receipt, if every connection ended with its final counts; received = written + gaps
//! after receipt; written = durable; received = durable or lost in reduced form, for a reduced
//! stream. `Ledger::balance` returns the first violation.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use keepup_measure::sum::Sums;
use serde::{Deserialize, Serialize};

/// Most gaps listed per stream; later ones are only counted, which bounds the memory.
pub const MAX_GAPS_KEPT: usize = 1000;

/// A number of events and their payload bytes. Arithmetic saturates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// Events.
    pub events: u64,
    /// Their payload, bytes.
    pub bytes: u64,
}

impl Count {
    /// One event of `bytes` payload.
    pub fn one(bytes: u64) -> Count {
        Count { events: 1, bytes }
    }
}

impl Add for Count {
    type Output = Count;

    fn add(self, other: Count) -> Count {
        Count {
            events: self.events.saturating_add(other.events),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Count) {
        *self = *self + other;
    }
}

impl Sub for Count {
    type Output = Count;

    fn sub(self, other: Count) -> Count {
        Count {
            events: self.events.saturating_sub(other.events),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

/// Cause of missing events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossCause {
    /// Lost by the source itself: its buffer was full.
    Source,
    /// Sequence numbers were skipped, and the source gave no reason.
    SequenceGap,
    /// The connection ended before they arrived.
    ConnectionLost,
    /// They arrived at this machine, and the kernel dropped them because the socket's receive buffer was
    /// full.
    SocketBuffer,
    /// A file that was to be recorded was removed, or could not be read.
    FileUnreadable,
    /// They arrived damaged.
    BadChecksum,
    /// Received, but their volume failed.
    VolumeFailed,
    /// Received, but no volume had space.
    SpaceExhausted,
    /// The recorder was interrupted before they were durable, for example by a power loss; they
    /// may not have arrived.
    CutOff,
    /// Received, but could not be reduced.
    NotReduced,
}

impl LossCause {
    /// All causes.
    pub const ALL: [LossCause; 10] = [
        LossCause::Source,
        LossCause::SequenceGap,
        LossCause::ConnectionLost,
        LossCause::SocketBuffer,
        LossCause::FileUnreadable,
        LossCause::BadChecksum,
        LossCause::VolumeFailed,
        LossCause::SpaceExhausted,
        LossCause::CutOff,
        LossCause::NotReduced,
    ];

    /// Whether such events were received (and counted as received) before they were lost.
    pub fn is_after_receipt(self) -> bool {
        matches!(self, LossCause::VolumeFailed | LossCause::SpaceExhausted | LossCause::NotReduced)
    }
}

impl fmt::Display for LossCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LossCause::Source => "lost at source",
            LossCause::SequenceGap => "sequence gap",
            LossCause::ConnectionLost => "connection lost",
            LossCause::SocketBuffer => "socket buffer full",
            LossCause::FileUnreadable => "file not readable",
            LossCause::BadChecksum => "bad checksum",
            LossCause::VolumeFailed => "volume failed",
            LossCause::SpaceExhausted => "space exhausted",
            LossCause::CutOff => "recorder cut off",
            LossCause::NotReduced => "not reduced",
        })
    }
}

/// Consecutive events of one stream that are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gap {
    /// Stream id.
    pub stream: u32,
    /// First missing sequence number.
    pub first_sequence: u64,
    /// Number of missing events.
    pub events: u64,
    /// Cause.
    pub cause: LossCause,
}

/// Cause of events that a stream skipped, which became known later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Explained {
    /// Stream id.
    pub stream: u32,
    /// It explains every gap of the stream below this sequence number with the cause
    /// [`LossCause::SequenceGap`].
    pub end_sequence: u64,
    /// Cause.
    pub cause: LossCause,
}

/// Counts of a reduced stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reduced {
    /// Durable events in reduced form, with their reduced size.
    pub durable: Count,
    /// Received events with a lost reduced form.
    pub lost_events: u64,
    /// Whether the raw events are kept too.
    pub raw_kept: bool,
}

/// Account of one stream. Bytes are raw bytes as sent by the source; `reduced` has the stored
/// bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamLedger {
    /// Sent by the source, according to its end messages.
    pub sent: Count,
    /// Connections that ended without an end message; their events are missing in `sent` and
    /// `lost_at_source`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unfinished: u64,
    /// Due, but lost before they could be sent.
    pub lost_at_source: Count,
    /// Received with a correct checksum.
    pub received: Count,
    /// Written: the kernel confirmed the write.
    pub written: Count,
    /// Durable: flushed to the medium.
    pub durable: Count,
    /// Counts of the reduced form, for a reduced stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduced: Option<Reduced>,
    /// The first [`MAX_GAPS_KEPT`] gaps.
    pub gaps: Vec<Gap>,
    /// Missing events by cause, over all gaps.
    pub gap_events: BTreeMap<LossCause, u64>,
    /// Of these, the ones that clients declared, by the cause that they stated. They never arrived here,
    /// whatever the cause.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub declared: BTreeMap<LossCause, u64>,
}

impl StreamLedger {
    /// Enters a gap.
    pub fn add_gap(&mut self, gap: Gap) {
        add_events(&mut self.gap_events, gap.cause, gap.events);
        if self.gaps.len() < MAX_GAPS_KEPT {
            self.gaps.push(gap);
        }
    }

    /// Enters a gap that a client declared.
    pub fn add_declared(&mut self, gap: Gap) {
        self.add_gap(gap);
        add_events(&mut self.declared, gap.cause, gap.events);
    }

    /// Missing events with this cause that no client declared.
    pub fn undeclared(&self, cause: LossCause) -> u64 {
        let events = |of: &BTreeMap<LossCause, u64>| of.get(&cause).copied().unwrap_or(0);
        events(&self.gap_events).saturating_sub(events(&self.declared))
    }

    /// Enters that the source has lost the events that it skipped without a reason, if its count of losses
    /// says so and no client declared skipped numbers. Returns their number.
    pub fn explain_skipped(&mut self) -> Option<u64> {
        let skipped = self.undeclared(LossCause::SequenceGap);
        let known = self.undeclared(LossCause::Source);
        let stated = self.declared.values().saturating_sum::<u64>();
        let all = skipped.saturating_add(known).saturating_add(stated);
        let is_mixed = self.declared.contains_key(&LossCause::SequenceGap);
        if skipped == 0 || is_mixed || all != self.lost_at_source.events {
            return None;
        }
        self.gap_events.remove(&LossCause::SequenceGap);
        add_events(&mut self.gap_events, LossCause::Source, skipped);
        let gaps = self.gaps.iter_mut().filter(|gap| gap.cause == LossCause::SequenceGap);
        gaps.for_each(|gap| gap.cause = LossCause::Source);
        Some(skipped)
    }

    /// Whether everything received is durable, in reduced form if the stream is reduced.
    pub fn is_whole(&self) -> bool {
        let reduced = self.reduced.is_none_or(|reduced| reduced.durable.events == self.received.events);
        self.received == self.durable && reduced
    }

    /// Enters that the source has sent exactly what was received or is missing, for a source that states
    /// sequence numbers and no counts.
    pub fn conclude_by_sequence(&mut self) {
        let missing = self.missing_before_receipt();
        self.sent =
            Count { events: self.received.events.saturating_add(missing), bytes: self.received.bytes };
    }

    /// Payload stored on the volumes.
    pub fn stored(&self) -> Count {
        match self.reduced {
            None => self.durable,
            Some(Reduced { durable, raw_kept: false, .. }) => durable,
            Some(Reduced { durable, raw_kept: true, .. }) => self.durable + durable,
        }
    }

    /// Missing events that did not arrive whole.
    fn missing_before_receipt(&self) -> u64 {
        let all: u64 = self.gap_events.values().saturating_sum();
        all.saturating_sub(self.lost_after_receipt())
    }

    /// Received events that were lost.
    fn lost_after_receipt(&self) -> u64 {
        let causes = LossCause::ALL.into_iter().filter(|cause| cause.is_after_receipt());
        causes.map(|cause| self.undeclared(cause)).saturating_sum()
    }

    fn add(&mut self, other: &StreamLedger) {
        self.sent += other.sent;
        self.unfinished = self.unfinished.saturating_add(other.unfinished);
        self.lost_at_source += other.lost_at_source;
        self.received += other.received;
        self.written += other.written;
        self.durable += other.durable;
        if let Some(other) = other.reduced {
            let reduced = self.reduced.get_or_insert_default();
            reduced.durable += other.durable;
            reduced.lost_events = reduced.lost_events.saturating_add(other.lost_events);
            reduced.raw_kept |= other.raw_kept;
        }
        other.gap_events.iter().for_each(|(cause, n)| add_events(&mut self.gap_events, *cause, *n));
        other.declared.iter().for_each(|(cause, n)| add_events(&mut self.declared, *cause, *n));
        let space = MAX_GAPS_KEPT - self.gaps.len().min(MAX_GAPS_KEPT);
        self.gaps.extend(other.gaps.iter().take(space));
    }

    /// First violated equality of this module's invariant, in the order of the events' path.
    fn first_difference(&self) -> Option<Imbalance> {
        let (before, after) = (self.missing_before_receipt(), self.lost_after_receipt());
        let due = self.sent + self.lost_at_source;
        let received = self.received;
        let arrived = received.events.saturating_add(before);
        let sent = ("events sent or lost at source", due.events, "received or missing", arrived);
        let sent = Some(sent).filter(|_| self.unfinished == 0);
        let events = [
            (
                "events received",
                received.events,
                "written or lost after receipt",
                self.written.events.saturating_add(after),
            ),
            ("events written", self.written.events, "durable", self.durable.events),
        ];
        let reduced = self.reduced.map(|reduced| {
            let kept = reduced.durable.events.saturating_add(reduced.lost_events);
            ("events received", received.events, "durable or lost in their reduced form", kept)
        });
        // The receiver does not know the size of missing events, so bytes are compared only
        // without missing events.
        let all_arrived = self.unfinished == 0 && before == self.lost_at_source.events;
        let bytes = [
            (all_arrived, "bytes sent", self.sent.bytes, "received", received.bytes),
            (after == 0, "bytes received", received.bytes, "written", self.written.bytes),
            (true, "bytes written", self.written.bytes, "durable", self.durable.bytes),
        ];
        let bytes = bytes.into_iter().filter(|row| row.0).map(|(_, l, left, r, right)| (l, left, r, right));
        let (left_is, left, right_is, right) = sent
            .into_iter()
            .chain(events)
            .chain(reduced)
            .chain(bytes)
            .find(|(_, left, _, right)| left != right)?;
        Some(Imbalance { stream: 0, left_is, left, right_is, right })
    }
}

fn add_events(to: &mut BTreeMap<LossCause, u64>, cause: LossCause, events: u64) {
    let total = to.entry(cause).or_default();
    *total = total.saturating_add(events);
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// First imbalance of a ledger.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("adding up the ledger of stream {stream}: {left_is}: {left}, but {right_is}: {right}")]
pub struct Imbalance {
    /// Stream id.
    pub stream: u32,
    /// Left side.
    pub left_is: &'static str,
    /// Its value.
    pub left: u64,
    /// Right side, which should be equal.
    pub right_is: &'static str,
    /// Its value.
    pub right: u64,
}

/// The ledger of a run: all streams by id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// Account of each stream.
    pub streams: BTreeMap<u32, StreamLedger>,
}

impl Ledger {
    /// Sum over all streams.
    pub fn total(&self) -> StreamLedger {
        let mut total = StreamLedger::default();
        for stream in self.streams.values() {
            total.add(stream);
        }
        total
    }

    /// Payload of all streams stored on the volumes.
    pub fn stored(&self) -> Count {
        self.streams.values().fold(Count::default(), |sum, stream| sum + stream.stored())
    }

    /// Whether everything received is durable, in reduced form if a stream is reduced.
    pub fn is_whole(&self) -> bool {
        self.streams.values().all(StreamLedger::is_whole)
    }

    /// Whether every event of a run that has ended is accounted for.
    ///
    /// # Errors
    /// The first stream, in order of id, with an imbalance. Losses entered as gaps balance.
    pub fn balance(&self) -> Result<(), Imbalance> {
        for (id, stream) in &self.streams {
            if let Some(difference) = stream.first_difference() {
                return Err(Imbalance { stream: *id, ..difference });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
