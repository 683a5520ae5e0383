//! Shared secret of a server and its clients.
use std::borrow::Cow;

use keepup_error::{Diagnostic, ErrorClass};
use subtle::ConstantTimeEq as _;

/// Fewest characters of a token.
const CHARACTERS_MIN: usize = 16;
/// Most characters of a token.
const CHARACTERS_MAX: usize = 512;

/// Secret that gives a client access: 16 to 512 visible ASCII characters.
#[derive(Clone)]
pub struct Token(String);

/// A text is not a valid token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot use the token: it {what}")]
pub struct TokenError {
    what: &'static str,
}

impl Diagnostic for TokenError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        Some("at least 16 visible characters: (umask 077; head -c 24 /dev/urandom | base64 > FILE)".into())
    }
}

impl Token {
    /// Parses `text`, ignoring white space around it.
    ///
    /// # Errors
    /// Characters other than visible ASCII, fewer than 16 or more than 512 of them.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        let refuse = |what| Err(TokenError { what });
        match text.len() {
            _ if !text.bytes().all(|byte| byte.is_ascii_graphic()) => {
                refuse("has characters that are not visible ASCII")
            }
            0..CHARACTERS_MIN => refuse("is shorter than 16 characters"),
            length if length > CHARACTERS_MAX => refuse("is longer than 512 characters"),
            _ => Ok(Self(text.to_owned())),
        }
    }

    /// The secret itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Compares in time that does not depend on the position of a difference.
    #[must_use]
    pub fn is(&self, other: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(other).into()
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Token(…)")
    }
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;
