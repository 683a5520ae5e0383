//! What can be wrong with parts, machines and settings.

use std::borrow::Cow;

use crate::engine_error::EngineError;
use keepup_error::{Cause, Diagnostic, ErrorClass};
use keepup_plan::{SourceLocation, close_names, line_of_key};

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// Nothing of that kind has this name.
    #[error("cannot find {what} {name:?}: no {what} is called that{}", suggestion(.close))]
    Unknown {
        /// Part, machine, path and so on.
        what: &'static str,
        /// The name that was asked for.
        name: String,
        /// Names that differ in a few letters.
        close: Vec<String>,
    },
    /// A file says something that cannot be.
    #[error("{place}: {}{reason}", prefix(.key))]
    Invalid {
        /// File and line.
        place: SourceLocation,
        /// Dotted key; empty where the text as a whole is no TOML.
        key: String,
        /// What is wrong.
        reason: Cause,
    },
    /// A setting that a machine cannot have.
    #[error("cannot set {setting:?} of {machine}: {reason}")]
    Setting {
        /// As it was written.
        setting: String,
        /// The machine's name.
        machine: String,
        /// What is wrong.
        reason: Cause,
    },
    /// A machine that cannot be put into numbers.
    #[error("cannot evaluate {machine}: {reason}")]
    Unsolvable {
        /// The machine's name.
        machine: String,
        /// What is wrong.
        reason: Cause,
    },
    /// Numbers that the engine refuses.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

fn suggestion(close: &[String]) -> String {
    if close.is_empty() { String::new() } else { format!("; close to it: {}", close.join(", ")) }
}

fn prefix(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!("{key}: ") }
}

impl Diagnostic for ModelError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Unknown { .. }
            | Self::Invalid { .. }
            | Self::Setting { .. }
            | Self::Unsolvable { .. }
            | Self::Engine(_) => ErrorClass::Usage,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Unknown { what, .. } => match *what {
                "paper" => Some("cdf-csl, cern-vme, esrf-2007, romanis or tweakers-pci".into()),
                "part" => Some("keepup predict parts".into()),
                "machine" => Some(
                    "keepup predict machines, or a path with '/' and '.toml' for a file of your own".into(),
                ),
                _ => None,
            },
            Self::Invalid { reason, .. } | Self::Setting { reason, .. } | Self::Unsolvable { reason, .. } => {
                reason.hint()
            }
            Self::Engine(e) => e.hint(),
        }
    }
}

impl ModelError {
    /// The error for a name that none of the known ones is.
    pub(crate) fn unknown<'a>(what: &'static str, name: &str, known: impl Iterator<Item = &'a str>) -> Self {
        Self::Unknown { what, name: name.to_owned(), close: close_names(name, known) }
    }
}

/// Something that cannot be, at a dotted key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fault {
    pub(crate) key: String,
    pub(crate) reason: Cause,
}

impl Fault {
    pub(crate) fn new(key: impl Into<String>, reason: impl Into<Cause>) -> Self {
        Self { key: key.into(), reason: reason.into() }
    }

    /// Key and reason in one text.
    pub(crate) fn in_words(self) -> Cause {
        let Self { key, reason } = self;
        reason.map(|reason| format!("{key}: {reason}"))
    }

    /// With its line: that of its key, or of the closest table around it.
    pub(crate) fn placed(self, text: &str, file: &str) -> ModelError {
        let Self { key, reason } = self;
        let mut around = key.as_str();
        let mut line = line_of_key(text, around);
        while let (None, Some((outer, _))) = (line, around.rsplit_once('.')) {
            around = outer;
            line = line_of_key(text, around);
        }
        ModelError::Invalid { place: SourceLocation { origin: file.to_owned(), line }, key, reason }
    }
}

/// Reads TOML; an error has its line and key.
pub(crate) fn read<T: serde::de::DeserializeOwned>(text: &str, file: &str) -> Result<T, ModelError> {
    toml::from_str(text).map_err(|error| {
        let span = error.span().unwrap_or_default();
        let line = Some(keepup_plan::line_of_offset(text, span.start));
        let place = SourceLocation { origin: file.to_owned(), line };
        ModelError::Invalid {
            place,
            key: keepup_plan::key_at(text, &span),
            reason: Cause::from_text(error.message()),
        }
    })
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
