//! Packets hold as much as they may, and no reply but their own is taken.
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use proptest::prelude::*;

use super::*;
use crate::ipbus::packet::PacketHeader;
use crate::ipbus::simulator::Machine;

/// Who asks.
const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);

fn reading(words: &mut [u32], each: usize, packet_words: usize) -> Transfer<'_> {
    let (kind, order) = (TransactionKind::Read, ByteOrder::Little);
    Transfer { kind, address: 0, data: Data::Read(words), each, packet_words, order }
}

#[test]
fn packets_of_an_mtu_of_1500_are_full() {
    let mut words = vec![0; 100_000];
    let transfer = reading(&mut words, 255, 368);
    assert_eq!(transfer.transactions(0).collect::<Vec<_>>(), [(0, 255), (255, 110)]);
    assert_eq!(transfer.transactions(99_998).collect::<Vec<_>>(), [(99_998, 2)]);
    let single = reading(&mut words, 1, 368);
    assert_eq!(single.transactions(0).count(), 183);
    let huge = reading(&mut words, 1, 16_000);
    assert_eq!(huge.transactions(0).count(), TRANSACTIONS_MAX);
    let data = vec![0; 1000];
    let (kind, order) = (TransactionKind::Write, ByteOrder::Big);
    let written =
        Transfer { kind, address: 0, data: Data::Write(&data), each: 255, packet_words: 368, order };
    assert_eq!(written.transactions(0).collect::<Vec<_>>(), [(0, 255), (255, 108)]);
}

#[test]
fn a_reply_to_another_packet_is_not_taken() {
    let mut machine = Machine::new(1500, 16, 1000, None);
    let mut replies = Vec::new();
    let mut words = vec![0; 800];
    let mut transfer = reading(&mut words, 255, 368);
    for (id, first) in [(1, 0), (2, 365)] {
        let (mut request, mut reply) = (Vec::new(), Vec::new());
        assert_eq!(transfer.write(id, first, &mut request), 365);
        assert!(machine.answer(PEER, &request, &mut reply));
        replies.push(reply);
    }
    let of = |index: usize| Words::after_header(&replies[index], ByteOrder::Little);
    assert_eq!(transfer.take(1, 0, of(1)), Taken::Foreign(None));
    assert_eq!(transfer.take(1, 0, of(0)), Taken::Whole);
    assert_eq!(transfer.take(2, 365, of(1)), Taken::Whole);
    let cut = &replies[0][..replies[0].len() - 4];
    let cut = Words::after_header(cut, ByteOrder::Little);
    assert_eq!(transfer.take(1, 0, cut), Taken::Foreign(Some(PacketError::Short)));
    assert!(PacketHeader::of(&replies[0]).is_ok());
}

proptest! {
    /// All packets together move every word once, to and from where it belongs.
    #[test]
    fn every_word_once(
        length in 1usize..1500, each in 1usize..=255, packet_words in 9usize..400, address in 0u32..500,
    ) {
        let mut machine = Machine::new(28 + packet_words * 4, 4, 2000, None);
        let data: Vec<u32> = (0..length as u32).map(|n| n.wrapping_mul(0x9E37_79B9)).collect();
        let mut back = vec![0; length];
        let order = ByteOrder::Big;
        let both = [
            (TransactionKind::Write, Data::Write(&data)),
            (TransactionKind::Read, Data::Read(&mut back)),
        ];
        for (kind, data) in both {
            let mut transfer = Transfer { kind, address, data, each, packet_words, order };
            let mut next = 0;
            while next < transfer.len() {
                let (mut request, mut reply) = (Vec::new(), Vec::new());
                let moved = transfer.write(0, next, &mut request);
                prop_assert!(moved > 0 && request.len() <= packet_words * 4);
                prop_assert!(machine.answer(PEER, &request, &mut reply));
                prop_assert_eq!(transfer.take(0, next, Words::after_header(&reply, order)), Taken::Whole);
                next += moved;
            }
        }
        prop_assert_eq!(back, data);
    }

    #[test]
    fn no_reply_makes_it_fall_over(
        bytes in prop::collection::vec(any::<u8>(), 0..200), each in 1usize..=255,
    ) {
        let mut words = vec![0; 300];
        let mut transfer = reading(&mut words, each, 368);
        prop_assert_ne!(transfer.take(1, 0, Words::after_header(&bytes, ByteOrder::Big)), Taken::Whole);
    }
}
