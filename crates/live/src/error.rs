//! Errors at the start of the server.
use std::borrow::Cow;

use keepup_error::{Diagnostic, ErrorClass};
use keepup_peer::Endpoint;

/// Error at the start of the server.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// Cannot listen on any address of the endpoint.
    #[error("cannot listen for HTTP on {endpoint}: {source}")]
    Listen {
        /// The endpoint.
        endpoint: Endpoint,
        /// Cause.
        source: std::io::Error,
    },
    /// An address beyond loopback needs a token that the clients know.
    #[error("cannot serve HTTP on {endpoint}: other machines can reach it, and no token was given")]
    Open {
        /// The endpoint.
        endpoint: Endpoint,
    },
    /// A system resource for the server's thread or runtime is missing.
    #[error("cannot start to serve HTTP: {source}")]
    Start {
        /// Cause.
        source: std::io::Error,
    },
}

impl Diagnostic for LiveError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Open { .. } => ErrorClass::Refused,
            Self::Listen { .. } | Self::Start { .. } => ErrorClass::Environment,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Listen { .. } => Some("another --http address, or port 0 for any free one".into()),
            Self::Open { .. } => Some(
                "--token-file FILE; a new one: (umask 077; head -c 24 /dev/urandom | base64 > FILE)".into(),
            ),
            Self::Start { .. } => None,
        }
    }
}
