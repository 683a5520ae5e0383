//! Errors of the engine: invalid or too expensive networks, simulations and ranges.

use std::borrow::Cow;

use keepup_error::{Diagnostic, ErrorClass};
use thiserror::Error;

/// Error of the engine.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum EngineError {
    /// Invalid figure: negative, NaN, or missing.
    #[error("cannot compute {what} of {name:?}: {value} is not a {wanted}")]
    BadFigure {
        /// Computation.
        what: &'static str,
        /// Name of the figure's owner.
        name: String,
        /// Value.
        value: f64,
        /// Expected value.
        wanted: &'static str,
    },
    /// Too expensive.
    #[error("cannot compute {what}: {number} {of} exceed the limit of {most}")]
    TooMany {
        /// Computation.
        what: &'static str,
        /// Number.
        number: u64,
        /// Counted objects.
        of: &'static str,
        /// Limit.
        most: u64,
        /// Hint.
        hint: &'static str,
    },
    /// All service times are zero.
    #[error("cannot compute {what}: all service times are 0")]
    Nothing {
        /// Computation.
        what: &'static str,
    },
    /// The result violates bounds that hold for any network: an arithmetic error.
    #[error(
        "cannot compute a network of {stations} stations with {population} operations: {found} operations/s \
         are outside of {lower} to {upper}"
    )]
    OutsideBounds {
        /// Stations of the network.
        stations: usize,
        /// Concurrent operations.
        population: u32,
        /// Result, operations per second.
        found: f64,
        /// The lower bound.
        lower: f64,
        /// The upper bound.
        upper: f64,
    },
    /// A source faster than the stages in the long run.
    #[error(
        "cannot compute a buffer: the source sends {:.3} MB/s, more than the {:.3} MB/s that the slowest \
         stage sustains including stalls",
        rate_in / 1e6, rate_out / 1e6
    )]
    NoBufferSuffices {
        /// Source rate, bytes per second.
        rate_in: f64,
        /// Rate of the slowest stage, bytes per second.
        rate_out: f64,
    },
}

impl Diagnostic for EngineError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::BadFigure { .. }
            | Self::TooMany { .. }
            | Self::Nothing { .. }
            | Self::OutsideBounds { .. }
            | Self::NoBufferSuffices { .. } => ErrorClass::Usage,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Self::TooMany { hint, .. } => *hint,
            Self::OutsideBounds { .. } => {
                "the result is a numerical error: try another number of operations, and report it"
            }
            Self::NoBufferSuffices { .. } => "use a slower source or a faster stage",
            Self::BadFigure { .. } | Self::Nothing { .. } => return None,
        };
        Some(hint.into())
    }
}
