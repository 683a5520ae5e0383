//! Replies of a target: correct words and errors, no packet executed twice, and no reply beyond the MTU.
use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;

use super::*;
use crate::ipbus::packet::{ByteOrder, Reply, TransactionKind};
use crate::ipbus::simulator::registers::{IDENTITY, IDENTITY_ADDRESS};

/// The client.
const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);

/// Info code, word count and data of a reply.
type Answer = (Info, u8, Vec<u32>);

/// The replies to a packet; `None` if the target does not answer.
fn ask(
    state: &mut TargetState,
    id: u16,
    requests: &[(TransactionKind, u32, u8, &[u32])],
) -> Option<Vec<Answer>> {
    let mut bytes = Vec::new();
    let mut packet = PacketWriter::control(&mut bytes, ByteOrder::Big, id);
    for (index, (kind, address, words, data)) in requests.iter().enumerate() {
        let (id, words, kind) = (index as u16, *words, *kind);
        packet.transaction(TransactionHeader { id, words, kind, info: Info::REQUEST });
        packet.word(*address);
        packet.words(data);
    }
    let mut reply = Vec::new();
    if !state.answer(PEER, &bytes, &mut reply) {
        return None;
    }
    assert_eq!(PacketHeader::parse(&reply), Ok((PacketHeader::control(id), ByteOrder::Big)));
    let mut words = Words::after_header(&reply, ByteOrder::Big);
    let mut replies = Vec::new();
    while let Some(reply) = Reply::next(&mut words) {
        let reply = reply.unwrap();
        replies.push((reply.header.info, reply.header.words, reply.data.collect()));
    }
    Some(replies)
}

fn state() -> TargetState {
    TargetState::new(1500, 4, 100, Some(50))
}

use TransactionKind::{Read, ReadConfiguration, ReadFifo, RmwBits, RmwSum, Write, WriteFifo};

#[test]
fn every_kind_of_transaction_is_executed() {
    let mut state = state();
    let replies = ask(
        &mut state,
        0,
        &[
            (Write, 10, 3, &[1, 2, 3]),
            (Read, 9, 5, &[]),
            (WriteFifo, 20, 3, &[7, 8, 9]),
            (ReadFifo, 20, 2, &[]),
            (RmwBits, 20, 1, &[0xC, 0x3]),
            (RmwSum, 20, 1, &[u32::MAX]),
            (Read, 20, 1, &[]),
            (ReadConfiguration, 0, 4, &[]),
            (Read, IDENTITY_ADDRESS, 1, &[]),
            (ReadFifo, IDENTITY_ADDRESS, 2, &[]),
        ],
    );
    let done = |words, data: &[u32]| (Info::DONE, words, data.to_vec());
    let expected = vec![
        done(3, &[]),
        done(5, &[0, 1, 2, 3, 0]),
        done(3, &[]),
        done(2, &[9, 9]),
        done(1, &[9]),
        done(1, &[0xB]),
        done(1, &[0xA]),
        done(4, &[IDENTITY, 100, 1500, 4]),
        done(1, &[IDENTITY]),
        done(2, &[IDENTITY, IDENTITY]),
    ];
    assert_eq!(replies, Some(expected));
    let counters = state.counters();
    assert_eq!((counters.packets, counters.transactions, counters.failed), (1, 10, 0));
    assert_eq!((counters.words_read, counters.words_written), (15, 8));
}

#[test]
fn a_failed_transaction_reports_its_progress_and_ends_the_packet() {
    let mut state = state();
    type Case = (TransactionKind, u32, u8, &'static [u32], Info, u8, &'static [u32]);
    let cases: [Case; 9] = [
        (Read, 48, 5, &[], Info::READ_ERROR, 2, &[0, 0]),
        (Write, 49, 2, &[1, 2], Info::WRITE_ERROR, 1, &[]),
        (ReadFifo, 50, 2, &[], Info::READ_ERROR, 0, &[]),
        (WriteFifo, 50, 1, &[1], Info::WRITE_ERROR, 0, &[]),
        (RmwBits, 50, 1, &[1, 2], Info::READ_ERROR, 0, &[]),
        (RmwSum, 100, 1, &[1], Info::READ_ERROR, 0, &[]),
        (Read, u32::MAX, 2, &[], Info::READ_ERROR, 0, &[]),
        (Write, IDENTITY_ADDRESS, 1, &[1], Info::WRITE_ERROR, 0, &[]),
        (ReadConfiguration, 3, 2, &[], Info::READ_ERROR, 1, &[4]),
    ];
    for (kind, address, words, data, info, done, there) in cases {
        let replies = ask(&mut state, 0, &[(kind, address, words, data), (Read, 0, 1, &[])]).unwrap();
        assert_eq!(replies.len(), 1, "{kind} at {address:#x}");
        // A failed read-modify-write returns no data.
        assert_eq!((replies[0].0, replies[0].1), (info, done), "{kind} at {address:#x}");
        assert_eq!(&replies[0].2[..], there, "{kind} at {address:#x}");
    }
}

#[test]
fn a_packet_is_executed_once_and_its_reply_kept() {
    let mut state = state();
    let add = |state: &mut TargetState, id| ask(state, id, &[(RmwSum, 5, 1, &[1])]).map(|r| r[0].2[0]);
    assert_eq!(add(&mut state, 1), Some(0));
    assert_eq!((add(&mut state, 1), add(&mut state, 3)), (None, None));
    assert_eq!((add(&mut state, 2), add(&mut state, 0)), (Some(1), Some(2)));
    let mut first = Vec::new();
    assert!(state.answer(PEER, &PacketHeader::resend(1), &mut first));
    assert_eq!(first[..4], PacketHeader::control(1).word().to_be_bytes());
    assert!(!state.answer(PEER, &PacketHeader::resend(3), &mut Vec::new()));
    let mut status = Vec::new();
    assert!(state.answer(PEER, &Status::request(), &mut status));
    let status = Status::from_reply(&status).unwrap();
    assert_eq!((status.mtu_bytes, status.buffers, status.next_id), (1500, 4, 3));
    let counters = state.counters();
    assert_eq!((counters.out_of_sequence, counters.resent, counters.unknown), (2, 1, 1));
}

#[test]
fn a_request_for_more_than_a_packet_holds_is_refused() {
    let mut small = TargetState::new(28 + 64, 4, 1000, None);
    let replies = ask(&mut small, 0, &[(Read, 0, 10, &[]), (Read, 0, 10, &[])]).unwrap();
    assert_eq!(replies.iter().map(|r| r.0).collect::<Vec<_>>(), [Info::DONE, Info::BAD_HEADER]);
    assert_eq!(ask(&mut small, 0, &[(Write, 0, 14, &[0; 14])]), None);
    assert_eq!(small.counters().foreign, 1);
}

proptest! {
    #[test]
    fn no_reply_exceeds_the_mtu(
        bytes in prop::collection::vec(any::<u8>(), 0..120),
        header in prop_oneof![Just(0x2000_00F0u32), Just(0x2000_01F0), Just(0x2000_00F1), Just(0x2000_01F2)],
    ) {
        let mut state = TargetState::new(28 + 100, 2, 100, Some(3));
        let datagram = [&header.to_be_bytes(), &bytes[..]].concat();
        let mut reply = Vec::new();
        for _ in 0..2 {
            reply.clear();
            let answered = state.answer(PEER, &datagram, &mut reply);
            prop_assert!(answered != reply.is_empty());
            prop_assert!(reply.len() <= 100 && reply.len() % 4 == 0);
        }
    }
}
