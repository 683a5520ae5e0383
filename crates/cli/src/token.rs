//! Tokens: from a file, from the environment, or made up.
use std::borrow::Cow;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use keepup_error::{Diagnostic, ErrorClass};
use keepup_peer::Token;
use keepup_recording::id::Id;

/// A token file longer than this is something else, bytes.
const FILE_BYTES_MAX: u64 = 4096;
/// Permissions of the group and of all others.
const OTHERS: u32 = 0o077;
/// Of these, permissions that a file of root must not have when another user reads it.
const OTHERS_OF_ROOT: u32 = 0o037;

/// A token file that more users than its owner can read.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the token in {}: other users can read or change the file", path.display())]
pub(crate) struct SharedTokenFile {
    pub(crate) path: PathBuf,
}

impl Diagnostic for SharedTokenFile {
    fn class(&self) -> ErrorClass {
        ErrorClass::Refused
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        Some(format!("chmod 600 {}", self.path.display()).into())
    }
}

/// The token that was given: in a file, else by the environment variable `variable`.
pub(crate) fn given(file: Option<&Path>, variable: &str) -> anyhow::Result<Option<Token>> {
    let text = match file {
        Some(path) => Some(read(path)?),
        None => std::env::var(variable).ok().filter(|text| !text.is_empty()),
    };
    Ok(text.map(|text| Token::new(&text)).transpose()?)
}

/// A new token that nobody can guess.
pub(crate) fn made_up() -> anyhow::Result<Token> {
    Ok(Token::new(&hex_digits().context("cannot read random bytes")?)?)
}

/// 32 hexadecimal digits that nobody can guess.
pub(crate) fn hex_digits() -> std::io::Result<String> {
    Id::random().map(|id| id.to_string())
}

fn read(path: &Path) -> anyhow::Result<String> {
    let failed = || format!("cannot read the token from {}", path.display());
    let mut text = String::new();
    let file = std::fs::File::open(path).with_context(failed)?;
    let metadata = file.metadata().with_context(failed)?;
    // A pipe, as a shell's <(command) makes it, can be read only by processes that have it open.
    if metadata.is_file() && metadata.mode() & forbidden(metadata.uid()) != 0 {
        return Err(SharedTokenFile { path: path.to_owned() }.into());
    }
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).with_context(failed)?;
    Ok(text)
}

/// Permissions that a file of `owner` must not have. A service manager hands a file of root to a service by
/// group or access list, which shows as permissions of the group: the rule of PostgreSQL for private keys.
fn forbidden(owner: u32) -> u32 {
    let user = std::fs::metadata("/proc/self").map_or(owner, |process| process.uid());
    if owner == 0 && user != 0 { OTHERS_OF_ROOT } else { OTHERS }
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;
