//! 16-byte identities of recordings, volumes and segments, written as 32 hex digits in text files.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Random identity of a recording, of a volume's part of it, or of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub [u8; 16]);

/// A text that is not an [`Id`].
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("cannot read `{text}` as an identity: it is not 32 lower-case hex digits")]
pub struct IdError {
    text: String,
}

impl Id {
    /// Random identity from the system.
    ///
    /// # Errors
    /// When the kernel refuses the call.
    pub fn random() -> std::io::Result<Id> {
        let mut bytes = [0; 16];
        // So few bytes come whole (getrandom(2)), also where there is no `/dev`.
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
        Ok(Id(bytes))
    }

    /// Identity of recording number `n` in the session with this identity: distinct for every
    /// number.
    pub fn nth(self, n: u32) -> Id {
        // Multiplication by an odd number is a bijection, so numbers stay distinct.
        let mixed = u128::from(n).wrapping_mul(0xda94_2042_e4dd_58b5_2545_f491_4f6c_dd1d);
        Id((u128::from_be_bytes(self.0) ^ mixed).to_be_bytes())
    }
}

impl fmt::Display for Id {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl FromStr for Id {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Id, IdError> {
        let is_hex = text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        match u128::from_str_radix(text, 16) {
            Ok(value) if is_hex => Ok(Id(value.to_be_bytes())),
            _ => Err(IdError { text: text.chars().take(64).collect() }),
        }
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Id, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
