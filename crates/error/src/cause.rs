//! Textual cause of an error with its hint.
use std::borrow::Cow;
use std::fmt;

use crate::Diagnostic;

/// Separator of the hint in channels that carry a single text. Must not be used elsewhere.
const HINT_LINE: &str = "\nhint: ";

/// Cause of an error with an optional hint. Displays without the hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    what: String,
    hint: Option<String>,
}

impl Cause {
    /// Creates a cause without a hint.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), hint: None }
    }

    /// Text and hint of an error.
    pub fn of(error: &dyn Diagnostic) -> Self {
        Self { what: error.to_string(), hint: error.hint().map(Cow::into_owned) }
    }

    /// Sets the hint. An empty hint is ignored.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()).filter(|hint| !hint.is_empty()), ..self }
    }

    /// Replaces the text by `describe(text)`, keeps the hint.
    #[must_use]
    pub fn map(self, describe: impl FnOnce(&str) -> String) -> Self {
        Self { what: describe(&self.what), hint: self.hint }
    }

    /// Hint.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        self.hint.as_deref().map(Cow::Borrowed)
    }

    /// Text and hint as a single text, for channels such as a serde error or a string in a result. Inverse of
    /// [`Cause::from_text`].
    pub fn to_text(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}{HINT_LINE}{hint}", self.what),
            None => self.what.clone(),
        }
    }

    /// Parses the output of [`Cause::to_text`].
    pub fn from_text(text: &str) -> Self {
        let (what, hint) = text.split_once(HINT_LINE).unwrap_or((text, ""));
        Self::new(what).with_hint(hint)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl From<String> for Cause {
    fn from(what: String) -> Self {
        Self::new(what)
    }
}

impl From<&str> for Cause {
    fn from(what: &str) -> Self {
        Self::new(what)
    }
}

#[cfg(test)]
#[path = "cause_tests.rs"]
mod tests;
