//! Encoding of messages: magic number, authentication code, JSON.
//!
//! The code is keyed BLAKE3 of the JSON. Its key is derived from the host's token and the direction, so a
//! message of one host, session or direction is not valid in another. The messages contain sequence numbers
//! against replay.
use std::fmt;

use keepup_peer::Token;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::message::{HostId, VERSION};

/// First bytes of a message.
const MAGIC: [u8; 4] = *b"KUF1";
/// Bytes of the code.
const CODE_BYTES: usize = blake3::OUT_LEN;
/// Bytes in front of the JSON.
const HEADER_BYTES: usize = MAGIC.len() + CODE_BYTES;
/// Longest message of a host, bytes.
pub const HEARTBEAT_BYTES_MAX: usize = 1 << 20;
/// Longest message of the controller, bytes: a view of 4096 recorders has about 300 kB.
pub const ORDER_BYTES_MAX: usize = 4 << 20;

/// Secret of one controller for one session, from which the tokens of its hosts are derived.
#[derive(Clone)]
pub struct Secret([u8; blake3::KEY_LEN]);

impl Secret {
    /// Derives the secret from a random text with at least 128 bits of entropy.
    #[must_use]
    pub fn new(random: &str) -> Self {
        Self(blake3::derive_key("keepup fleet 1: secret", random.as_bytes()))
    }

    /// Token of a host.
    ///
    /// # Errors
    /// None in practice: 64 hexadecimal digits are a valid token.
    pub fn token(&self, host: HostId) -> Result<Token, keepup_peer::TokenError> {
        Token::new(blake3::keyed_hash(&self.0, &host.to_le_bytes()).to_hex().as_str())
    }
}

impl Secret {
    /// Token that all hosts share, for connections between them.
    ///
    /// # Errors
    /// None in practice, as for [`Secret::token`].
    pub fn shared(&self) -> Result<Token, keepup_peer::TokenError> {
        Token::new(blake3::keyed_hash(&self.0, b"between hosts").to_hex().as_str())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(…)")
    }
}

/// Why a message was dropped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such host.
    #[error("no such host")]
    UnknownHost,
    /// Longer than allowed.
    #[error("a message of {bytes} bytes, limit {limit}")]
    TooLong {
        /// Bytes of the message.
        bytes: usize,
        /// Most bytes.
        limit: usize,
    },
    /// It does not start with the magic number.
    #[error("not a message of a keepup fleet")]
    Foreign,
    /// Wrong authentication code: another token, or the message was changed.
    #[error("wrong token")]
    Token,
    /// Another version of the messages.
    #[error("version {theirs} of the messages, not {VERSION}")]
    Version {
        /// Version of the sender.
        theirs: u32,
    },
    /// The JSON cannot be parsed as a message.
    #[error("malformed message: {0}")]
    Malformed(String),
    /// The host in the message is not the sender.
    #[error("a message in the name of host {0}")]
    OtherHost(HostId),
}

/// Keys of one host, one for each direction.
#[derive(Clone)]
pub(super) struct Keys {
    /// Of the messages to the controller.
    pub(super) heartbeats: Key,
    /// Of the messages to the host.
    pub(super) orders: Key,
}

impl Keys {
    pub(super) fn new(token: &Token) -> Self {
        let key = |context, bytes_max| Key {
            key: blake3::derive_key(context, token.reveal().as_bytes()),
            bytes_max,
        };
        Self {
            heartbeats: key("keepup fleet 1: heartbeats", HEARTBEAT_BYTES_MAX),
            orders: key("keepup fleet 1: orders", ORDER_BYTES_MAX),
        }
    }
}

/// Password of a host for the session of a transport. The other keys cannot be derived from it.
#[cfg(feature = "zenoh")]
pub(super) fn password(token: &Token) -> String {
    let key = blake3::derive_key("keepup fleet 1: session", token.reveal().as_bytes());
    blake3::Hash::from_bytes(key).to_hex().to_string()
}

/// Key of one direction, with its limit on the message length.
#[derive(Clone)]
pub(super) struct Key {
    key: [u8; blake3::KEY_LEN],
    bytes_max: usize,
}

impl Key {
    /// Encodes a message.
    ///
    /// # Errors
    /// A message that is too long, or cannot be encoded.
    pub(super) fn seal(&self, message: &impl Serialize) -> Result<Vec<u8>, Refusal> {
        let mut bytes = vec![0; HEADER_BYTES];
        serde_json::to_writer(&mut bytes, message).map_err(|error| Refusal::Malformed(error.to_string()))?;
        self.check_length(bytes.len())?;
        let code = blake3::keyed_hash(&self.key, &bytes[HEADER_BYTES..]);
        bytes[..MAGIC.len()].copy_from_slice(&MAGIC);
        bytes[MAGIC.len()..HEADER_BYTES].copy_from_slice(code.as_bytes());
        Ok(bytes)
    }

    /// Decodes a message. Checks length and code before parsing.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub(super) fn open<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T, Refusal> {
        self.check_length(bytes.len())?;
        let rest = bytes.strip_prefix(&MAGIC).ok_or(Refusal::Foreign)?;
        let (code, json) = rest.split_first_chunk::<CODE_BYTES>().ok_or(Refusal::Foreign)?;
        // `Hash` compares in constant time.
        if blake3::keyed_hash(&self.key, json) != blake3::Hash::from_bytes(*code) {
            return Err(Refusal::Token);
        }
        serde_json::from_slice(json).map_err(|error| malformed(json, &error))
    }

    fn check_length(&self, bytes: usize) -> Result<(), Refusal> {
        let limit = self.bytes_max;
        if bytes > limit { Err(Refusal::TooLong { bytes, limit }) } else { Ok(()) }
    }
}

/// Refusal of JSON that cannot be parsed; names the version if it is another one.
fn malformed(json: &[u8], error: &serde_json::Error) -> Refusal {
    #[derive(serde::Deserialize)]
    struct Versioned {
        version: u32,
    }
    match serde_json::from_slice::<Versioned>(json) {
        Ok(Versioned { version: theirs }) if theirs != VERSION => Refusal::Version { theirs },
        _ => Refusal::Malformed(error.to_string()),
    }
}

#[cfg(test)]
#[path = "seal_tests.rs"]
mod tests;
