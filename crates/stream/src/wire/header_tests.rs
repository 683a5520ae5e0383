//! Byte layout, round trip, damage.

use proptest::prelude::*;

use super::*;

fn header() -> impl Strategy<Value = Header> {
    let kinds = prop_oneof![
        Just(FrameKind::Hello),
        Just(FrameKind::Event),
        Just(FrameKind::End),
        Just(FrameKind::Welcome),
        Just(FrameKind::Ack),
        Just(FrameKind::Bye),
        Just(FrameKind::Error)
    ];
    (kinds, 0..STREAM_ID_END, any::<(u64, u64, u64, u32, u64, u64)>()).prop_map(
        |(kind, stream, (sequence, timestamp_ns, length, crc, a, b))| Header {
            kind,
            stream,
            sequence,
            timestamp_ns,
            length,
            crc,
            a,
            b,
        },
    )
}

fn resealed(mut bytes: [u8; 64], at: usize, value: u8) -> [u8; 64] {
    bytes[at] = value;
    let crc = crc32(&bytes[..60]);
    bytes[60..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn example() -> Header {
    Header {
        kind: FrameKind::Event,
        stream: 0x0102,
        sequence: 0x1112_1314_1516_1718,
        timestamp_ns: 0x2122_2324_2526_2728,
        length: 0x3132_3334_3536_3738,
        crc: 0x4142_4344,
        a: 0x5152_5354_5556_5758,
        b: 0x6162_6364_6566_6768,
    }
}

#[test]
fn the_byte_layout_matches_the_protocol() {
    let bytes = example().encode();
    assert_eq!(&bytes[..12], b"KUP1\x02\x01\0\0\x02\x01\0\0");
    assert_eq!(&bytes[12..16], &[0x44, 0x43, 0x42, 0x41]);
    assert_eq!(&bytes[16..24], &[0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11]);
    assert_eq!(bytes[24], 0x28);
    assert_eq!(bytes[32], 0x38);
    assert_eq!(bytes[40], 0x58);
    assert_eq!(bytes[48], 0x68);
    assert_eq!(&bytes[56..60], &[0; 4]);
    assert_eq!(crc32(b"123456789"), 0xcbf4_3926, "the catalogue's check value of CRC-32 ISO-HDLC");
    assert_eq!(&bytes[60..], &crc32(&bytes[..60]).to_le_bytes());
}

#[test]
fn invalid_fields_are_refused() {
    let bytes = example().encode();
    for (at, value, field) in
        [(6, 1, "flags"), (7, 1, "flags"), (57, 1, "reserved"), (4, 9, "kind"), (10, 1, "stream")]
    {
        let error = Header::decode(&resealed(bytes, at, value)).unwrap_err();
        assert!(matches!(&error, WireError::Field { field: f, .. } if *f == field), "{error}");
    }
    let error = Header::decode(&resealed(bytes, 5, 2)).unwrap_err().to_string();
    assert!(error.contains("version 2") && error.contains("version 1"), "{error}");
}

#[test]
fn other_protocols_are_recognized() {
    let looks = |start: &[u8]| {
        let mut bytes = [0x5a; 64];
        bytes[..start.len()].copy_from_slice(start);
        Header::decode(&bytes).unwrap_err().to_string()
    };
    assert!(looks(b"GET / HTTP/1.1\r\n").contains("not a keepup client: these bytes look like HTTP"));
    assert!(looks(&[0x16, 3, 1, 2, 0]).contains("TLS"));
    assert!(looks(b"SSH-2.0-OpenSSH").contains("SSH"));
    assert!(looks(b"\0\0\0\0").contains("not a keepup client"));
}

proptest! {
    #[test]
    fn headers_round_trip(header in header()) {
        prop_assert_eq!(Header::decode(&header.encode()), Ok(header));
    }

    #[test]
    fn any_flipped_bit_is_refused(header in header(), bit in 0usize..512) {
        let mut bytes = header.encode();
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(Header::decode(&bytes).is_err());
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 64)) {
        let mut all = [0u8; 64];
        all.copy_from_slice(&bytes);
        prop_assert!(Header::decode(&all).is_err());
    }
}
