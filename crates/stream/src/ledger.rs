//! The ledger: where each event of each stream went, with every gap and its cause.
//!
//! Invariant of a complete ledger, per stream: due = sent + lost at source = received + gaps before receipt,
//! where every connection ended with its final counts;
//! received = written + gaps after receipt; written = durable; received = durable or lost in reduced form,
//! where there is one. `Ledger::balance` says what does not hold.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// Most gaps that one stream's ledger lists; later ones only count. A list grows with trouble, and memory
/// must not.
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

/// Why events are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossCause {
    /// The source itself lost them: its buffer was full.
    Source,
    /// Sequence numbers were skipped, and the source did not say why.
    SequenceGap,
    /// The connection ended before they arrived.
    ConnectionLost,
    /// They arrived damaged.
    BadChecksum,
    /// They were received, but the volume they were on failed.
    VolumeFailed,
    /// They were received, but no volume had room.
    SpaceExhausted,
    /// The recorder was cut off before they were durable, as by a loss of power; they may never have arrived.
    CutOff,
    /// They were received, but what was to be made of them could not be made.
    NotReduced,
}

impl LossCause {
    /// All causes.
    pub const ALL: [LossCause; 8] = [
        LossCause::Source,
        LossCause::SequenceGap,
        LossCause::ConnectionLost,
        LossCause::BadChecksum,
        LossCause::VolumeFailed,
        LossCause::SpaceExhausted,
        LossCause::CutOff,
        LossCause::NotReduced,
    ];

    /// Whether such events had been received (and counted as received) before they were lost.
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
    /// Why.
    pub cause: LossCause,
}

/// What became of the events of a stream that is reduced before it is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reduced {
    /// Events that are durable in their reduced form, with the bytes that they have there.
    pub durable: Count,
    /// Events received whose reduced form was lost.
    pub lost_events: u64,
    /// Whether what was received is kept beside it.
    pub raw_kept: bool,
}

/// Where the events of one stream went. Bytes are those that the source sent, also where less was written:
/// `reduced` has what lies on the volumes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamLedger {
    /// Sent by the source, as its end messages say.
    pub sent: Count,
    /// Connections that ended without an end message; `sent` and `lost_at_source` lack what they had.
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
    /// What it became, where it is reduced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduced: Option<Reduced>,
    /// The first [`MAX_GAPS_KEPT`] gaps.
    pub gaps: Vec<Gap>,
    /// Missing events by cause, of all gaps, listed or not.
    pub gap_events: BTreeMap<LossCause, u64>,
}

impl StreamLedger {
    /// Enters a gap.
    pub fn add_gap(&mut self, gap: Gap) {
        let total = self.gap_events.entry(gap.cause).or_default();
        *total = total.saturating_add(gap.events);
        if self.gaps.len() < MAX_GAPS_KEPT {
            self.gaps.push(gap);
        }
    }

    /// Whether everything received is durable, reduced where it is to be.
    pub fn is_whole(&self) -> bool {
        let reduced = self.reduced.is_none_or(|reduced| reduced.durable.events == self.received.events);
        self.received == self.durable && reduced
    }

    /// Payload that lies on the volumes.
    pub fn stored(&self) -> Count {
        match self.reduced {
            None => self.durable,
            Some(Reduced { durable, raw_kept: false, .. }) => durable,
            Some(Reduced { durable, raw_kept: true, .. }) => self.durable + durable,
        }
    }

    fn gap_events_where(&self, chosen: impl Fn(LossCause) -> bool) -> u64 {
        let chosen = self.gap_events.iter().filter(|(cause, _)| chosen(**cause));
        chosen.fold(0, |sum, (_, events)| sum.saturating_add(*events))
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
        for (cause, events) in &other.gap_events {
            let total = self.gap_events.entry(*cause).or_default();
            *total = total.saturating_add(*events);
        }
        let room = MAX_GAPS_KEPT - self.gaps.len().min(MAX_GAPS_KEPT);
        self.gaps.extend(other.gaps.iter().take(room));
    }

    /// The equalities of this module's invariant, in the order in which events travel.
    fn first_difference(&self) -> Option<Imbalance> {
        let before = self.gap_events_where(|cause| !cause.is_after_receipt());
        let after = self.gap_events_where(LossCause::is_after_receipt);
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
        // Bytes of missing events are not known to the receiver, so bytes are compared where none is missing.
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

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The first thing in a ledger that does not add up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("adding up the ledger of stream {stream}: {left_is}: {left}, but {right_is}: {right}")]
pub struct Imbalance {
    /// Stream id.
    pub stream: u32,
    /// What is on the left.
    pub left_is: &'static str,
    /// Its number.
    pub left: u64,
    /// What should be the same.
    pub right_is: &'static str,
    /// Its number.
    pub right: u64,
}

/// The ledger of a run: all streams by id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// One account for each stream.
    pub streams: BTreeMap<u32, StreamLedger>,
}

impl Ledger {
    /// The sum over all streams.
    pub fn total(&self) -> StreamLedger {
        let mut total = StreamLedger::default();
        for stream in self.streams.values() {
            total.add(stream);
        }
        total
    }

    /// Payload that lies on the volumes, of all streams.
    pub fn stored(&self) -> Count {
        self.streams.values().fold(Count::default(), |sum, stream| sum + stream.stored())
    }

    /// Whether everything received is durable, reduced where it is to be.
    pub fn is_whole(&self) -> bool {
        self.streams.values().all(StreamLedger::is_whole)
    }

    /// Whether every event of a run that has ended is accounted for.
    ///
    /// # Errors
    /// The first stream, in order of id, whose numbers do not add up. Losses that are entered as gaps add up.
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
