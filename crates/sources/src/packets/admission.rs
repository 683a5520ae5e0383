//! Which senders are recorded, and what is kept of those that are not known yet.
//!
//! A sender is admitted once two of its packets fit together, or at once if the source names it. A VDIF
//! thread of a sender always needs two frames, as the header of a frame may be junk. Until then its packets
//! are held. Unknown senders have a limited number of places and bytes; the one that has been silent for
//! longest gives up its place. Invariant: senders that send packets of another kind never use up a place for
//! the rest of the recording.
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use keepup_measure::sum::Sums;

/// Most senders that are not known yet.
const UNKNOWN_MAX: usize = 1024;
/// Bytes of their packets.
const UNKNOWN_BYTES_MAX: usize = 4 << 20;
/// Packets of one of them.
const UNKNOWN_PACKETS_MAX: usize = 4;

/// Sender and destination of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Flow {
    pub(super) sender: Option<SocketAddr>,
    /// Known for captures, and for sockets that receive on several addresses.
    pub(super) destination: Option<SocketAddr>,
}

/// What tells streams apart: sender and destination, and the thread of a VDIF station.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) flow: Flow,
    pub(super) thread: Option<(u16, u16)>,
}

/// Senders that a source names: an address, one with a port, or a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Senders {
    /// All ports of the addresses that start with these bits.
    Network(IpAddr, u8),
    /// One port.
    Port(SocketAddr),
}

impl FromStr for Senders {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let why = || "expected an address such as 10.0.0.7, 10.0.0.7:4000 or 10.0.0.0/24".to_owned();
        if let Ok(port) = text.parse::<SocketAddr>() {
            return Ok(Self::Port(port));
        }
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| why())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| bits.parse::<u8>().map_err(|_| why()))?;
        if bits > most {
            return Err(format!("a prefix of {bits} bits, at most {most}"));
        }
        Ok(Self::Network(address, bits))
    }
}

impl Senders {
    /// Whether `sender` is one of them.
    fn contains(&self, sender: SocketAddr) -> bool {
        let ip = sender.ip().to_canonical();
        match self {
            Self::Port(named) => named.ip().to_canonical() == ip && named.port() == sender.port(),
            Self::Network(named, bits) => match (named, ip) {
                (IpAddr::V4(named), IpAddr::V4(ip)) => {
                    let mask = u32::MAX.checked_shl(32 - u32::from(*bits)).unwrap_or(0);
                    (named.to_bits() ^ ip.to_bits()) & mask == 0
                }
                (IpAddr::V6(named), IpAddr::V6(ip)) => {
                    let mask = u128::MAX.checked_shl(128 - u32::from(*bits)).unwrap_or(0);
                    (named.to_bits() ^ ip.to_bits()) & mask == 0
                }
                _ => false,
            },
        }
    }
}

/// A packet of a sender that is not known yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) key: Key,
    pub(super) arrived_ns: u64,
    pub(super) drops: u32,
    pub(super) bytes: Vec<u8>,
}

/// What is known of a sender or thread that is not admitted.
#[derive(Debug, Default)]
struct Unknown {
    packets: Vec<Packet>,
    /// Packets that did not fit together.
    dropped: u64,
    heard: u64,
}

/// What becomes of a sender's packet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// The sender is admitted.
    Admitted,
    /// The sender is admitted with this packet; those that were held follow, in order of arrival.
    New(Vec<Packet>),
    /// It is held.
    Held,
    /// The source names other senders.
    Excluded,
}

/// Packets of senders that are given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GivenUp {
    pub(super) key: Key,
    pub(super) packets: u64,
}

/// Admission of senders.
#[derive(Debug, Default)]
pub(super) struct Admissions {
    named: Vec<Senders>,
    admitted: BTreeSet<Key>,
    unknown: BTreeMap<Key, Unknown>,
    bytes: usize,
    heard: u64,
    given_up: Vec<GivenUp>,
}

impl Admissions {
    pub(super) fn new(named: Vec<Senders>) -> Self {
        Self { named, ..Self::default() }
    }

    /// Whether a sender is recorded.
    pub(super) fn is_admitted(&self, flow: &Flow) -> bool {
        let least = Key { flow: *flow, thread: None };
        self.admitted.range(least..).next().is_some_and(|key| key.flow == *flow)
    }

