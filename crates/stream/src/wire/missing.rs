//! Message with which a client declares numbers that no event will have, and data that it rejected.

use std::collections::BTreeMap;

use keepup_error::Cause;
use serde::{Deserialize, Serialize};

use super::{ControlMessage, FrameKind, SEQUENCE_END, STREAM_ID_END};
use crate::ledger::Gap;
use crate::rejected::{ROWS_MAX, Rejected};

/// Most gaps in one message.
pub const MISSING_GAPS_MAX: usize = 10_000;

/// Numbers that no event will have, declared by a client before it sends events behind them.
///
/// A source states its losses as they happen, and a drain those of the recording that it copies, with the
/// data that were rejected there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Missing {
    /// At most [`MISSING_GAPS_MAX`] gaps; those of one stream in the order of their numbers.
    pub gaps: Vec<Gap>,
    /// At most [`ROWS_MAX`] rows of data that have no place in a stream, each with its count so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<Rejected>,
}

impl ControlMessage for Missing {
    const KIND: FrameKind = FrameKind::Missing;

    fn check(&self) -> Result<(), Cause> {
        if self.gaps.is_empty() && self.rejected.is_empty() {
            return Err("neither gaps nor rejected data".into());
        }
        if self.gaps.len() > MISSING_GAPS_MAX {
            return Err(format!("{} gaps, allowed are {MISSING_GAPS_MAX}", self.gaps.len()).into());
        }
        if self.rejected.len() > ROWS_MAX {
            let rows = self.rejected.len();
            return Err(format!("{rows} rows of rejected data, allowed are {ROWS_MAX}").into());
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
