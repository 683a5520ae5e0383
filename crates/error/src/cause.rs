//! A cause in words with its hint, for errors whose causes have no type of their own.
use std::borrow::Cow;
use std::fmt;

use crate::Diagnostic;

/// Separates the hint where a channel carries one text only. No other file of keepup may spell it.
const HINT_LINE: &str = "\nhint: ";

/// Why something failed, in words, and the hint that goes with it. It displays without the hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    what: String,
    hint: Option<String>,
}

impl Cause {
    /// A cause without a hint.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), hint: None }
    }

    /// The text and the hint of an error.
    pub fn of(error: &dyn Diagnostic) -> Self {
        Self { what: error.to_string(), hint: error.hint().map(Cow::into_owned) }
    }

    /// The same cause with this hint; an empty one is none.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()).filter(|hint| !hint.is_empty()), ..self }
    }

    /// The same hint for the text `describe` makes of this one.
    #[must_use]
    pub fn map(self, describe: impl FnOnce(&str) -> String) -> Self {
        Self { what: describe(&self.what), hint: self.hint }
    }

    /// The hint.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        self.hint.as_deref().map(Cow::Borrowed)
    }

    /// Text and hint as one text, for a channel that carries only text, such as an error of serde or a string
    /// of a result. [`Cause::from_text`] takes it apart.
    pub fn to_text(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}{HINT_LINE}{hint}", self.what),
            None => self.what.clone(),
        }
    }

    /// Takes apart what [`Cause::to_text`] made.
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
