//! What can be wrong with parts, machines and settings.

use keepup_plan::{Place, close_names, line_of_key};

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// Nothing of that kind has this name.
    #[error("no {what} is called {name:?}{}{}", suggestion(.close), hint(.what))]
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
        place: Place,
        /// Dotted key; empty where the text as a whole is no TOML.
        key: String,
        /// What is wrong, possibly with a hint on a second line.
        reason: String,
    },
    /// A setting that a machine cannot have.
    #[error("cannot set {setting:?} of {machine}: {reason}")]
    Setting {
        /// As it was written.
        setting: String,
        /// The machine's name.
        machine: String,
        /// What is wrong.
        reason: String,
    },
    /// A machine that cannot be put into numbers.
    #[error("cannot reckon with {machine}: {reason}")]
    Unsolvable {
        /// The machine's name.
        machine: String,
        /// What is wrong.
        reason: String,
    },
}

fn suggestion(close: &[String]) -> String {
    if close.is_empty() { String::new() } else { format!("; close to it: {}", close.join(", ")) }
}

fn hint(what: &str) -> &'static str {
    match what {
        "part" => "\nhint: keepup predict parts",
        "machine" => "\nhint: keepup predict machines, or a path with '/' and '.toml' for a file of your own",
        _ => "",
    }
}

fn prefix(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!("{key}: ") }
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
    pub(crate) reason: String,
}

impl Fault {
    pub(crate) fn new(key: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { key: key.into(), reason: reason.into() }
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
        ModelError::Invalid { place: Place { origin: file.to_owned(), line }, key, reason }
    }
}

/// Reads TOML; an error has its line and key.
pub(crate) fn read<T: serde::de::DeserializeOwned>(text: &str, file: &str) -> Result<T, ModelError> {
    toml::from_str(text).map_err(|error| {
        let span = error.span().unwrap_or_default();
        let line = Some(keepup_plan::line_of_offset(text, span.start));
        let place = Place { origin: file.to_owned(), line };
        ModelError::Invalid {
            place,
            key: keepup_plan::key_at(text, &span),
            reason: error.message().to_owned(),
        }
    })
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
