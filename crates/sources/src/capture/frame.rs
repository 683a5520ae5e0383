//! A captured frame: from its link layer to the UDP payload.
use std::net::{IpAddr, SocketAddr};

use etherparse::err::packet::SliceError;
use etherparse::{EtherType, NetSlice, SlicedPacket, TransportSlice};

/// Link layer of a capture, by its number in <https://www.tcpdump.org/linktypes.html>.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Ethernet,
    Ip,
    /// Linux cooked capture: place of the ether type, and length of the header, bytes.
    Cooked {
        ether_type: usize,
        header: usize,
    },
}

/// A UDP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Udp<'a> {
    pub(super) sender: SocketAddr,
    pub(super) destination: SocketAddr,
    pub(super) payload: &'a [u8],
}

/// Why a frame has no UDP packet to hand out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unused {
    /// Another protocol.
    Foreign,
    /// Part of an IP packet: only the first one has a UDP header.
    Fragment,
    /// Shorter than its headers state.
    Short,
}

impl Link {
    pub(super) fn of(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Ethernet),
            101 | 228 | 229 => Some(Self::Ip),
            113 => Some(Self::Cooked { ether_type: 14, header: 16 }),
            276 => Some(Self::Cooked { ether_type: 0, header: 20 }),
            _ => None,
        }
    }
}

/// The UDP packet of a frame.
pub(super) fn udp_packet(link: Link, frame: &[u8]) -> Result<Udp<'_>, Unused> {
    let sliced = match link {
        Link::Ethernet => SlicedPacket::from_ethernet(frame),
        Link::Ip => SlicedPacket::from_ip(frame),
        Link::Cooked { ether_type, header } => {
            let number = frame.get(ether_type..ether_type + 2).and_then(|bytes| bytes.first_chunk());
            let (Some(number), Some(rest)) = (number, frame.get(header..)) else { return Err(Unused::Short) };
            SlicedPacket::from_ether_type(EtherType(u16::from_be_bytes(*number)), rest)
        }
    };
    let sliced = sliced.map_err(|error| match error {
        SliceError::Len(_) => Unused::Short,
        _ => Unused::Foreign,
    })?;
    if sliced.is_ip_payload_fragmented() {
        return Err(Unused::Fragment);
    }
    let (from, to): (IpAddr, IpAddr) = match &sliced.net {
        Some(NetSlice::Ipv4(ip)) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        Some(NetSlice::Ipv6(ip)) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        _ => return Err(Unused::Foreign),
    };
    let Some(TransportSlice::Udp(udp)) = sliced.transport else { return Err(Unused::Foreign) };
    if udp.payload().len() > usize::from(u16::MAX) {
        // A jumbogram (RFC 2675); no socket would receive it.
        return Err(Unused::Foreign);
    }
    let sender = SocketAddr::new(from, udp.source_port());
    let destination = SocketAddr::new(to, udp.destination_port());
    Ok(Udp { sender, destination, payload: udp.payload() })
}
