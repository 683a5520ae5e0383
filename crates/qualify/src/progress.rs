//! What a running qualification tells whoever watches.

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
    /// A trial, soak or ceiling ended.
    Done {
        /// What it showed, one line.
        text: String,
    },
    /// Something the user should know.
    Warning {
        /// The words.
        text: String,
    },
}
