//! Why a trace cannot be replayed.
use super::trace::TraceError;

/// An error of replaying.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The trace does not go with what is asked.
    #[error("cannot replay {trace}: {what}\nhint: {hint}")]
    Unfit {
        /// The trace.
        trace: String,
        /// Why not.
        what: String,
        /// What helps.
        hint: String,
    },
    /// Requests failed.
    #[error(
        "replay of {trace} on {place}: {count} requests failed, the first: {why}\n\
         hint: the kernel's log tells more (dmesg); what was measured before stands"
    )]
    Failed {
        /// The trace.
        trace: String,
        /// Where.
        place: String,
        /// How many.
        count: u64,
        /// What became of the first.
        why: String,
    },
}
