//! What can go wrong before anybody is served.
use keepup_peer::Endpoint;

/// Why the live page cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// No address of the endpoint can be had.
    #[error(
        "cannot listen for HTTP on {endpoint}: {source}\n\
         hint: another --http address, or port 0 for any free one"
    )]
    Listen {
        /// The endpoint.
        endpoint: Endpoint,
        /// Why.
        source: std::io::Error,
    },
    /// Beyond loopback everybody needs the token, so there must be one that they can know.
    #[error(
        "{endpoint} can be reached from outside, and no token was given\n\
         hint: --token-file FILE; a new one: (umask 077; head -c 24 /dev/urandom | base64 > FILE)"
    )]
    Open {
        /// The endpoint.
        endpoint: Endpoint,
    },
    /// The system has no thread or no timer left.
    #[error("cannot start to serve HTTP: {source}")]
    Start {
        /// Why.
        source: std::io::Error,
    },
}
