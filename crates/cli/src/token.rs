//! Tokens from a file, from the environment, or generated.
use std::borrow::Cow;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use keepup_error::{Diagnostic, ErrorClass};
use keepup_peer::Token;
use keepup_recording::id::Id;
use keepup_workload::net::{Credentials, TOKEN_VARIABLE};

/// Limit on the size of a token file, in bytes.
const FILE_BYTES_MAX: u64 = 4096;
/// Permission bits of the group and of others.
const FORBIDDEN: u32 = 0o077;
/// Permission bits that a file of root must not have when another user reads it.
const ROOT_FILE_FORBIDDEN: u32 = 0o037;

/// Error for a token file with access for other users.
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

/// Reads the token from `file`, else from the environment variable `variable`.
pub(crate) fn read(file: Option<&Path>, variable: &str) -> anyhow::Result<Option<Token>> {
    match file {
        Some(path) => read_file(path).map(Some),
        None => {
            let text = std::env::var(variable).ok().filter(|text| !text.is_empty());
            Ok(text.map(|text| Token::new(&text)).transpose()?)
        }
    }
}

/// Reads the token from `file`.
pub(crate) fn read_file(path: &Path) -> anyhow::Result<Token> {
    Ok(Token::new(&file_text(path)?)?)
}

/// Generates a random token.
pub(crate) fn generate() -> anyhow::Result<Token> {
    Ok(Token::new(&random_hex().context("cannot read random bytes")?)?)
}

/// Credentials of network tests, with the token from `file`, else from the environment.
pub(crate) fn net_credentials(file: Option<&Path>) -> anyhow::Result<Option<Credentials>> {
    let token = read(file, TOKEN_VARIABLE)?;
    Ok(token.map(|token| Credentials { token, random: random_hex }))
}

/// Credentials of network tests, with a new token.
pub(crate) fn new_net_credentials() -> anyhow::Result<Credentials> {
    Ok(Credentials { token: generate()?, random: random_hex })
}

/// Generates 32 random hexadecimal digits.
pub(crate) fn random_hex() -> std::io::Result<String> {
    Id::random().map(|id| id.to_string())
}

fn file_text(path: &Path) -> anyhow::Result<String> {
    let failed = || format!("cannot read the token from {}", path.display());
    let mut text = String::new();
    let file = std::fs::File::open(path).with_context(failed)?;
    let metadata = file.metadata().with_context(failed)?;
    // Permissions of a pipe, such as a shell's <(command), do not matter.
    if metadata.is_file() && metadata.mode() & forbidden(metadata.uid()) != 0 {
        return Err(SharedTokenFile { path: path.to_owned() }.into());
    }
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).with_context(failed)?;
    Ok(text)
}

/// Permission bits that a file of `owner` must not have. Service managers pass files of root by group or ACL,
/// which show as group permissions; PostgreSQL has the same rule for private keys.
fn forbidden(owner: u32) -> u32 {
    let user = std::fs::metadata("/proc/self").map_or(owner, |process| process.uid());
    if owner == 0 && user != 0 { ROOT_FILE_FORBIDDEN } else { FORBIDDEN }
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;
