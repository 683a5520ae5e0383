//! Error of parsing a quantity: input, reason and accepted form.

use std::borrow::Cow;
use std::fmt;

use keepup_error::{Diagnostic, ErrorClass};

/// Maximum length of quoted input, characters.
const WRITTEN_MAX: usize = 40;

/// Error of parsing a quantity.
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
        let Self { what, written, why, accepted, hint: _ } = self;
        write!(f, "cannot read {written:?} as {what}: {why}; accepted: {accepted}")
    }
}

impl std::error::Error for UnitError {}

impl Diagnostic for UnitError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        self.hint.as_deref().map(Cow::Borrowed)
    }
}
