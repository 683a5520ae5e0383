//! Route to a sender: interface and MTU, from the kernel. Sends nothing.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;

use keepup_measure::environment::Reading;
use keepup_measure::settings::{route_v4, route_v6};
use rustix::net::sockopt::{ip_mtu, ipv6_mtu};
use serde::Serialize;

use crate::WorkloadError;

/// Any nonzero port: connecting a datagram socket only looks up the route.
const PORT: u16 = 9;

/// Route to a sender.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Route {
    /// Address of the sender.
    pub peer: IpAddr,
    /// Local address of the route.
    pub local: IpAddr,
    /// Interface of the route.
    pub interface: Reading<String>,
    /// Path MTU, bytes: the minimum of the interface, the route's own setting, and previously
    /// learned router limits.
    pub mtu: Reading<u64>,
}

impl Route {
    /// Route to `peer`. Fails if there is none.
    pub fn to(root: &Path, peer: IpAddr) -> Result<Self, WorkloadError> {
        let failed = |source| WorkloadError::Route { peer, source };
        let any: IpAddr = match peer {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind(SocketAddr::new(any, 0)).map_err(failed)?;
        socket.connect(SocketAddr::new(peer, PORT)).map_err(failed)?;
        let local = socket.local_addr().map_err(failed)?.ip();
        let mtu = match peer {
            IpAddr::V4(_) => ip_mtu(&socket),
            IpAddr::V6(_) => ipv6_mtu(&socket),
        };
        let mtu = match mtu {
            Ok(bytes) => Reading::Value(u64::from(bytes)),
            Err(why) => Reading::NotReadable(format!("the kernel does not report it: {why}")),
        };
        Ok(Self { peer, local, interface: interface(root, peer, local), mtu })
    }
}

fn interface(root: &Path, peer: IpAddr, local: IpAddr) -> Reading<String> {
    // Local destinations are routed through the loopback interface, whatever their address.
    if peer.is_loopback() || peer == local {
        return Reading::Value("lo".into());
    }
    let file = root.join(if peer.is_ipv4() { "proc/net/route" } else { "proc/net/ipv6_route" });
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(why) => return Reading::NotReadable(format!("read {}: {why}", file.display())),
    };
    let found = match peer {
        IpAddr::V4(peer) => route_v4(&text, peer),
        IpAddr::V6(peer) => route_v6(&text, peer),
    };
    let why = || format!("{} has no route to {peer}; another routing table may have one", file.display());
    found.map_or_else(|| Reading::NotReadable(why()), Reading::Value)
}
