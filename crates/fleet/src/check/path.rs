//! Path from a recorder to a source: a connection, and the largest packets that pass in both directions.
//!
//! Packets are sent with the flag "don't fragment", so one that arrives was carried in one piece by every
//! link and switch on the way. A packet that is lost every time is taken as too large.
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_peer::Endpoint;
use keepup_results::PathFacts;
use keepup_sys::addresses::interface_of;
use keepup_workload::doctor::Route;

use super::listener::{is_timeout, never_fragment};
use super::packet::{PACKET_BYTES_MIN, PathKey, Request};
use super::plan::SourceAddress;

/// Time for a connection.
const CONNECT_TIME: Duration = Duration::from_secs(3);
/// Attempts for each size, and the time for the answers of one attempt.
const ATTEMPTS: u64 = 4;
const ANSWER_NS: u64 = 300_000_000;
/// Packet sizes that are usual as MTU: jumbo frames, InfiniBand, Ethernet, tunnels, minimum of IPv6 and IPv4.
const SIZES: [u64; 9] = [9_000, 8_000, 4_092, 2_044, 1_500, 1_450, 1_400, 1_280, 576];
/// Largest IP packet, bytes.
const SIZE_MAX: u64 = 65_535;
/// Bit of an id for answers that have the size under test.
const BACK: u64 = 1 << 32;

/// Measures the path to `source`.
pub(super) fn measure(source: &SourceAddress, key: &PathKey, clock: &dyn Clock) -> PathFacts {
    let mut facts = PathFacts {
        source: source.name.clone(),
        address: source.address.clone(),
        failure: None,
        interface: None,
        mtu: None,
        source_mtu: None,
        to_source_bytes: None,
        from_source_bytes: None,
    };
    let at = match source.address.parse::<Endpoint>() {
        Ok(endpoint) => endpoint.address(),
        Err(why) => return PathFacts { failure: Some(why.to_string()), ..facts },
    };
    match Route::to(Path::new("/"), at.ip()) {
        Ok(route) => {
            facts.mtu = route.mtu.value().copied();
            facts.interface = interface(&route);
        }
        Err(why) => return PathFacts { failure: Some(why.to_string()), ..facts },
    }
    if let Err(why) = TcpStream::connect_timeout(&at, CONNECT_TIME) {
        return PathFacts { failure: Some(why.to_string()), ..facts };
    }
    // Without sizes, the path is not judged.
    if let Ok(prober) = Prober::new(at, key, clock) {
        prober.fill(&mut facts);
    }
    facts
}

/// Interface of a route: the one with its local address, else that of the routing table.
pub(super) fn interface(route: &Route) -> Option<String> {
    interface_of(route.local).ok().flatten().or_else(|| route.interface.value().cloned())
}

/// Sends requests to a source.
struct Prober<'a> {
    socket: UdpSocket,
    at: SocketAddr,
    key: &'a PathKey,
    clock: &'a dyn Clock,
    /// Bytes of the headers of IP and UDP.
    headers: u64,
}

impl<'a> Prober<'a> {
    fn new(at: SocketAddr, key: &'a PathKey, clock: &'a dyn Clock) -> std::io::Result<Self> {
        let (any, headers): (IpAddr, u64) = match at.ip() {
            IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), 28),
            IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED.into(), 48),
        };
        let socket = UdpSocket::bind((any, 0))?;
        never_fragment(&socket)?;
        Ok(Self { socket, at, key, clock, headers })
    }

    /// Measures both directions.
    fn fill(&self, facts: &mut PathFacts) {
        let smallest = BTreeSet::from([0]);
        let (found, mtu) = self.attempts(&smallest);
        if found.is_empty() {
            return;
        }
        facts.source_mtu = mtu;
        let sizes = || SIZES.into_iter().chain(facts.mtu).chain(facts.source_mtu);
        let sizes: BTreeSet<u64> = sizes().map(|size| size.min(SIZE_MAX)).collect();
        let (found, _) = self.attempts(&sizes.iter().flat_map(|size| [*size, *size | BACK]).collect());
        facts.to_source_bytes = found.range(..BACK).next_back().copied();
        facts.from_source_bytes = found.range(BACK..).next_back().map(|id| id & !BACK);
    }

    /// Sends a request for each id until it is answered or has been sent often enough. Returns the ids that
    /// were answered, and the MTU of the source.
    fn attempts(&self, ids: &BTreeSet<u64>) -> (BTreeSet<u64>, Option<u64>) {
        let (mut found, mut mtu) = (BTreeSet::new(), None);
        let mut buffer = vec![0; SIZE_MAX as usize];
        for _ in 0..ATTEMPTS {
            let mut is_open = false;
            for id in ids.difference(&found).copied().collect::<Vec<_>>() {
                is_open |= self.send(id);
            }
            if !is_open {
                break;
            }
            let until_ns = self.clock.now_ns().saturating_add(ANSWER_NS);
            while found.len() < ids.len()
                && let Some((id, source_mtu)) = self.receive(until_ns, &mut buffer)
            {
                mtu = mtu.or(source_mtu);
                if ids.contains(&id) {
                    found.insert(id);
                }
            }
        }
        (found, mtu)
    }

    /// Sends the request of an id. Returns false if its packet is too large for the own interface.
    fn send(&self, id: u64) -> bool {
        let payload = (id & !BACK).saturating_sub(self.headers) as usize;
        let (own, answer) = if id & BACK == 0 { (payload, 0) } else { (0, payload) };
        let packet = self.key.request(Request { id, answer_bytes: answer }, own.max(PACKET_BYTES_MIN));
        self.socket.send_to(&packet, self.at).is_ok()
    }

    /// Next answer: its id, and the MTU of the source. None at `until_ns`.
    fn receive(&self, until_ns: u64, buffer: &mut [u8]) -> Option<(u64, Option<u64>)> {
        loop {
            let left_ns = until_ns.checked_sub(self.clock.now_ns()).filter(|left| *left > 0)?;
            self.socket.set_read_timeout(Some(Duration::from_nanos(left_ns))).ok()?;
            let bytes = match self.socket.recv_from(buffer) {
                Ok((bytes, _)) => bytes,
                Err(error) if is_timeout(&error) => continue,
                Err(_) => return None,
            };
            let Some(answer) = self.key.read_answer(&buffer[..bytes]) else { continue };
            let payload = (answer.id & !BACK).saturating_sub(self.headers) as usize;
            let arrived = if answer.id & BACK == 0 { answer.request_bytes } else { bytes };
            if arrived == payload.max(PACKET_BYTES_MIN) {
                return Some((answer.id, Some(u64::from(answer.mtu)).filter(|mtu| *mtu > 0)));
            }
        }
    }
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
