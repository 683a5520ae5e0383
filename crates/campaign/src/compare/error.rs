//! What can go wrong with a comparison.
use std::borrow::Cow;

use keepup_error::{Diagnostic, ErrorClass};

/// Why nothing was compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// No result at all.
    #[error("cannot compare results: none was given")]
    Nothing,
    /// Only one system.
    #[error("cannot compare results: {name} is the only system")]
    OneSystem {
        /// Its name.
        name: String,
    },
    /// Different tests.
    #[error(
        "cannot compare {first} with {second}: one is of `{first_workload}`, the other of \
         `{second_workload}`; their figures do not mean the same"
    )]
    DifferentWorkloads {
        /// One system.
        first: String,
        /// What it was put to.
        first_workload: String,
        /// Another.
        second: String,
        /// What that was put to.
        second_workload: String,
    },
    /// No system of that name.
    #[error("cannot compare with the baseline {name}: no system has this name")]
    NoSuchBaseline {
        /// The name.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// Two systems of one name.
    #[error("cannot compare results: two systems are called {name}")]
    SameName {
        /// The name.
        name: String,
    },
    /// No figure in common.
    #[error("cannot compare results: no figure is in two of them")]
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
            Self::Nothing => "keepup compare RESULT RESULT",
            Self::OneSystem { .. } => "name a second result, or one that measured several places",
            Self::DifferentWorkloads { .. } => "compare results of the same test",
            Self::NoSuchBaseline { known, .. } => {
                return Some(format!("one of {}", known.join(", ")).into());
            }
            Self::SameName { name } => return Some(format!("name them, as in fast={name}").into()),
            Self::NothingShared => "compare results of the same settings, or leave --only out",
        };
        Some(hint.into())
    }
}
