//! The network as the kernel counts it: what was received, and above all what was dropped and where.
//!
//! A datagram that the kernel threw away shows here and nowhere else; the ledger needs it.

mod parse;

pub use parse::{parse_interfaces, parse_snmp, parse_snmp6, parse_softnet};

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::MeasureError;
use crate::text;

/// All counters of the network since boot, or what they grew by between two readings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetCounters {
    /// TCP and UDP, IPv4 and IPv6 together.
    pub protocols: ProtocolCounters,
    /// Each interface by name.
    pub interfaces: BTreeMap<String, InterfaceCounters>,
    /// The receive queues of all cores together.
    pub softnet: SoftnetCounters,
}

/// TCP segments and UDP datagrams of the network name space.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProtocolCounters {
    /// TCP segments received.
    pub tcp_received: u64,
    /// TCP segments sent.
    pub tcp_sent: u64,
    /// TCP segments sent again: the network lost them, or took too long.
    pub tcp_retransmitted: u64,
    /// UDP datagrams delivered.
    pub udp_received: u64,
    /// UDP datagrams sent.
    pub udp_sent: u64,
    /// UDP datagrams that could not be delivered, whatever the reason but a missing listener.
    pub udp_receive_errors: u64,
    /// Of these, the ones thrown away because the socket's receive buffer was full.
    pub udp_receive_buffer_errors: u64,
    /// UDP datagrams that were not sent because a buffer was full.
    pub udp_send_buffer_errors: u64,
    /// UDP datagrams to a port on which nobody listened.
    pub udp_no_port: u64,
    /// Packets thrown away because not all of their fragments came.
    pub ip_reassembly_failed: u64,
}

/// One interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterfaceCounters {
    /// Bytes received.
    pub received_bytes: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Broken packets received.
    pub receive_errors: u64,
    /// Packets received and thrown away by the kernel.
    pub receive_dropped: u64,
    /// Packets that found the card's ring full.
    pub receive_overruns: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets that could not be sent.
    pub send_errors: u64,
    /// Packets thrown away instead of being sent.
    pub send_dropped: u64,
}

/// The kernel's receive work, summed over the cores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoftnetCounters {
    /// Packets worked on.
    pub processed: u64,
    /// Packets thrown away because a core's queue was full (`net.core.netdev_max_backlog`).
    pub dropped: u64,
    /// Times a core stopped with work left (`net.core.netdev_budget`).
    pub squeezed: u64,
}

impl NetCounters {
    /// All counters now. `root` is `/` in earnest. Fails when one of the files cannot be read; only that of
    /// IPv6 may be missing.
    pub fn read(root: &Path) -> Result<Self, MeasureError> {
        let mut protocols = parse_snmp(&text::read(root, "proc/net/snmp")?);
        if let Ok(six) = text::read(root, "proc/net/snmp6") {
            protocols = protocols.plus(&parse_snmp6(&six));
        }
        Ok(Self {
            protocols,
            interfaces: parse_interfaces(&text::read(root, "proc/net/dev")?),
            softnet: parse_softnet(&text::read(root, "proc/net/softnet_stat")?),
        })
    }

    /// What the counters grew by since `earlier`; an interface that is new counts from zero.
    pub fn since(&self, earlier: &Self) -> Self {
        let grown = |(name, now): (&String, &InterfaceCounters)| {
            let before = earlier.interfaces.get(name).copied().unwrap_or_default();
            (name.clone(), now.since(&before))
        };
        Self {
            protocols: self.protocols.since(&earlier.protocols),
            interfaces: self.interfaces.iter().map(grown).collect(),
            softnet: self.softnet.since(&earlier.softnet),
        }
    }
}

impl ProtocolCounters {
    /// Counter by counter with a function of two, so that no counter is forgotten in one of the operations.
    fn zip(&self, other: &Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            tcp_received: combine(self.tcp_received, other.tcp_received),
            tcp_sent: combine(self.tcp_sent, other.tcp_sent),
            tcp_retransmitted: combine(self.tcp_retransmitted, other.tcp_retransmitted),
            udp_received: combine(self.udp_received, other.udp_received),
            udp_sent: combine(self.udp_sent, other.udp_sent),
            udp_receive_errors: combine(self.udp_receive_errors, other.udp_receive_errors),
            udp_receive_buffer_errors: combine(
                self.udp_receive_buffer_errors,
                other.udp_receive_buffer_errors,
            ),
            udp_send_buffer_errors: combine(self.udp_send_buffer_errors, other.udp_send_buffer_errors),
            udp_no_port: combine(self.udp_no_port, other.udp_no_port),
            ip_reassembly_failed: combine(self.ip_reassembly_failed, other.ip_reassembly_failed),
        }
    }

    fn plus(&self, other: &Self) -> Self {
        self.zip(other, u64::saturating_add)
    }

    fn since(&self, earlier: &Self) -> Self {
        self.zip(earlier, u64::saturating_sub)
    }
}

impl InterfaceCounters {
    fn since(&self, earlier: &Self) -> Self {
        Self {
            received_bytes: self.received_bytes.saturating_sub(earlier.received_bytes),
            received_packets: self.received_packets.saturating_sub(earlier.received_packets),
            receive_errors: self.receive_errors.saturating_sub(earlier.receive_errors),
            receive_dropped: self.receive_dropped.saturating_sub(earlier.receive_dropped),
            receive_overruns: self.receive_overruns.saturating_sub(earlier.receive_overruns),
            sent_bytes: self.sent_bytes.saturating_sub(earlier.sent_bytes),
            sent_packets: self.sent_packets.saturating_sub(earlier.sent_packets),
            send_errors: self.send_errors.saturating_sub(earlier.send_errors),
            send_dropped: self.send_dropped.saturating_sub(earlier.send_dropped),
        }
    }
}

impl SoftnetCounters {
    fn since(&self, earlier: &Self) -> Self {
        Self {
            processed: self.processed.saturating_sub(earlier.processed),
            dropped: self.dropped.saturating_sub(earlier.dropped),
            squeezed: self.squeezed.saturating_sub(earlier.squeezed),
        }
    }
}

#[cfg(test)]
#[path = "net_tests.rs"]
mod tests;
