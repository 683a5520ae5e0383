//! A captured frame: from its link layer to the UDP payload.
use std::net::{IpAddr, SocketAddr};

use etherparse::err::packet::SliceError;
use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, NetSlice, SlicedPacket, TransportSlice};

/// Link layer of a capture, by its number in <https://www.tcpdump.org/linktypes.html>.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Ethernet,
    Ip,
    /// Raw IP behind 4 bytes with an address family.
    Loopback,
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
    /// A UDP packet to this port with lengths that contradict each other or the record.
    Damaged(u16),
}

impl Link {
    pub(super) fn of(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Ethernet),
            0 | 108 => Some(Self::Loopback),
            // 12 and 14 are raw IP of BSD.
            12 | 14 | 101 | 228 | 229 => Some(Self::Ip),
            113 => Some(Self::Cooked { ether_type: 14, header: 16 }),
            276 => Some(Self::Cooked { ether_type: 0, header: 20 }),
            _ => None,
        }
    }
}

/// Start of a frame behind its link layer.
enum Start<'a> {
    Ethernet(&'a [u8]),
    Ip(&'a [u8]),
    Other(EtherType, &'a [u8]),
}

fn start(link: Link, frame: &[u8]) -> Option<Start<'_>> {
    match link {
        Link::Ethernet => Some(Start::Ethernet(frame)),
        Link::Ip => Some(Start::Ip(frame)),
        Link::Loopback => frame.get(4..).map(Start::Ip),
        Link::Cooked { ether_type, header } => {
            let number = frame.get(ether_type..ether_type + 2)?.first_chunk()?;
            Some(Start::Other(EtherType(u16::from_be_bytes(*number)), frame.get(header..)?))
        }
    }
}

/// The UDP packet of a frame.
pub(super) fn udp_packet(link: Link, frame: &[u8]) -> Result<Udp<'_>, Unused> {
    let start = start(link, frame).ok_or(Unused::Short)?;
    let sliced = match start {
        Start::Ethernet(frame) => SlicedPacket::from_ethernet(frame),
        Start::Ip(packet) => SlicedPacket::from_ip(packet),
        Start::Other(ether_type, packet) => SlicedPacket::from_ether_type(ether_type, packet),
    };
    let sliced = match sliced {
        Ok(sliced) => sliced,
        Err(SliceError::Len(_)) => return odd_packet(&start),
        Err(_) => return Err(Unused::Foreign),
    };
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

/// The UDP packet of a frame with lengths that contradict each other: whole if only the length of the IP
/// packet is missing, as in packets that were captured before the network card cut them into segments.
fn odd_packet<'a>(start: &Start<'a>) -> Result<Udp<'a>, Unused> {
    let lax = match *start {
        Start::Ethernet(frame) => LaxSlicedPacket::from_ethernet(frame).ok(),
        Start::Ip(packet) => LaxSlicedPacket::from_ip(packet).ok(),
        Start::Other(ether_type, packet) => Some(LaxSlicedPacket::from_ether_type(ether_type, packet)),
    };
    let Some(LaxSlicedPacket { net: Some(net), transport, .. }) = lax else { return Err(Unused::Short) };
    if net.ip_payload_ref().is_some_and(|payload| payload.fragmented) {
        return Err(Unused::Fragment);
    }
    let Some(TransportSlice::Udp(udp)) = transport else { return Err(Unused::Short) };
    let port = udp.destination_port();
    let is_whole = match usize::from(udp.length()) {
        0 => udp.payload().len() <= usize::from(u16::MAX),
        length => length == udp.slice().len(),
    };
    match net {
        LaxNetSlice::Ipv4(ip) if ip.header().total_len() == 0 && is_whole => {
            let (from, to) = (ip.header().source_addr(), ip.header().destination_addr());
            let (sender, destination) = ((from, udp.source_port()).into(), (to, port).into());
            Ok(Udp { sender, destination, payload: udp.payload() })
        }
        _ => Err(Unused::Damaged(port)),
    }
}
