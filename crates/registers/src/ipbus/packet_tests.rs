//! Encoding and decoding of packets, compared with captured ones.
use proptest::prelude::*;

use super::*;

fn order() -> impl Strategy<Value = ByteOrder> {
    prop_oneof![Just(ByteOrder::Big), Just(ByteOrder::Little)]
}

#[test]
fn packets_match_a_capture() {
    // One word, read by the reference client on a little-endian machine.
    let mut bytes = Vec::new();
    let mut packet = PacketWriter::control(&mut bytes, ByteOrder::Little, 0);
    packet.transaction(TransactionHeader {
        id: 0,
        words: 1,
        kind: TransactionKind::Read,
        info: Info::REQUEST,
    });
    packet.word(0x1234);
    assert_eq!(bytes, [0xF0, 0, 0, 0x20, 0x0F, 1, 0, 0x20, 0x34, 0x12, 0, 0]);
    assert_eq!(PacketHeader::parse(&bytes), Ok((PacketHeader::control(0), ByteOrder::Little)));
    assert_eq!(Status::request()[..8], [0x20, 0, 0, 0xF1, 0, 0, 0, 0]);
    assert_eq!(PacketHeader::resend(0xABCD), [0x20, 0xAB, 0xCD, 0xF2]);
}

#[test]
fn invalid_datagrams_are_refused_with_a_reason() {
    let why = |bytes: &[u8]| PacketHeader::parse(bytes).unwrap_err();
    assert_eq!(why(&[]), PacketError::Length(0));
    assert_eq!(why(&[0x20, 0, 0, 0xF0, 0]), PacketError::Length(5));
    assert_eq!(why(&[0x10, 0, 0, 0xF0]), PacketError::Version(1));
    assert_eq!(why(&[0xF0, 0, 0, 0x10]), PacketError::Version(1));
    assert_eq!(why(b"HTTP"), PacketError::Header(u32::from_be_bytes(*b"HTTP")));
    // Only transaction packets may be little-endian.
    assert_eq!(why(&[0xF1, 0, 0, 0x20]), PacketError::Header(0xF100_0020));
}

#[test]
fn packet_numbers_wrap_around_without_zero() {
    assert_eq!((next_packet_id(0xFFFF), next_packet_id(0)), (1, 1));
    assert_eq!((packet_distance(7, 7), packet_distance(0xFFFE, 3), packet_distance(3, 2)), (0, 4, 65_534));
}

proptest! {
    #[test]
    fn requests_and_replies_round_trip(
        order in order(),
        id in any::<u16>(),
        parts in prop::collection::vec(
            (0u32..7, any::<u16>(), any::<u8>(), any::<u32>(), any::<bool>()),
            0..6,
        ),
        seed in any::<u64>(),
    ) {
        let mut random = fastrand::Rng::with_seed(seed);
        for is_reply in [false, true] {
            let mut bytes = Vec::new();
            let mut packet = PacketWriter::control(&mut bytes, order, id);
            let mut made = Vec::new();
            for (kind, number, words, address, fails) in &parts {
                let kind = TransactionKind::from_number(*kind).unwrap();
                let info = match (is_reply, fails) {
                    (false, _) => Info::REQUEST,
                    (true, false) => Info::DONE,
                    (true, true) => Info::READ_TIMEOUT,
                };
                let header = TransactionHeader { id: number % TRANSACTION_IDS, words: *words, kind, info };
                let body = match is_reply {
                    false => kind.request_words((*words).into()) - 1,
                    true => kind.reply_words((*words).into()),
                };
                let data: Vec<u32> = (0..body).map(|_| random.u32(..)).collect();
                packet.transaction(header);
                if !is_reply {
                    packet.word(*address);
                }
                packet.words(&data);
                made.push((header, *address, data));
            }
            prop_assert_eq!(PacketHeader::parse(&bytes), Ok((PacketHeader::control(id), order)));
            let mut words = Words::after_header(&bytes, order);
            for (header, address, data) in made {
                let read = match is_reply {
                    false => {
                        let request = Request::next(&mut words).unwrap().unwrap();
                        prop_assert_eq!((request.header, request.address), (header, address));
                        request.data
                    }
                    true => {
                        let reply = Reply::next(&mut words).unwrap().unwrap();
                        prop_assert_eq!(reply.header, header);
                        reply.data
                    }
                };
                let mut copied = vec![0; data.len()];
                read.copy_to(&mut copied);
                prop_assert_eq!(read.collect::<Vec<_>>(), &data[..]);
                prop_assert_eq!(copied, data);
            }
            prop_assert!(words.is_empty());
        }
    }

    #[test]
    fn a_status_round_trips(
        mtu_bytes in any::<u32>(), buffers in any::<u32>(), next_id in any::<u16>(),
        received in any::<[u32; 4]>(), sent in any::<[u32; 4]>(),
    ) {
        let status = Status { mtu_bytes, buffers, next_id, received, sent };
        prop_assert_eq!(Status::from_reply(&status.reply()), Ok(status));
        prop_assert!(Status::from_reply(&status.reply()[4..]).is_err());
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200), order in order(),
    ) {
        if bytes.len() >= 8 {
            // Without this, nearly all inputs are refused at the first word.
            bytes[..4].copy_from_slice(&order.bytes(PacketHeader::control(1).word()));
            bytes[4] = 0x2F;
        }
        let _ = (PacketHeader::parse(&bytes), Status::from_reply(&bytes));
        let mut left = Words::after_header(&bytes, order);
        while let Some(Ok(_)) = Request::next(&mut left) {}
        let mut left = Words::after_header(&bytes, order);
        while let Some(Ok(reply)) = Reply::next(&mut left) {
            prop_assert!(reply.data.len() <= bytes.len() / 4);
        }
    }
}
