//! Arbitrary bytes as IPbus datagrams: decoded, and answered by a simulated target.
#![no_main]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use keepup_registers::ipbus::TargetState;
use keepup_registers::ipbus::packet::{ByteOrder, PacketHeader, PacketKind, Reply, Request, Status, Words};
use libfuzzer_sys::fuzz_target;

/// MTU of the target, with 28 bytes of IP and UDP headers.
const MTU_BYTES: usize = 28 + 400;
/// Address of the client.
const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);

fuzz_target!(|data: &[u8]| {
    let _ = Status::from_reply(data);
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let mut words = Words::after_header(data, order);
        while let Some(Ok(request)) = Request::next(&mut words) {
            assert!(request.data.count() <= data.len() / 4);
        }
        let mut words = Words::after_header(data, order);
        while let Some(Ok(reply)) = Reply::next(&mut words) {
            assert!(reply.data.count() <= data.len() / 4);
        }
    }
    let mut target = TargetState::new(MTU_BYTES, 4, 1000, Some(500));
    let mut reply = Vec::new();
    // The first byte selects the start of a second datagram, which meets the state left by the first.
    let cut = data.first().map_or(0, |first| usize::from(*first) * 4).min(data.len());
    for datagram in [data, &data[cut..]] {
        reply.clear();
        let is_answered = target.answer(PEER, datagram, &mut reply);
        assert_ne!(is_answered, reply.is_empty());
        assert!(reply.len() <= MTU_BYTES - 28);
        if is_answered {
            let (header, order) = PacketHeader::parse(&reply).expect("a target speaks IPbus");
            let request = PacketHeader::parse(datagram).expect("a target answers only packets");
            // A status reply always has packet number 0.
            let id = if request.0.kind == PacketKind::Status { 0 } else { request.0.id };
            assert_eq!(header.id, id);
            // All transactions but the last succeeded; nothing follows a failed one.
            let mut words = Words::after_header(&reply, order);
            while let Some(Ok(_)) = Reply::next(&mut words) {}
        }
    }
});
