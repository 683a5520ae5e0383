//! Message with which a client declares numbers that no event will have.

use std::collections::BTreeMap;

use keepup_error::Cause;
use serde::{Deserialize, Serialize};

use super::{ControlMessage, FrameKind, SEQUENCE_END, STREAM_ID_END};
use crate::ledger::Gap;

/// Most gaps in one message.
pub const MISSING_GAPS_MAX: usize = 10_000;

/// Numbers that no event will have, declared by a client before it sends events behind them.
///
/// A source states its losses as they happen, and a drain those of the recording that it copies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Missing {
    /// 1 to [`MISSING_GAPS_MAX`] gaps; those of one stream in the order of their numbers.
    pub gaps: Vec<Gap>,
}

impl ControlMessage for Missing {
    const KIND: FrameKind = FrameKind::Missing;

    fn check(&self) -> Result<(), Cause> {
        if self.gaps.is_empty() || self.gaps.len() > MISSING_GAPS_MAX {
            return Err(format!("{} gaps, allowed are 1 to {MISSING_GAPS_MAX}", self.gaps.len()).into());
        }
        let mut ends = BTreeMap::new();
        for &Gap { stream, first_sequence, events, .. } in &self.gaps {
            if stream >= STREAM_ID_END {
                return Err(format!("stream id {stream} is above 65535").into());
            }
            let end = first_sequence.checked_add(events).filter(|&end| events > 0 && end <= SEQUENCE_END);
            let Some(end) = end else {
                let what = format!(
                    "stream {stream}: {events} events from {first_sequence} on are none, or reach 2^63"
                );
                return Err(what.into());
            };
            if ends.insert(stream, end).is_some_and(|before| before > first_sequence) {
                return Err(format!("stream {stream}: its gaps overlap, or are not in order").into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "missing_tests.rs"]
mod tests;
