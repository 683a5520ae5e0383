//! What a running qualification tells whoever watches.

use keepup_results::TrialResult;

/// One piece of news.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// A phase begins; `estimate_s` is how long the whole rest may take.
    Phase {
        /// Its name, in words.
        name: String,
        /// Seconds until the end of the run, at most.
        estimate_s: f64,
    },
    /// A trial or soak begins.
    Trial {
        /// What for.
        phase: String,
        /// Rate, in bytes per second; nothing for as fast as it goes.
        rate: Option<f64>,
        /// Its length, in seconds.
        seconds: f64,
    },
    /// A trial or soak ended.
    Tried {
        /// What it showed.
        trial: Box<TrialResult>,
        /// The same in one line.
        text: String,
    },
    /// A component was measured alone.
    Ceiling {
        /// Which.
        what: String,
        /// What it did, in bytes per second.
        bytes_per_second: f64,
    },
    /// Something was found out.
    Done {
        /// What, in one line.
        text: String,
    },
    /// Something the user should know.
    Warning {
        /// The words.
        text: String,
    },
}
