//! Why registers behind IPbus could not be reached, or not be used.
use std::borrow::Cow;
use std::net::SocketAddr;
use std::time::Duration;

use keepup_error::{Diagnostic, ErrorClass};
use keepup_peer::Endpoint;

use super::packet::{Info, TransactionKind};

/// An error of a client or a target.
#[derive(Debug, thiserror::Error)]
pub enum IpbusError {
    /// Nobody can listen there.
    #[error("cannot listen on {endpoint}: {source}")]
    Listen {
        /// Where.
        endpoint: Endpoint,
        /// The system's answer.
        source: std::io::Error,
        /// What helps.
        hint: &'static str,
    },
    /// A target that others can reach, without a word on who may use it.
    #[error("cannot listen on {endpoint}: other machines can reach it")]
    Exposed {
        /// Where.
        endpoint: Endpoint,
    },
    /// Settings that make no sense.
    #[error("cannot use these settings: {0}")]
    Options(String),
    /// A call to the system failed.
    #[error("cannot {action} {target}: {source}")]
    Socket {
        /// What was tried.
        action: &'static str,
        /// With whom.
        target: SocketAddr,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Nothing was ever heard.
    #[error(
        "cannot reach {target}: {requests} status requests in {} ms had no answer",
        waited.as_millis()
    )]
    Silent {
        /// Who was asked.
        target: SocketAddr,
        /// How many times.
        requests: u64,
        /// For how long.
        waited: Duration,
    },
    /// Whoever answers does not speak IPbus 2.0.
    #[error("cannot use {target}: it does not speak IPbus 2.0, it sent {what}")]
    Foreign {
        /// Who was asked.
        target: SocketAddr,
        /// What came.
        what: String,
    },
    /// A target that cannot be used.
    #[error("cannot use {target}: it says that {what}")]
    Status {
        /// Who was asked.
        target: SocketAddr,
        /// What it says of itself.
        what: String,
    },
    /// A packet had no answer in spite of all attempts.
    #[error(
        "cannot reach {target}: gave up on packet {id} after {attempts} attempts of {} ms: {why}",
        timeout.as_millis()
    )]
    GaveUp {
        /// Who was asked.
        target: SocketAddr,
        /// Number of the oldest packet without an answer.
        id: u16,
        /// How many times.
        attempts: u32,
        /// How long an answer may take.
        timeout: Duration,
        /// What came instead.
        why: String,
    },
    /// The target expects a number that this client has never used, or long ago.
    #[error(
        "cannot continue with {target}: it expects packet {expected}, and {ours} is under way; it was \
         restarted, or another program speaks to it"
    )]
    Sequence {
        /// Who was asked.
        target: SocketAddr,
        /// Number that the target expects.
        expected: u16,
        /// Number of the oldest packet under way.
        ours: u16,
    },
    /// The target could not do it.
    #[error("cannot {kind} at address {address:#010x} of {target}: {info}")]
    Bus {
        /// Who was asked.
        target: SocketAddr,
        /// What was tried.
        kind: TransactionKind,
        /// Address of the word.
        address: u32,
        /// What the target says.
        info: Info,
    },
    /// Words beyond the last address.
    #[error("cannot reach {words} words from address {address:#010x} on: addresses have 32 bits")]
    Range {
        /// Address of the first.
        address: u32,
        /// How many.
        words: usize,
    },
}

/// What helps against lost datagrams.
const HINT_OF_LOSS: &str = "`keepup net udp` shows whether the network loses datagrams; a slow target \
                            needs a longer time limit";

/// What helps against what the system says.
fn hint_of(source: &std::io::Error) -> Option<&'static str> {
    match source.kind() {
        std::io::ErrorKind::ConnectionRefused => Some("nothing listens there: is this the target's port?"),
        std::io::ErrorKind::NetworkUnreachable | std::io::ErrorKind::HostUnreachable => {
            Some("`ip route get ADDRESS` shows the kernel's route")
        }
        std::io::ErrorKind::InvalidInput => {
            Some("the target's packets may be longer than the MTU of the interface here: ip link")
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
            Self::Exposed { .. } => "--allow PREFIX names those that may, as in --allow 192.168.1.0/24",
            Self::Socket { source, .. } => return hint_of(source).map(Cow::from),
            Self::Silent { .. } => {
                "is the board on, and is this its port? a firewall drops UDP without a word; a slow target \
                 needs a longer time limit"
            }
            Self::Foreign { .. } => "is this the board's port?",
            Self::GaveUp { .. } => HINT_OF_LOSS,
            Self::Sequence { .. } => "only one program at a time may number its packets; end the other",
            Self::Bus { .. } => {
                "the target's address table says which addresses there are, and which may be written"
            }
            Self::Options(_) | Self::Status { .. } | Self::Range { .. } => return None,
        };
        Some(hint.into())
    }
}
