//! Errors of network tests.
use std::borrow::Cow;
use std::time::Duration;

use keepup_error::{Diagnostic, ErrorClass};

/// Error of a network test.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// The connection failed.
    #[error("cannot connect to {server}: {source}")]
    Connect {
        /// Address of the server.
        server: String,
        /// System error.
        source: std::io::Error,
        /// Remedy.
        hint: &'static str,
    },
    /// Invalid server address.
    #[error(transparent)]
    Endpoint(#[from] keepup_peer::EndpointError),
    /// Address that is not a single machine.
    #[error("cannot test {address}: {why}")]
    Address {
        /// Address.
        address: String,
        /// Cause.
        why: &'static str,
    },
    /// The server refused the client.
    #[error("{server} refused: {why}")]
    Refused {
        /// Address of the server.
        server: String,
        /// Cause given by the server.
        why: String,
    },
    /// The recorder did not reach the source that waits for it.
    #[error("cannot use the source on {server}: {why}")]
    NoRecorder {
        /// Address of the server.
        server: String,
        /// Cause given by the server.
        why: String,
    },
    /// The server cannot prove that it knows the token.
    #[error("cannot use {server}: it does not know the token")]
    Impostor {
        /// Address of the server.
        server: String,
    },
    /// No random bytes for a nonce.
    #[error("cannot read random bytes: {source}")]
    Random {
        /// System error.
        source: std::io::Error,
    },
    /// The peer uses another protocol version.
    #[error("cannot use {server}: it uses protocol version {theirs}, this keepup version {ours}")]
    Version {
        /// Address of the server.
        server: String,
        /// Version of the server.
        theirs: u32,
        /// Version of this program.
        ours: u32,
    },
    /// The peer sends no messages.
    #[error(
        "cannot continue with {peer}: no message for {:.0} s (peer stalled or network interrupted)",
        silence.as_secs_f64()
    )]
    Silent {
        /// Address of the peer.
        peer: String,
        /// Duration.
        silence: Duration,
    },
    /// The peer responds but makes no progress.
    #[error("cannot continue with {peer}: no progress for {:.0} s, but it responds", silence.as_secs_f64())]
    Late {
        /// Address of the peer.
        peer: String,
        /// Duration.
        silence: Duration,
    },
    /// The peer disconnected.
    #[error("cannot continue with {peer}: it disconnected{}", cause(why.as_ref()))]
    Disconnected {
        /// Address of the peer.
        peer: String,
        /// System error, if any.
        why: Option<std::io::Error>,
    },
    /// The server was stopped during a session.
    #[error("cannot continue with {peer}: the server was stopped")]
    Stopped {
        /// Address of the client.
        peer: String,
    },
    /// The peer violated the protocol.
    #[error("cannot continue with {peer}: protocol error: {what}")]
    Protocol {
        /// Address of the peer.
        peer: String,
        /// Violation.
        what: String,
    },
    /// A flow could not be opened or failed.
    #[error("cannot {action} flow {number} with {peer}: {source}")]
    Flow {
        /// Flow number.
        number: u32,
        /// Address of the peer.
        peer: String,
        /// Failed operation.
        action: &'static str,
        /// System error.
        source: std::io::Error,
    },
    /// The server cannot listen.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Address.
        address: String,
        /// System error.
        source: std::io::Error,
        /// Remedy.
        hint: &'static str,
    },
    /// Invalid test specification.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

/// Violation of a bound of a test specification, worded for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(pub(crate) String);

fn cause(why: Option<&std::io::Error>) -> String {
    why.map(|why| format!(": {why}")).unwrap_or_default()
}

impl Diagnostic for NetError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Spec(_) | Self::Address { .. } | Self::Endpoint(_) => ErrorClass::Usage,
            Self::Connect { .. }
            | Self::Refused { .. }
            | Self::NoRecorder { .. }
            | Self::Impostor { .. }
            | Self::Random { .. }
            | Self::Version { .. }
            | Self::Silent { .. }
            | Self::Late { .. }
            | Self::Disconnected { .. }
            | Self::Stopped { .. }
            | Self::Protocol { .. }
            | Self::Flow { .. }
            | Self::Listen { .. } => ErrorClass::Environment,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Self::Connect { hint, .. } | Self::Listen { hint, .. } => *hint,
            Self::Endpoint(error) => return error.hint(),
            Self::Address { .. } => "use the address of one machine, such as 192.168.1.2:7613",
            Self::Impostor { .. } => {
                "the address belongs to another program, or to a keepup with another token"
            }
            Self::Version { .. } => "use the same version of keepup on both machines",
            Self::NoRecorder { .. } => {
                "a firewall may block this port; `keepup source --serve --detector-port PORT` fixes it"
            }
            Self::Late { .. } => "a firewall may block all but one port",
            Self::Refused { .. }
            | Self::Random { .. }
            | Self::Silent { .. }
            | Self::Disconnected { .. }
            | Self::Stopped { .. }
            | Self::Protocol { .. }
            | Self::Flow { .. }
            | Self::Spec(_) => return None,
        };
        Some(hint.into())
    }
}
