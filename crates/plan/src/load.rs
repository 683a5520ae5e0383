//! Loading of profiles by name or path, with `extends` and error messages that name the line.

mod close;

pub use close::close_names;

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use keepup_error::{Cause, Diagnostic, ErrorClass};
use toml::{Table, Value};

use crate::builtin::{builtin_names, builtin_text};
use crate::place::{SourceLocation, key_at, line_of_key, line_of_offset};
use crate::profile::{Invalid, Profile};
use crate::toml_form::ProfileFile;

/// Maximum length of a chain of `extends`, including the first profile.
const CHAIN_MAX: usize = 8;
/// Maximum size of a profile file, bytes; a hand-written one has a few kilobytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Error of loading a profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// Unknown built-in profile.
    #[error("cannot find profile {name:?}: no built-in profile has this name")]
    Unknown {
        /// Requested name.
        name: String,
        /// Similar names.
        close: Vec<String>,
    },
    /// Unreadable file.
    #[error("cannot read profile {path}: {source}")]
    Unreadable {
        /// Path as given.
        path: String,
        /// System error.
        source: io::Error,
    },
    /// Invalid content.
    #[error("{place}: {}{reason}", prefix(.key))]
    Invalid {
        /// File and line.
        place: SourceLocation,
        /// Dotted key; empty if the text is not valid TOML.
        key: String,
        /// What is wrong.
        reason: Cause,
    },
}

impl Diagnostic for ProfileError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Unknown { .. } | Self::Unreadable { .. } | Self::Invalid { .. } => ErrorClass::Usage,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Unknown { close, .. } => {
                let close = close::suggestion(close);
                Some(format!("{close}`keepup profile list` shows all of them").into())
            }
            Self::Unreadable { .. } => Some("a name without '/' and '.toml' means a built-in profile".into()),
            Self::Invalid { reason, .. } => reason.hint(),
        }
    }
}

fn prefix(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!("{key}: ") }
}

/// One file of a chain of `extends`.
struct Link {
    origin: String,
    text: String,
}

impl Link {
    fn invalid(&self, key: &str, reason: impl Into<Cause>) -> ProfileError {
        let place = SourceLocation { origin: self.origin.clone(), line: line_of_key(&self.text, key) };
        ProfileError::Invalid { place, key: key.to_owned(), reason: reason.into() }
    }

    /// Checks each key individually, so that errors are reported for the right line.
    fn read(&self) -> Result<(ProfileFile, Table), ProfileError> {
        let refuse = |error: toml::de::Error| {
            let span = error.span().unwrap_or_default();
            let line = Some(line_of_offset(&self.text, span.start));
            let place = SourceLocation { origin: self.origin.clone(), line };
            ProfileError::Invalid {
                place,
                key: key_at(&self.text, &span),
                reason: Cause::from_text(error.message()),
            }
        };
        Ok((toml::from_str(&self.text).map_err(refuse)?, toml::from_str(&self.text).map_err(refuse)?))
    }
}

/// Loads a built-in profile by name, or a file if the text contains '/' or ends in ".toml".
/// Extended profiles are resolved in the same way, relative to the folder of the first file.
pub fn load(name_or_path: &str) -> Result<Profile, ProfileError> {
    if !is_path(name_or_path) {
        return builtin(name_or_path);
    }
    let folder = Path::new(name_or_path).parent().unwrap_or(Path::new(""));
    let resolve = |name: &str| {
        if is_path(name) { read_file(&folder.join(name).to_string_lossy()) } else { text_of(name) }
    };
    parse(&read_file(name_or_path)?, name_or_path, &resolve)
}

fn is_path(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml")
}

fn read_file(path: &str) -> Result<String, ProfileError> {
    let read = || {
        let mut text = String::new();
        // One byte more than allowed detects a file that is too long, and bounds endless files.
        File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
        if text.len() as u64 > FILE_BYTES_MAX {
            let reason = format!("more than {FILE_BYTES_MAX} bytes are no profile");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
        }
        Ok(text)
    };
    read().map_err(|source| ProfileError::Unreadable { path: path.to_owned(), source })
}

/// Built-in profile of this name.
pub fn builtin(name: &str) -> Result<Profile, ProfileError> {
    parse(&text_of(name)?, &format!("profiles/{name}.toml"), &text_of)
}

