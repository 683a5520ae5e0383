//! Errors of reproductions and of comparisons with papers.
use std::borrow::Cow;

use keepup_error::{Cause, Diagnostic, ErrorClass};

/// Error of a reproduction or of a comparison with a paper.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// The request does not suffice for the paper.
    #[error("cannot reproduce {name}: {why}")]
    Paper {
        /// Name of the paper.
        name: String,
        /// Cause.
        why: Cause,
    },
    /// The paper has no figures for the test.
    #[error("cannot compare with the figures of {paper}: {why}")]
    NotPublished {
        /// Name of the paper.
        paper: String,
        /// Cause.
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
