//! Why a network test could not be done, or not to its end.
use std::borrow::Cow;
use std::time::Duration;

use keepup_error::{Diagnostic, ErrorClass};

/// An error of a network test.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// Nobody answers there.
    #[error("cannot connect to {server}: {source}")]
    Connect {
        /// Address of the server.
        server: String,
        /// The system's answer.
        source: std::io::Error,
        /// What helps.
        hint: &'static str,
    },
    /// A text that names no server.
    #[error(transparent)]
    Endpoint(#[from] keepup_peer::EndpointError),
    /// An address that a test cannot be made with.
    #[error("cannot test {address}: {why}")]
    Address {
        /// The address.
        address: String,
        /// Why not.
        why: &'static str,
    },
    /// The server will not.
    #[error("{server} refused: {why}")]
    Refused {
        /// Address of the server.
        server: String,
        /// Its words.
        why: String,
    },
    /// The server lets a client in, and cannot prove that it knows the token.
    #[error("cannot use {server}: it does not know the token")]
    Impostor {
        /// Address of the server.
        server: String,
    },
    /// There is no nonce.
    #[error("cannot read random bytes: {source}")]
    Random {
        /// The system's answer.
        source: std::io::Error,
    },
    /// The other end speaks another version.
    #[error("cannot use {server}: it speaks version {theirs} of the protocol, this keepup version {ours}")]
    Version {
        /// Address of the server.
        server: String,
        /// Its version.
        theirs: u32,
        /// This program's.
        ours: u32,
    },
    /// The other end says nothing any more.
    #[error(
        "nothing was heard of {peer} for {:.0} s: it stands still, or the network between is cut",
        silence.as_secs_f64()
    )]
    Silent {
        /// Address of the other end.
        peer: String,
        /// For how long.
        silence: Duration,
    },
    /// The other end does not do what is its turn.
    #[error("cannot continue with {peer}: no progress for {:.0} s, though it answers", silence.as_secs_f64())]
    Late {
        /// Address of the other end.
        peer: String,
        /// For how long.
        silence: Duration,
    },
    /// The other end has gone.
    #[error("{peer} has gone{}", why.as_ref().map(|why| format!(": {why}")).unwrap_or_default())]
    Gone {
        /// Address of the other end.
        peer: String,
        /// What the system says of it.
        why: Option<std::io::Error>,
    },
    /// The server was stopped while it served.
    #[error("{peer} was sent away: the server was stopped")]
    Stopped {
        /// Address of the client.
        peer: String,
    },
    /// The other end says what it should not.
    #[error("{peer} does not speak as keepup does: {what}")]
    Conversation {
        /// Address of the other end.
        peer: String,
        /// What it did.
        what: String,
    },
    /// One of the flows could not be opened or broke.
    #[error("flow {number} with {peer}: cannot {action}: {source}")]
    Flow {
        /// Its number.
        number: u32,
        /// Address of the other end.
        peer: String,
        /// What was tried.
        action: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Nobody can listen there.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: String,
        /// The system's answer.
        source: std::io::Error,
        /// What helps.
        hint: &'static str,
    },
    /// A test that makes no sense.
    #[error(transparent)]
    Spec(#[from] super::spec::SpecError),
}

impl Diagnostic for NetError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Spec(_) | Self::Address { .. } | Self::Endpoint(_) => ErrorClass::Usage,
            Self::Connect { .. }
            | Self::Refused { .. }
            | Self::Impostor { .. }
            | Self::Random { .. }
            | Self::Version { .. }
            | Self::Silent { .. }
            | Self::Late { .. }
            | Self::Gone { .. }
            | Self::Stopped { .. }
            | Self::Conversation { .. }
            | Self::Flow { .. }
            | Self::Listen { .. } => ErrorClass::Environment,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Self::Connect { hint, .. } | Self::Listen { hint, .. } => *hint,
            Self::Endpoint(error) => return error.hint(),
            Self::Address { .. } => "name one machine, as in 192.168.1.2:7613",
            Self::Impostor { .. } => "another program listens there, or a keepup with another token",
            Self::Version { .. } => "use the same keepup on both machines",
            Self::Late { .. } => "a firewall between may let only one port through",
            Self::Refused { .. }
            | Self::Random { .. }
            | Self::Silent { .. }
            | Self::Gone { .. }
            | Self::Stopped { .. }
            | Self::Conversation { .. }
            | Self::Flow { .. }
            | Self::Spec(_) => return None,
        };
        Some(hint.into())
    }
}
