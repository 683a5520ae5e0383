//! Why registers behind IPbus could not be reached, or not be used.
use std::net::SocketAddr;
use std::time::Duration;

use keepup_peer::Endpoint;

use super::packet::{Info, TransactionKind};

/// An error of a client or a target.
#[derive(Debug, thiserror::Error)]
pub enum IpbusError {
    /// Nobody can listen there.
    #[error("cannot listen on {endpoint}: {source}\nhint: {hint}")]
    Listen {
        /// Where.
        endpoint: Endpoint,
        /// The system's answer.
        source: std::io::Error,
        /// What helps.
        hint: &'static str,
    },
    /// A target that others can reach, without a word on who may use it.
    #[error(
        "cannot listen on {endpoint}: other machines can reach it\n\
         hint: --allow PREFIX names those that may, as in --allow 192.168.1.0/24"
    )]
    Exposed {
        /// Where.
        endpoint: Endpoint,
    },
    /// Settings that make no sense.
    #[error("cannot use these settings: {0}")]
    Options(String),
    /// A call to the system failed.
    #[error("cannot {action} {target}: {source}{}", hint_of(source))]
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
        "nothing was heard of {target}: {requests} status requests in {} ms had no answer\n\
         hint: is the board on, and is this its port? a firewall drops UDP without a word; a slow target \
         needs a longer time limit",
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
    #[error("{target} does not speak IPbus 2.0: it sent {what}\nhint: is this the board's port?")]
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
        "gave up on packet {id} to {target} after {attempts} attempts of {} ms: {why}\n\
         hint: {}", timeout.as_millis(), HINT_OF_LOSS
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
        "{target} expects packet {expected}, and {ours} is under way: it was started anew, or another \
         program speaks to it\nhint: only one program at a time may number its packets; end the other"
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
    #[error(
        "cannot {kind} at address {address:#010x} of {target}: {info}\n\
         hint: the target's address table says which addresses there are, and which may be written"
    )]
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
fn hint_of(source: &std::io::Error) -> &'static str {
    match source.kind() {
        std::io::ErrorKind::ConnectionRefused => "\nhint: nothing listens there: is this the target's port?",
        std::io::ErrorKind::NetworkUnreachable | std::io::ErrorKind::HostUnreachable => {
            "\nhint: `ip route get ADDRESS` shows which way the kernel knows"
        }
        std::io::ErrorKind::InvalidInput => {
            "\nhint: the target's packets may be longer than the MTU of the interface here: ip link"
        }
        _ => "",
    }
}
