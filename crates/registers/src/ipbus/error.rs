//! Errors of IPbus clients and targets.
use std::borrow::Cow;
use std::net::SocketAddr;
use std::time::Duration;

use keepup_error::{Diagnostic, ErrorClass};
use keepup_peer::Endpoint;

use super::packet::{Info, TransactionKind};

/// An error of a client or a target.
#[derive(Debug, thiserror::Error)]
pub enum IpbusError {
    /// Failed listen.
    #[error("cannot listen on {endpoint}: {source}")]
    Listen {
        /// Address.
        endpoint: Endpoint,
        /// Error of the system.
        source: std::io::Error,
        /// Remedy.
        hint: &'static str,
    },
    /// A target that other machines can reach, without a list of allowed addresses.
    #[error("cannot listen on {endpoint}: other machines can reach it")]
    Exposed {
        /// Address.
        endpoint: Endpoint,
    },
    /// Invalid settings.
    #[error("cannot use these settings: {0}")]
    Options(String),
    /// Failed system call.
    #[error("cannot {action} {target}: {source}")]
    Socket {
        /// Action.
        action: &'static str,
        /// Address of the target.
        target: SocketAddr,
        /// Error of the system.
        source: std::io::Error,
    },
    /// A target that never answered.
    #[error(
        "cannot reach {target}: no answer to {requests} status requests in {} ms",
        waited.as_millis()
    )]
    Silent {
        /// Address of the target.
        target: SocketAddr,
        /// Requests sent.
        requests: u64,
        /// Duration of all attempts.
        waited: Duration,
    },
    /// A peer that does not speak IPbus 2.0.
    #[error("cannot use {target}: it does not speak IPbus 2.0; received {what}")]
    Foreign {
        /// Address of the target.
        target: SocketAddr,
        /// What was received.
        what: String,
    },
    /// A target with an unsuitable status.
    #[error("cannot use {target}: {what}")]
    Status {
        /// Address of the target.
        target: SocketAddr,
        /// Cause.
        what: String,
    },
    /// A packet without an answer after all attempts.
    #[error(
        "cannot reach {target}: packet {id} timed out {attempts} times after {} ms each: {why}",
        timeout.as_millis()
    )]
    GaveUp {
        /// Address of the target.
        target: SocketAddr,
        /// Number of the oldest packet without an answer.
        id: u16,
        /// Attempts.
        attempts: u32,
        /// Timeout of an attempt.
        timeout: Duration,
        /// What was received instead.
        why: String,
    },
    /// The target expects a packet number that this client has not used recently.
    #[error(
        "cannot continue with {target}: it expects packet {expected}, but packet {ours} is in flight; the \
         target was restarted, or another program uses it"
    )]
    Sequence {
        /// Address of the target.
        target: SocketAddr,
        /// Number that the target expects.
        expected: u16,
        /// Number of the oldest packet in flight.
        ours: u16,
    },
    /// A failed transaction.
    #[error("cannot {kind} at address {address:#010x} of {target}: {info}")]
    Bus {
        /// Address of the target.
        target: SocketAddr,
        /// Kind of transaction.
        kind: TransactionKind,
        /// Address of the word.
        address: u32,
        /// Code from the target.
        info: Info,
    },
    /// Words beyond the last address.
    #[error("cannot access {words} words at address {address:#010x}: addresses have 32 bits")]
    Range {
        /// Address of the first word.
        address: u32,
        /// Number of words.
        words: usize,
    },
}

/// Hint for lost datagrams.
const LOSS_HINT: &str = "measure the loss of the network with `keepup net udp`; give a slow target a longer \
                         timeout";

/// Hint for an error of the system.
fn socket_hint(source: &std::io::Error) -> Option<&'static str> {
    match source.kind() {
        std::io::ErrorKind::ConnectionRefused => Some("nothing listens there: check the target's port"),
        std::io::ErrorKind::NetworkUnreachable | std::io::ErrorKind::HostUnreachable => {
            Some("check the kernel's route with `ip route get ADDRESS`")
        }
        std::io::ErrorKind::InvalidInput => {
            Some("the target's packets may exceed the MTU of the local interface: ip link")
        }
        _ => None,
    }
}

impl Diagnostic for IpbusError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Options(_) | Self::Range { .. } => ErrorClass::Usage,
            Self::Exposed { .. } => ErrorClass::Refused,
            Self::Listen { .. }
            | Self::Socket { .. }
            | Self::Silent { .. }
            | Self::Foreign { .. }
            | Self::Status { .. }
            | Self::GaveUp { .. }
            | Self::Sequence { .. }
            | Self::Bus { .. } => ErrorClass::Environment,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Self::Listen { hint, .. } => *hint,
            Self::Exposed { .. } => "allow clients by address, for example --allow 192.168.1.0/24",
            Self::Socket { source, .. } => return socket_hint(source).map(Cow::from),
            Self::Silent { .. } => {
                "check the board's power, its port and the firewall; give a slow target a longer timeout"
            }
            Self::Foreign { .. } => "check the board's port",
            Self::GaveUp { .. } => LOSS_HINT,
            Self::Sequence { .. } => "stop the other program: only one at a time may number its packets",
            Self::Bus { .. } => "look the address up in the target's address table",
            Self::Options(_) | Self::Status { .. } | Self::Range { .. } => return None,
        };
        Some(hint.into())
    }
}
