//! Packets are filled up, and only their own replies are accepted.
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use proptest::prelude::*;

use super::*;
use crate::ipbus::packet::PacketHeader;
use crate::ipbus::simulator::TargetState;

/// The client.
const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);

fn reading(words: &mut [u32], each: usize, packet_words: usize) -> Transfer<'_> {
    let (kind, order) = (TransactionKind::Read, ByteOrder::Little);
    Transfer { kind, address: 0, data: Data::Read(words), each, packet_words, order }
}

#[test]
fn packets_for_an_mtu_of_1500_are_full() {
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
fn a_reply_to_another_packet_is_not_accepted() {
    let mut state = TargetState::new(1500, 16, 1000, None);
    let mut replies = Vec::new();
    let mut words = vec![0; 800];
    let mut transfer = reading(&mut words, 255, 368);
    for (id, first) in [(1, 0), (2, 365)] {
        let (mut request, mut reply) = (Vec::new(), Vec::new());
        assert_eq!(transfer.encode(id, first, &mut request), 365);
        assert!(state.answer(PEER, &request, &mut reply));
        replies.push(reply);
    }
    let of = |index: usize| Words::after_header(&replies[index], ByteOrder::Little);
    assert_eq!(transfer.decode_reply(1, 0, of(1)), ReplyMatch::Mismatch(None));
    assert_eq!(transfer.decode_reply(1, 0, of(0)), ReplyMatch::Complete);
    assert_eq!(transfer.decode_reply(2, 365, of(1)), ReplyMatch::Complete);
    let cut = &replies[0][..replies[0].len() - 4];
    let cut = Words::after_header(cut, ByteOrder::Little);
    assert_eq!(transfer.decode_reply(1, 0, cut), ReplyMatch::Mismatch(Some(PacketError::Short)));
    assert!(PacketHeader::parse(&replies[0]).is_ok());
}

proptest! {
    /// All packets together move every word once, to and from its own address.
    #[test]
    fn every_word_is_moved_once(
        length in 1usize..1500, each in 1usize..=255, packet_words in 9usize..400, address in 0u32..500,
    ) {
        let mut state = TargetState::new(28 + packet_words * 4, 4, 2000, None);
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
                let moved = transfer.encode(0, next, &mut request);
                prop_assert!(moved > 0 && request.len() <= packet_words * 4);
                prop_assert!(state.answer(PEER, &request, &mut reply));
                let words = Words::after_header(&reply, order);
                prop_assert_eq!(transfer.decode_reply(0, next, words), ReplyMatch::Complete);
                next += moved;
            }
        }
        prop_assert_eq!(back, data);
    }

    #[test]
    fn no_reply_makes_the_decoder_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200), each in 1usize..=255,
    ) {
        let mut words = vec![0; 300];
        let mut transfer = reading(&mut words, each, 368);
        let reply = Words::after_header(&bytes, ByteOrder::Big);
        prop_assert_ne!(transfer.decode_reply(1, 0, reply), ReplyMatch::Complete);
    }
}
