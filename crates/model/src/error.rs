//! Errors of parts, machines and settings.

use std::borrow::Cow;

use crate::engine_error::EngineError;
use keepup_error::{Cause, Diagnostic, ErrorClass};
use keepup_plan::{SourceLocation, close_names, line_of_key};

/// Error of the model.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// Unknown name.
    #[error("cannot find {what} {name:?}: no such {what}{}", suggestion(.close))]
    Unknown {
        /// Part, machine, path and so on.
        what: &'static str,
        /// Requested name.
        name: String,
        /// Similar names.
        close: Vec<String>,
    },
    /// A file is invalid.
    #[error("{place}: {}{reason}", prefix(.key))]
    Invalid {
        /// File and line.
        place: SourceLocation,
        /// Dotted key, empty if the file is not TOML.
        key: String,
        /// Cause.
        reason: Cause,
    },
    /// The machine does not support the setting.
    #[error("cannot set {setting:?} of {machine}: {reason}")]
    Setting {
        /// Setting as given.
        setting: String,
        /// Name of the machine.
        machine: String,
        /// Cause.
        reason: Cause,
    },
    /// The machine cannot be evaluated.
    #[error("cannot evaluate {machine}: {reason}")]
    Unsolvable {
        /// Name of the machine.
        machine: String,
        /// Cause.
        reason: Cause,
    },
    /// Error of the engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

fn suggestion(close: &[String]) -> String {
    if close.is_empty() { String::new() } else { format!("; similar: {}", close.join(", ")) }
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
                "paper" => Some("use cdf-csl, cern-vme, esrf-2007, romanis or tweakers-pci".into()),
                "part" => Some("list the parts with keepup predict parts".into()),
                "machine" => Some(
                    "list the machines with keepup predict machines, or give the path of a file, with '/' \
                     and '.toml'"
                        .into(),
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
    /// Creates the error for an unknown name.
    pub(crate) fn unknown<'a>(what: &'static str, name: &str, known: impl Iterator<Item = &'a str>) -> Self {
        Self::Unknown { what, name: name.to_owned(), close: close_names(name, known) }
    }
}

/// Invalid entry at a dotted key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fault {
    pub(crate) key: String,
    pub(crate) reason: Cause,
}

impl Fault {
    pub(crate) fn new(key: impl Into<String>, reason: impl Into<Cause>) -> Self {
        Self { key: key.into(), reason: reason.into() }
    }

    /// Combines key and reason.
    pub(crate) fn into_cause(self) -> Cause {
        let Self { key, reason } = self;
        reason.map(|reason| format!("{key}: {reason}"))
    }

    /// Adds the line of its key, or of the closest enclosing table.
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

/// Parses TOML. Errors contain line and key.
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
