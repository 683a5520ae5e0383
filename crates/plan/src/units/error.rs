//! What is said when a quantity cannot be read: what was written, why it is refused, what is accepted.

use std::fmt;

/// Longest part of the written text that is repeated in a message, in characters.
const WRITTEN_MAX: usize = 40;

/// A quantity that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitError {
    what: &'static str,
    written: String,
    why: String,
    accepted: &'static str,
    hint: Option<String>,
}

impl UnitError {
    pub(super) fn new(
        what: &'static str,
        written: &str,
        why: impl Into<String>,
        accepted: &'static str,
    ) -> Self {
        let written = written.chars().take(WRITTEN_MAX).collect();
        Self { what, written, why: why.into(), accepted, hint: None }
    }

    pub(super) fn with_hint(self, hint: Option<String>) -> Self {
        Self { hint, ..self }
    }
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, written, why, accepted, hint } = self;
        write!(f, "cannot read {written:?} as {what}: {why}; accepted is {accepted}")?;
        hint.iter().try_for_each(|hint| write!(f, "\nhint: {hint}"))
    }
}

impl std::error::Error for UnitError {}