/// Text of the built-in profile of this name.
fn text_of(name: &str) -> Result<String, ProfileError> {
    builtin_text(name).map(str::to_owned).ok_or_else(|| ProfileError::Unknown {
        name: name.to_owned(),
        close: close::close_names(name, builtin_names()),
    })
}

/// Parses and validates a profile with everything it extends. `origin` is used in messages; a file
/// must have the profile's name. `resolve` returns the text of an extended profile.
pub fn parse(
    text: &str,
    origin: &str,
    resolve: &dyn Fn(&str) -> Result<String, ProfileError>,
) -> Result<Profile, ProfileError> {
    let mut chain = vec![Link { origin: origin.to_owned(), text: text.to_owned() }];
    let (file, mut merged) = chain[0].read()?;
    check_name(&chain[0], file.name.as_deref())?;
    let mut extends = file.extends;
    while let Some(base) = extends {
        let child = &chain[chain.len() - 1];
        if chain[1..].iter().any(|link| link.origin == base) {
            return Err(child.invalid("extends", format!("{base:?} would extend itself")));
        }
        if chain.len() == CHAIN_MAX {
            return Err(child.invalid("extends", format!("more than {CHAIN_MAX} profiles in a chain")));
        }
        let text = resolve(&base).map_err(|error| child.invalid("extends", Cause::of(&error)))?;
        let link = Link { origin: base, text };
        let (file, table) = link.read()?;
        merged = extend(table, merged);
        extends = file.extends;
        chain.push(link);
    }
    complete(&chain, merged)
}

/// A profile must have a name, which must match its file name.
fn check_name(link: &Link, name: Option<&str>) -> Result<(), ProfileError> {
    let stem = link.origin.strip_suffix(".toml").map(|path| path.rsplit('/').next().unwrap_or(path));
    match (name, stem) {
        (None, _) => Err(link.invalid("name", "it is missing")),
        (Some(name), Some(stem)) if name != stem => {
            Err(link.invalid("name", format!("{name:?} is not the name of its file, {stem:?}")))
        }
        _ => Ok(()),
    }
}

/// Merges `child` over `base`, key by key. `[event]` is replaced as a whole, because two partial
/// size descriptions cannot be combined. Name and description are not inherited. A reference
/// replaces the one about the same value.
fn extend(mut base: Table, mut child: Table) -> Table {
    base.remove("name");
    base.remove("description");
    let about = |reference: &Value| reference.get("what").cloned();
    let restated = match child.get("reference") {
        Some(Value::Array(references)) => references.iter().map(about).collect(),
        _ => Vec::new(),
    };
    if let Some(Value::Array(mut inherited)) = base.remove("reference") {
        inherited.retain(|reference| !restated.contains(&about(reference)));
        let own = child.entry("reference").or_insert_with(|| Value::Array(Vec::new()));
        own.as_array_mut().into_iter().for_each(|own| own.append(&mut inherited));
    }
    if child.contains_key("event") {
        base.remove("event");
    }
    merge(base, child)
}

/// Copies all keys of `child`, recursively for tables.
fn merge(mut base: Table, child: Table) -> Table {
    for (key, value) in child {
        let merged = match (base.remove(&key), value) {
            (Some(Value::Table(old)), Value::Table(new)) => Value::Table(merge(old, new)),
            (_, value) => value,
        };
        base.insert(key, merged);
    }
    base
}

fn complete(chain: &[Link], merged: Table) -> Result<Profile, ProfileError> {
    let locate = |Invalid { key, reason }: Invalid| {
        let table = key.split('.').next().unwrap_or(key);
        let says = |key| chain.iter().find(move |link| line_of_key(&link.text, key).is_some());
        match (says(key), says(table)) {
            (Some(link), _) => link.invalid(key, reason),
            (None, Some(link)) => {
                let place =
                    SourceLocation { origin: link.origin.clone(), line: line_of_key(&link.text, table) };
                ProfileError::Invalid { place, key: key.to_owned(), reason }
            }
            (None, None) => chain[0].invalid(key, reason),
        }
    };
    // Every link was validated individually, so that all types are correct here.
    let file: ProfileFile =
        merged.try_into().map_err(|error| chain[0].invalid("", Cause::from_text(&error.to_string())))?;
    let profile = file.into_profile().map_err(locate)?;
    profile.validate().map_err(locate)?;
    Ok(profile)
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
