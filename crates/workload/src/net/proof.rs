//! Proof that an end knows the token without sending it: a keyed hash of the nonces of both ends.
//!
//! Each end draws a nonce for each connection, so a proof that was recorded is worth nothing later; the two
//! ends hash with different keys, so neither can return the other's proof as its own.
use keepup_peer::Token;

/// Length of a nonce and of a session's secret, in bytes.
pub(super) const SECRET_BYTES: usize = 32;

/// Draws 32 hexadecimal digits that nobody can guess, different ones each time.
pub type Random = fn() -> std::io::Result<String>;

/// The token, and where nonces come from.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// What both ends must know.
    pub token: Token,
    /// Draws nonces and secrets.
    pub random: Random,
}

/// The end that proves something.
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
    /// A nonce, or a session's secret.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub(super) fn draw(&self) -> std::io::Result<String> {
        let drawn = (self.random)()?;
        match is_nonce(&drawn) {
            true => Ok(drawn),
            false => Err(std::io::Error::other("no random bytes")),
        }
    }

    /// The proof of one end, in hexadecimal digits.
    pub(super) fn prove(&self, side: Side, nonces: &Nonces) -> String {
        self.hash(side, nonces).to_hex().to_string()
    }

    /// Whether `proof` is that of an end that knows the token. The time taken does not depend on where it is
    /// wrong.
    pub(super) fn accepts(&self, side: Side, nonces: &Nonces, proof: &str) -> bool {
        // Hashes are compared in constant time.
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
