//! A source during a check: it accepts connections and answers packets of its recorders.
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_peer::Endpoint;
use keepup_workload::doctor::Route;
use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
};

use super::packet::{Answer, PACKET_BYTES_MAX, PACKET_BYTES_MIN, PathKey};
use crate::part::PartControl;

/// Interval at which the stop flag is checked.
const POLL: Duration = Duration::from_millis(50);
/// Connections accepted between two packets.
const ACCEPTED_MAX: usize = 64;

/// Sockets of a source.
pub(super) struct Listener {
    connections: TcpListener,
    packets: UdpSocket,
    key: PathKey,
}

impl Listener {
    /// Listens on `address`, `HOST:PORT`, for TCP connections and UDP packets.
    pub(super) fn bind(address: &str, key: PathKey) -> Result<Self, String> {
        let endpoint: Endpoint = address.parse().map_err(|error| format!("{address}: {error}"))?;
        let at = endpoint.address();
        let failed = |error: std::io::Error| format!("cannot listen on {address}: {error}");
        let connections = TcpListener::bind(at).map_err(failed)?;
        connections.set_nonblocking(true).map_err(failed)?;
        let packets = UdpSocket::bind(at).map_err(failed)?;
        packets.set_read_timeout(Some(POLL)).map_err(failed)?;
        never_fragment(&packets).map_err(failed)?;
        Ok(Self { connections, packets, key })
    }

    /// Accepts and answers until the part is to end.
    pub(super) fn serve(&self, control: &PartControl, clock: &dyn Clock) {
        let mut buffer = vec![0; PACKET_BYTES_MAX];
        while !control.is_stopped() {
            for _ in 0..ACCEPTED_MAX {
                // A connection proves that the port is reachable; nothing is read from it.
                if self.connections.accept().is_err() {
                    break;
                }
            }
            match self.packets.recv_from(&mut buffer) {
                Ok((bytes, from)) => self.answer(&buffer[..bytes], from),
                Err(error) if is_timeout(&error) => {}
                // Not expected: wait, so that a lasting error does not use a core.
                Err(_) => clock.sleep_until_ns(clock.now_ns().saturating_add(POLL.as_nanos() as u64)),
            }
        }
    }

    fn answer(&self, packet: &[u8], from: SocketAddr) {
        let Some(request) = self.key.read_request(packet) else { return };
        let mtu = Route::to(Path::new("/"), from.ip()).ok().and_then(|route| route.mtu.value().copied());
        let mtu = mtu.and_then(|mtu| u32::try_from(mtu).ok()).unwrap_or(0);
        let answer = Answer { id: request.id, request_bytes: packet.len(), mtu };
        let bytes = request.answer_bytes.clamp(PACKET_BYTES_MIN, PACKET_BYTES_MAX);
        // A packet above the MTU of the interface cannot be sent: no answer says the same.
        drop(self.packets.send_to(&self.key.answer(answer, bytes), from));
    }
}

/// Sends packets in one piece or not at all, whatever the kernel has learned about the path before.
pub(super) fn never_fragment(socket: &UdpSocket) -> std::io::Result<()> {
    match socket.local_addr()?.ip() {
        IpAddr::V4(_) => set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::PROBE)?,
        IpAddr::V6(_) => set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::PROBE)?,
    }
    Ok(())
}

pub(super) fn is_timeout(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}
