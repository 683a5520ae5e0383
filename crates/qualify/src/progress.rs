//! Progress reports of a running qualification.

use keepup_error::Cause;
use keepup_results::TrialResult;

/// One progress report.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// A phase starts; `estimate_s` is the maximum remaining time.
    Phase {
        /// Name of the phase.
        name: String,
        /// Maximum remaining time, seconds.
        estimate_s: f64,
    },
    /// A trial or soak starts.
    Trial {
        /// Purpose.
        phase: String,
        /// Rate, bytes per second; none: unthrottled.
        rate: Option<f64>,
        /// Duration, seconds.
        seconds: f64,
    },
    /// A trial or soak ended.
    Tried {
        /// Result.
        trial: Box<TrialResult>,
        /// One-line summary.
        text: String,
    },
    /// A ceiling was measured.
    Ceiling {
        /// Component.
        what: String,
        /// Throughput, bytes per second.
        bytes_per_second: f64,
    },
    /// An intermediate finding.
    Done {
        /// One-line text.
        text: String,
    },
    /// A note for the user.
    Warning {
        /// Text.
        text: String,
    },
    /// A file of the result is incomplete.
    MissingFile {
        /// Cause.
        why: Cause,
    },
}
