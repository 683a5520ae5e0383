//! What the engine refuses: networks of queues, simulations and ranges that mean nothing, or would take too
//! long.

use thiserror::Error;

/// Why a network, a simulation or a range was not worked out.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum EngineError {
    /// A figure that cannot be: below zero, not a number, none where one is needed.
    #[error("work out {what} of {name:?}: {value} is no {wanted}")]
    BadFigure {
        /// What was to be worked out.
        what: &'static str,
        /// Whose figure it is.
        name: String,
        /// The figure.
        value: f64,
        /// What it must be.
        wanted: &'static str,
    },
    /// More than can be worked out in reasonable time.
    #[error("work out {what}: {number} {of} are more than {most}\nhint: {hint}")]
    TooMany {
        /// What was to be worked out.
        what: &'static str,
        /// How many there are.
        number: u64,
        /// Of what.
        of: &'static str,
        /// The limit.
        most: u64,
        /// What helps.
        hint: &'static str,
    },
    /// There is nothing that takes time.
    #[error("work out {what}: nothing in it takes any time")]
    Nothing {
        /// What was to be worked out.
        what: &'static str,
    },
    /// The answer contradicts what holds for any network: a mistake in the arithmetic.
    #[error(
        "work out a network of {stations} stations with {population} operations: {found} operations/s are \
         outside of {lower} to {upper}\nhint: the arithmetic lost its precision there; try another number of \
         operations, and report it"
    )]
    OutsideBounds {
        /// Stations of the network.
        stations: usize,
        /// Operations under way.
        population: u32,
        /// The answer, operations per second.
        found: f64,
        /// The lower bound.
        lower: f64,
        /// The upper bound.
        upper: f64,
    },
    /// A source that is too fast in the long run.
    #[error(
        "work out a buffer: the source sends {:.3} MB/s and the slowest stage takes {:.3} MB/s in the long \
         run, stalls counted, so no buffer suffices\nhint: a slower source or a faster stage",
        rate_in / 1e6, rate_out / 1e6
    )]
    NoBufferSuffices {
        /// What the source sends, bytes per second.
        rate_in: f64,
        /// What the slowest stage takes, bytes per second.
        rate_out: f64,
    },
}
