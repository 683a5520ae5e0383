//! Errors of comparisons.
use std::borrow::Cow;

use keepup_error::{Diagnostic, ErrorClass};

/// Error of a comparison.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// No result at all.
    #[error("cannot compare results: none given")]
    Nothing,
    /// Only one system.
    #[error("cannot compare results: {name} is the only system")]
    OneSystem {
        /// Its name.
        name: String,
    },
    /// Different tests.
    #[error(
        "cannot compare {first} with {second}: different tests, `{first_workload}` and \
         `{second_workload}`"
    )]
    DifferentWorkloads {
        /// First system.
        first: String,
        /// Its test.
        first_workload: String,
        /// Second system.
        second: String,
        /// Its test.
        second_workload: String,
    },
    /// No system of that name.
    #[error("cannot compare with baseline {name}: no such system")]
    NoSuchBaseline {
        /// The name.
        name: String,
        /// Existing systems.
        known: Vec<String>,
    },
    /// Two systems of one name.
    #[error("cannot compare results: two systems are named {name}")]
    SameName {
        /// The name.
        name: String,
    },
    /// No figure in common.
    #[error("cannot compare results: they have no figure in common")]
    NothingShared,
}

impl Diagnostic for CompareError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Nothing
            | Self::OneSystem { .. }
            | Self::DifferentWorkloads { .. }
            | Self::NoSuchBaseline { .. }
            | Self::SameName { .. }
            | Self::NothingShared => ErrorClass::Usage,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Self::Nothing => "use keepup compare RESULT RESULT",
            Self::OneSystem { .. } => "add a second result, or use one with several places",
            Self::DifferentWorkloads { .. } => "compare results of the same test",
            Self::NoSuchBaseline { known, .. } => {
                return Some(format!("use one of {}", known.join(", ")).into());
            }
            Self::SameName { name } => return Some(format!("rename one, such as fast={name}").into()),
            Self::NothingShared => "compare results with the same settings, or omit --only",
        };
        Some(hint.into())
    }
}
