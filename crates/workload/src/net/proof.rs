//! Proof of token knowledge without sending the token: a keyed hash of both ends' nonces.
//!
//! Each end draws a nonce per connection, so a recorded proof cannot be replayed; the two ends use
//! different hash keys, so neither can reflect the other's proof.
use keepup_peer::Token;

/// Length of a nonce and of a session's secret, in bytes.
pub(super) const SECRET_BYTES: usize = 32;

/// Generates 32 random hexadecimal digits.
pub type Random = fn() -> std::io::Result<String>;

/// The token and the source of nonces.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// Shared secret of both ends.
    pub token: Token,
    /// Generates nonces and session secrets.
    pub random: Random,
}

/// The end that proves its knowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

/// Nonces of both ends of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Nonces {
    pub(super) client: String,
    pub(super) server: String,
}

impl Credentials {
    /// Draws a nonce or a session secret.
    ///
    /// # Errors
    /// No random bytes from the system.
    pub(super) fn draw(&self) -> std::io::Result<String> {
        let drawn = (self.random)()?;
        match is_nonce(&drawn) {
            true => Ok(drawn),
            false => Err(std::io::Error::other("no random bytes")),
        }
    }

    /// Proof of one end, in hexadecimal digits.
    pub(super) fn prove(&self, side: Side, nonces: &Nonces) -> String {
        self.hash(side, nonces).to_hex().to_string()
    }

    /// Whether `proof` is valid for this side and these nonces. Takes constant time.
    pub(super) fn accepts(&self, side: Side, nonces: &Nonces, proof: &str) -> bool {
        // `blake3::Hash` compares in constant time.
        blake3::Hash::from_hex(proof).is_ok_and(|proof| proof == self.hash(side, nonces))
    }

    fn hash(&self, side: Side, nonces: &Nonces) -> blake3::Hash {
        let context = match side {
            Side::Client => "keepup net 3 client proof",
            Side::Server => "keepup net 3 server proof",
        };
        let key = blake3::derive_key(context, self.token.reveal().as_bytes());
        // Both nonces have the same fixed length.
        let mut hasher = blake3::Hasher::new_keyed(&key);
        hasher.update(nonces.client.as_bytes()).update(nonces.server.as_bytes());
        hasher.finalize()
    }
}

/// Whether a text has the length of a nonce.
pub(super) fn is_nonce(text: &str) -> bool {
    text.len() == SECRET_BYTES
}

#[cfg(test)]
#[path = "proof_tests.rs"]
mod tests;