    /// Whether a sender, or a thread of it, is recorded.
    pub(super) fn has(&self, key: &Key) -> bool {
        self.admitted.contains(key)
    }

    /// Whether senders have been admitted.
    pub(super) fn has_admitted(&self) -> bool {
        !self.admitted.is_empty()
    }

    /// Takes a packet of the format. `fits` says whether it and an earlier packet of the same sender and
    /// thread are packets of one stream.
    pub(super) fn take(&mut self, packet: &Packet, fits: impl Fn(&[u8], &[u8]) -> bool) -> Admission {
        let key = packet.key;
        if self.admitted.contains(&key) {
            return Admission::Admitted;
        }
        if !self.named.is_empty() && !self.names(&key.flow) {
            return Admission::Excluded;
        }
        if !self.named.is_empty() && key.thread.is_none() {
            self.admitted.insert(key);
            return Admission::New(Vec::new());
        }
        self.heard += 1;
        let unknown = self.unknown.entry(key).or_default();
        unknown.heard = self.heard;
        if unknown.packets.iter().any(|earlier| fits(&earlier.bytes, &packet.bytes)) {
            return Admission::New(self.admit(key));
        }
        if unknown.packets.len() >= UNKNOWN_PACKETS_MAX {
            self.bytes -= unknown.packets.remove(0).bytes.len();
            unknown.dropped += 1;
        }
        self.bytes += packet.bytes.len();
        unknown.packets.push(packet.clone());
        while self.unknown.len() > UNKNOWN_MAX || self.bytes > UNKNOWN_BYTES_MAX {
            let oldest = self.unknown.iter().min_by_key(|(_, unknown)| unknown.heard).map(|(key, _)| *key);
            let Some(oldest) = oldest else { break };
            self.give_up(oldest);
        }
        Admission::Held
    }

    /// Admits a sender without a packet that fits, unless the source names others; returns whether it is
    /// admitted.
    pub(super) fn admit_at_once(&mut self, flow: Flow) -> bool {
        let key = Key { flow, thread: None };
        let is_welcome = self.admitted.contains(&key) || self.named.is_empty() || self.names(&flow);
        if is_welcome {
            self.admitted.insert(key);
        }
        is_welcome
    }

    /// Whether the source names a sender.
    pub(super) fn names(&self, flow: &Flow) -> bool {
        flow.sender.is_some_and(|sender| self.named.iter().any(|named| named.contains(sender)))
    }

    /// Admits a sender or thread; returns its packets that were held.
    fn admit(&mut self, key: Key) -> Vec<Packet> {
        self.admitted.insert(key);
        let Some(unknown) = self.unknown.remove(&key) else { return Vec::new() };
        self.bytes -= unknown.packets.iter().map(|packet| packet.bytes.len()).saturating_sum();
        if unknown.dropped > 0 {
            self.given_up.push(GivenUp { key, packets: unknown.dropped });
        }
        unknown.packets
    }

    fn give_up(&mut self, key: Key) {
        let Some(unknown) = self.unknown.remove(&key) else { return };
        self.bytes -= unknown.packets.iter().map(|packet| packet.bytes.len()).saturating_sum();
        let packets = unknown.dropped + unknown.packets.len() as u64;
        self.given_up.push(GivenUp { key, packets });
    }

    /// At the end: admits the unknown senders and threads whose last packet `is_welcome`, and gives up the
    /// others. Returns the packets of the former.
    pub(super) fn finish(&mut self, is_welcome: impl Fn(&Packet) -> bool) -> Vec<Packet> {
        let mut packets = Vec::new();
        for key in self.unknown.keys().copied().collect::<Vec<_>>() {
            let last = self.unknown.get(&key).and_then(|unknown| unknown.packets.last());
            match last.is_some_and(&is_welcome) {
                true => packets.extend(self.admit(key)),
                false => self.give_up(key),
            }
        }
        packets
    }

    /// Packets that were given up since the last call.
    pub(super) fn take_given_up(&mut self) -> Vec<GivenUp> {
        std::mem::take(&mut self.given_up)
    }
}

#[cfg(test)]
#[path = "admission_tests.rs"]
mod tests;
