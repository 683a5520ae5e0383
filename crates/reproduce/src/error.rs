//! What can go wrong with repeating a paper, or with comparing with one.
use std::borrow::Cow;

use keepup_error::{Cause, Diagnostic, ErrorClass};

/// Why a paper cannot be repeated, or has nothing to compare with.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// A paper cannot be repeated with what was given.
    #[error("cannot repeat {name}: {why}")]
    Paper {
        /// Its name.
        name: String,
        /// Why not.
        why: Cause,
    },
    /// A paper that has nothing of the test.
    #[error("cannot compare with what {paper} published: {why}")]
    NotPublished {
        /// Its name.
        paper: String,
        /// Why not.
        why: Cause,
    },
}

impl Diagnostic for ReproduceError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Paper { .. } | Self::NotPublished { .. } => ErrorClass::Usage,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Paper { why, .. } | Self::NotPublished { why, .. } => why.hint(),
        }
    }
}
