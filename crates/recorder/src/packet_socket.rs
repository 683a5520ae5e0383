//! Sockets that receive the packets of a detector.
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use keepup_error::Cause;
use keepup_sources::{PacketAddress, SourceAddress};
use keepup_sys::datagram::{set_join, set_notes};
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, netdevice, sockopt};

use crate::RecorderError;

/// Sockets of the sources of a recorder.
#[derive(Default)]
pub(crate) struct PacketSockets {
    /// In the place of its source; `None`: the source does not send packets.
    pub(crate) sockets: Vec<Option<OwnedFd>>,
    /// Address of the first socket.
    pub(crate) address: Option<SocketAddr>,
    /// What would make them safer.
    pub(crate) notes: Vec<Cause>,
}

/// Binds the sockets of the sources that send packets.
pub(crate) fn bind_all(sources: &[SourceAddress]) -> Result<PacketSockets, RecorderError> {
    let mut bound = PacketSockets::default();
    for source in sources {
        let SourceAddress::Packets(packets) = source else {
            bound.sockets.push(None);
            continue;
        };
        let fail =
            |e: rustix::io::Errno| RecorderError::Receive { address: packets.to_string(), source: e.into() };
        let (socket, buffer_bytes) = bind(packets).map_err(fail)?;
        if buffer_bytes < packets.buffer_bytes {
            let (has, wanted) = (buffer_bytes >> 10, packets.buffer_bytes >> 10);
            let what =
                format!("{packets}: receive buffer of {has} KiB instead of {wanted} KiB; bursts may be lost");
            bound.notes.push(
                Cause::new(what).with_hint(format!("sysctl -w net.core.rmem_max={}", packets.buffer_bytes)),
            );
        }
        let address = rustix::net::getsockname(&socket).map_err(fail)?;
        bound.address = bound.address.or_else(|| address.try_into().ok());
        bound.sockets.push(Some(socket));
    }
    Ok(bound)
}

/// Binds a socket; returns it with the bytes of its receive buffer.
fn bind(packets: &PacketAddress) -> rustix::io::Result<(OwnedFd, usize)> {
    let address = packets.address;
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::DGRAM, flags, Some(ipproto::UDP))?;
    let group = address.ip();
    if group.is_multicast() {
        // Several programs may receive a group.
        sockopt::set_socket_reuseaddr(&socket, true)?;
    }
    // Beyond net.core.rmem_max only with CAP_NET_ADMIN. The kernel doubles the value, for its own data about
    // each packet, and states it so.
    let bytes = packets.buffer_bytes.min(i32::MAX as usize / 2);
    sockopt::set_socket_recv_buffer_size_force(&socket, bytes)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, bytes))?;
    let buffer_bytes = sockopt::socket_recv_buffer_size(&socket)? / 2;
    set_notes(socket.as_fd()).map_err(errno)?;
    // Before Linux 5.0, packets are received one by one.
    let _ = set_join(socket.as_fd(), true);
    let interface = packets.interface.as_deref();
    let index = interface.map(|name| netdevice::name_to_index(&socket, name)).transpose()?;
    let mut bound = address;
    if let (SocketAddr::V6(v6), Some(index)) = (&mut bound, index) {
        // A group of the link needs it.
        v6.set_scope_id(index);
    }
    rustix::net::bind(&socket, &bound)?;
    match group {
        IpAddr::V4(group) if group.is_multicast() => {
            let any = std::net::Ipv4Addr::UNSPECIFIED;
            sockopt::set_ip_add_membership_with_ifindex(&socket, &group, &any, index.unwrap_or(0))?;
        }
        IpAddr::V6(group) if group.is_multicast() => {
            sockopt::set_ipv6_add_membership(&socket, &group, index.unwrap_or(0))?;
        }
        _ => {}
    }
    Ok((socket, buffer_bytes))
}

fn errno(error: std::io::Error) -> rustix::io::Errno {
    rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO)
}
