//! The secret that a client must know.
use subtle::ConstantTimeEq as _;

/// Fewest characters of a token.
const CHARACTERS_MIN: usize = 16;
/// Most characters of a token.
const CHARACTERS_MAX: usize = 512;

/// Secret that a client must know: 16 to 512 visible ASCII characters.
#[derive(Clone)]
pub struct Token(String);

/// A text is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the token {what}\n\
     hint: at least 16 visible characters: (umask 077; head -c 24 /dev/urandom | base64 > FILE)"
)]
pub struct TokenError {
    what: &'static str,
}

impl Token {
    /// The token in `text`, without the white space around it.
    ///
    /// # Errors
    /// Other characters than visible ASCII, fewer than 16 or more than 512.
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

    /// Whether `other` is the secret. The time taken does not depend on where they differ.
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
