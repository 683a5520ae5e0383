//! Inputs of sources: sockets for packets, capture files, directories.
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use keepup_error::Cause;
use keepup_measure::clock::Clock;
use keepup_sources::capture::Capture;
use keepup_sources::{PacketAddress, SourceAddress};
use keepup_sys::datagram::{set_destinations, set_join, set_notes};
use keepup_sys::socket::receive_own_groups_only;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, netdevice, sockopt};

use crate::switches::Switches;
use crate::{RecorderConfig, RecorderError, capture_feed, directory};

/// What a source is received from.
pub(crate) enum SourceInput {
    /// A connection, to be made later.
    Connection,
    /// A bound socket, or that of a directory's thread.
    Socket(OwnedFd),
    /// A file.
    Capture(Box<Capture>),
}

/// Inputs of the sources of a recorder.
#[derive(Default)]
pub(crate) struct SourceInputs {
    /// In the place of its source.
    pub(crate) inputs: Vec<SourceInput>,
    /// Address of the first socket.
    pub(crate) address: Option<SocketAddr>,
    /// What would make them safer.
    pub(crate) notes: Vec<Cause>,
}

/// Binds the sockets and opens the files and directories of the sources.
pub(crate) fn open_all(
    config: &RecorderConfig,
    switches: &Arc<Switches>,
    clock: &Arc<dyn Clock>,
) -> Result<SourceInputs, RecorderError> {
    let mut bound = SourceInputs::default();
    for (index, source) in config.sources.iter().enumerate() {
        let packets = match source {
            SourceAddress::Packets(packets) => packets,
            SourceAddress::Capture(capture) => {
                let capture = capture_feed::open(capture)?;
                bound.inputs.push(SourceInput::Capture(Box::new(capture)));
                continue;
            }
            SourceAddress::Directory(address) => {
                let (socket, note) = directory::start(index, address, config, (switches, clock))?;
                bound.notes.extend(note);
                bound.inputs.push(SourceInput::Socket(socket));
                continue;
            }
            SourceAddress::Dectris(_) | SourceAddress::PvAccess(_) => {
                bound.inputs.push(SourceInput::Connection);
                continue;
            }
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
        bound.inputs.push(SourceInput::Socket(socket));
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
    let interface = packets.interface.as_deref();
    let index = interface.map(|name| netdevice::name_to_index(&socket, name)).transpose()?;
    if group.is_multicast() {
        // Kernels that do not know it deliver packets from other interfaces, too.
        let _ = receive_own_groups_only(socket.as_fd(), group.is_ipv6(), index);
    }
    // Beyond net.core.rmem_max only with CAP_NET_ADMIN. The kernel doubles the value, for its own data about
    // each packet, and states it so.
    let bytes = packets.buffer_bytes.min(i32::MAX as usize / 2);
    sockopt::set_socket_recv_buffer_size_force(&socket, bytes)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, bytes))?;
    let buffer_bytes = sockopt::socket_recv_buffer_size(&socket)? / 2;
    set_notes(socket.as_fd()).map_err(errno)?;
    if group.is_unspecified() {
        // A sender may send different packets to different addresses of this machine.
        set_destinations(socket.as_fd(), group.is_ipv6()).map_err(errno)?;
    }
    // Before Linux 5.0, packets are received one by one.
    let _ = set_join(socket.as_fd(), true);
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
