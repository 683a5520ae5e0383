//! Reports of a load's worker to its parent: one JSON object per line.
use serde::{Deserialize, Serialize};

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "load", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Report {
    /// Preparation is done, work begins.
    Begun {
        /// Time, ns on the system-wide monotonic clock.
        t_ns: u64,
        /// Notes for the result.
        notes: Vec<String>,
    },
    /// Progress.
    Done {
        /// Time, ns on the monotonic clock.
        t_ns: u64,
        /// Work since the start: bytes, or CPU time in ns.
        amount: u64,
        /// CPU time of the worker since the start, ns.
        cpu_ns: u64,
    },
    /// Failure.
    Failed {
        /// Cause and hint.
        why: String,
    },
}

impl Report {
    /// Encoded line.
    pub(super) fn line(&self) -> String {
        // A type of numbers and strings can always be encoded.
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}
