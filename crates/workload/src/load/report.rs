//! What the process of a load tells its parent: one JSON object a line.
use serde::{Deserialize, Serialize};

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "load", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Report {
    /// Everything is ready, the work begins.
    Begun {
        /// When, ns on the monotonic clock, which is the same in every process.
        t_ns: u64,
        /// What the reader of its figures should know.
        notes: Vec<String>,
    },
    /// How far it is.
    Done {
        /// The moment, ns on the monotonic clock.
        t_ns: u64,
        /// Bytes moved, or ns on processors, since it began.
        amount: u64,
        /// CPU of this process since it began, ns.
        cpu_ns: u64,
    },
    /// It cannot go on.
    Failed {
        /// Why, and what helps.
        why: String,
    },
}

impl Report {
    /// The line.
    pub(super) fn line(&self) -> String {
        // A type of numbers and texts can always be encoded.
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}
