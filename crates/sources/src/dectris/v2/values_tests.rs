//! Values as encoders write them. The bytes are those of RFC 8949, appendix A.
use super::*;

fn read<'a, T>(bytes: &'a [u8], read: fn(&mut Decoder<'a>) -> Result<T, Error>) -> Option<T> {
    let mut decoder = Decoder::new(bytes);
    let value = read(&mut decoder).ok();
    assert!(value.is_none() || decoder.position() == bytes.len(), "{bytes:x?}");
    value
}

#[test]
fn numbers_of_every_width() {
    let numbers: [(&[u8], u64); 8] = [
        (&[0x17], 23),
        (&[0x18, 0x64], 100),
        (&[0x19, 0x03, 0xE8], 1000),
        (&[0x1A, 0x00, 0x0F, 0x42, 0x40], 1_000_000),
        (&[0x1B, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], u64::MAX),
        (&[0xF9, 0x3C, 0x00], 1),
        (&[0xFA, 0x47, 0xC3, 0x50, 0x00], 100_000),
        (&[0xD9, 0xD9, 0xF7, 0x18, 0x64], 100),
    ];
    for (bytes, value) in numbers {
        assert_eq!(read(bytes, number), Some(value), "{bytes:x?}");
    }
    for bytes in [&[0x20][..], &[0xF9, 0x3E, 0x00], &[0x19, 0x03], &[0xF6], &[0xF9, 0x3C]] {
        assert_eq!(read(bytes, number), None, "{bytes:x?}");
    }
}

#[test]
fn floats_of_every_width() {
    let floats: [(&[u8], f64); 10] = [
        (&[0xF9, 0x00, 0x01], 5.960_464_477_539_063e-8),
        (&[0xF9, 0x04, 0x00], 6.103_515_625e-5),
        (&[0xF9, 0x7B, 0xFF], 65504.0),
        (&[0xF9, 0xC4, 0x00], -4.0),
        (&[0xF9, 0x7C, 0x00], f64::INFINITY),
        (&[0xF9, 0xFC, 0x00], f64::NEG_INFINITY),
        (&[0xFA, 0x7F, 0x7F, 0xFF, 0xFF], 3.402_823_466_385_288_6e38),
        (&[0xFB, 0x3F, 0xF1, 0x99, 0x99, 0x99, 0x99, 0x99, 0x9A], 1.1),
        (&[0x29], -10.0),
        (&[0x0A], 10.0),
    ];
    for (bytes, value) in floats {
        assert_eq!(read(bytes, float), Some(value), "{bytes:x?}");
    }
    assert!(read(&[0xF9, 0x7E, 0x00], float).is_some_and(f64::is_nan));
}

#[test]
fn texts_and_bytes_in_pieces() {
    // "strea" and "ming".
    let pieces = b"\x7f\x65strea\x64ming\xff";
    assert_eq!(read(pieces, text).as_deref(), Some("streaming"));
    assert_eq!(read(b"\x66IETF\xc3\xbc", text).as_deref(), Some("IETF\u{fc}"));
    assert_eq!(read(b"\x62\xc3", text), None);
    assert_eq!(read(&[0x43, 1, 2, 3], bytes), Some(&[1, 2, 3][..]));
    assert_eq!(read(&[0x5F, 0x42, 1, 2, 0x40, 0xFF], bytes), Some(&[1, 2][..]));
    assert_eq!(read(&[0x5F, 0x42, 1, 2, 0x41, 3, 0xFF], bytes), None);
    let long = [&[0x7F][..], &[b"\x78\xff", &[b'x'; 255][..]].concat().repeat(300), &[0xFF]].concat();
    assert_eq!(read(&long, text), None);
}

#[test]
fn dates_are_texts_or_seconds() {
    let ns = 1_363_896_240_000_000_000;
    assert_eq!(read(b"\xc0\x742013-03-21T20:04:00Z", date_ns), Some(Some(ns)));
    assert_eq!(read(b"\x78\x192013-03-21T22:04:00+02:00", date_ns), Some(Some(ns)));
    assert_eq!(read(&[0xC1, 0x1A, 0x51, 0x4B, 0x67, 0xB0], date_ns), Some(Some(ns)));
    let half_a_second = [0xC1, 0xFB, 0x41, 0xD4, 0x52, 0xD9, 0xEC, 0x20, 0x00, 0x00];
    assert_eq!(read(&half_a_second, date_ns), Some(Some(ns + 500_000_000)));
    assert_eq!((read(b"\x65today", date_ns), read(&[0xC1, 0x20], date_ns)), (Some(None), Some(None)));
    // 2^64 ns is in the year 2554: 1.8e10 s is before, 1.9e10 s after.
    let seconds = |seconds: f64| read(&[&[0xC1, 0xFB], &seconds.to_be_bytes()[..]].concat(), date_ns);
    assert_eq!(seconds(1.8e10), Some(Some(18_000_000_000_000_000_000)));
    for beyond in [1.9e10, -1.0, f64::INFINITY, f64::NAN] {
        assert_eq!(seconds(beyond), Some(None), "{beyond}");
    }
    assert_eq!(read(b"\xc0\x742600-01-01T00:00:00Z", date_ns), Some(None));
    assert_eq!(read(b"\xc0\x741969-12-31T23:59:59Z", date_ns), Some(None));
    assert_eq!(read(&[0xF6], date_ns), None);
}

#[test]
fn times_are_ratios() {
    let ratios: [(&[u8], Option<u64>); 7] = [
        (&[0x82, 3, 2], Some(1_500_000_000)),
        (&[0x9F, 3, 2, 0xFF], Some(1_500_000_000)),
        (&[0xD8, 0x1E, 0x82, 3, 2], Some(1_500_000_000)),
        (&[0x82, 3, 0], None),
        (&[0x83, 3, 2, 1], None),
        (&[0x9F, 3, 2, 1, 0xFF], None),
        (&[0xC0, 0x82, 3, 2], None),
    ];
    for (bytes, ns) in ratios {
        assert_eq!(read(bytes, rational_ns), ns, "{bytes:x?}");
    }
    let huge = [&[0x82][..], &[0x1B; 1], &[0xFF; 8], &[1]].concat();
    assert_eq!(read(&huge, rational_ns), Some(u64::MAX));
}

#[test]
fn what_cannot_be_read_is_skipped_whole() {
    let mut decoder = Decoder::new(&[0x83, 1, 0x82, 2, 3, 4, 0x05]);
    assert_eq!(lenient(&mut decoder, rational_ns).unwrap(), None);
    assert_eq!(number(&mut decoder).unwrap(), 5);
}
