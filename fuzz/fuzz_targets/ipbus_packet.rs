//! Arbitrary bytes as datagrams of IPbus: read in every way, and answered by a target.
#![no_main]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use keepup_registers::ipbus::TargetState;
use keepup_registers::ipbus::packet::{
    ByteOrder, PacketHeader, PacketKind, Reply, Request, Status, Words,
};
use libfuzzer_sys::fuzz_target;

/// MTU of the target, and what IP and UDP take of it, in bytes.
const MTU_BYTES: usize = 28 + 400;
/// Who asks.
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
    let mut machine = TargetState::new(MTU_BYTES, 4, 1000, Some(500));
    let mut reply = Vec::new();
    // The first byte says where a second datagram begins, which meets what the first has left behind.
    let cut = data.first().map_or(0, |first| usize::from(*first) * 4).min(data.len());
    for datagram in [data, &data[cut..]] {
        reply.clear();
        let is_answered = machine.answer(PEER, datagram, &mut reply);
        assert_ne!(is_answered, reply.is_empty());
        assert!(reply.len() <= MTU_BYTES - 28);
        if is_answered {
            let (header, order) = PacketHeader::parse(&reply).expect("a target speaks IPbus");
            let asked = PacketHeader::parse(datagram).expect("a target answers packets alone");
            // The status has a header of its own, whatever number it was asked for with.
            let id = if asked.0.kind == PacketKind::Status { 0 } else { asked.0.id };
            assert_eq!(header.id, id);
            // All but the last are done; after one that was not nothing follows.
            let mut words = Words::after_header(&reply, order);
            while let Some(Ok(_)) = Reply::next(&mut words) {}
        }
    }
});
