//! Kernel network counters, in particular where packets were dropped.
//!
//! Input of the loss ledger: datagrams dropped by the kernel appear only here.

mod parse;

pub(crate) use parse::parse_softnet;
use parse::{parse_interfaces, parse_snmp, parse_snmp6};

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::MeasureError;
use crate::text;

/// All network counters since boot, or their growth between two readings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetCounters {
    /// TCP and UDP, IPv4 and IPv6 together.
    pub protocols: ProtocolCounters,
    /// Interfaces by name.
    pub interfaces: BTreeMap<String, InterfaceCounters>,
    /// Receive queues of all cores together.
    pub softnet: SoftnetCounters,
}

/// TCP segments and UDP datagrams of the network namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProtocolCounters {
    /// TCP segments received.
    pub tcp_received: u64,
    /// TCP segments sent.
    pub tcp_sent: u64,
    /// TCP segments retransmitted.
    pub tcp_retransmitted: u64,
    /// UDP datagrams delivered.
    pub udp_received: u64,
    /// UDP datagrams sent.
    pub udp_sent: u64,
    /// UDP datagrams that could not be delivered, except for a missing listener.
    pub udp_receive_errors: u64,
    /// Of these, dropped because the socket's receive buffer was full.
    pub udp_receive_buffer_errors: u64,
    /// UDP datagrams that were not sent because a buffer was full.
    pub udp_send_buffer_errors: u64,
    /// UDP datagrams to a port without a listener.
    pub udp_no_port: u64,
    /// Packets dropped because fragments were missing.
    pub ip_reassembly_failed: u64,
}

/// Counters of one interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterfaceCounters {
    /// Bytes received.
    pub received_bytes: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Corrupt packets received.
    pub receive_errors: u64,
    /// Received packets dropped by the kernel.
    pub receive_dropped: u64,
    /// Packets dropped because the card's ring was full.
    pub receive_overruns: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets that could not be sent.
    pub send_errors: u64,
    /// Packets dropped instead of being sent.
    pub send_dropped: u64,
}

/// Receive counters of the kernel, summed over the cores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoftnetCounters {
    /// Packets processed.
    pub processed: u64,
    /// Packets dropped because a core's queue was full (`net.core.netdev_max_backlog`).
    pub dropped: u64,
    /// Receive turns that ended with packets left (`net.core.netdev_budget`).
    pub squeezed: u64,
}

impl NetCounters {
    /// Current counters. `root` is `/` outside tests. Fails if a file cannot be read; only that of
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

    /// Growth since `earlier`; a new interface counts from zero.
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
    /// Combines all counters pairwise, so that no operation omits one.
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
