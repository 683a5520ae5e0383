//! Places and values of packet counters.
use super::*;

#[test]
fn places_of_a_counter() {
    let counter = |offset, bytes, is_little_endian| {
        Some(Counter { offset, bytes, is_half_byte: false, is_little_endian, step: 1 })
    };
    assert_eq!(Counter::parse("u64be@0"), counter(0, 8, false));
    assert_eq!(Counter::parse("u48be@2"), counter(2, 6, false));
    assert_eq!(Counter::parse("u32le"), counter(0, 4, true));
    assert_eq!(Counter::parse("u8@1"), counter(1, 1, false));
    let half = counter(1, 1, false).map(|byte| Counter { is_half_byte: true, ..byte });
    assert_eq!(Counter::parse("u4@1"), half);
    for text in [
        "",
        "u",
        "64be",
        "u64",
        "u4be",
        "u12be",
        "u72be",
        "u0be",
        "u64xe",
        "u64be@",
        "u64be@-1",
        "u64be@9999",
        "uä",
    ] {
        assert_eq!(Counter::parse(text), None, "{text}");
    }
}

#[test]
fn numbers_of_packets() {
    let packet = [0, 0, 1, 2, 3, 4, 5, 6];
    let read = |text: &str, skip| Counter::parse(text).unwrap().read(&packet, skip);
    assert_eq!(read("u16be@2", 0), Ok(0x0102));
    assert_eq!(read("u24le@2", 0), Ok(0x03_0201));
    let half = Counter::parse("u4@1").unwrap();
    assert_eq!((half.read(&[0, 0xA7], 0), half.mask(), half.bits()), (Ok(7), 15, 4));
    assert_eq!(read("u48be@2", 7), Ok(0x0102_0304_0506));
    assert_eq!(read("u64be@1", 0), Err("8 bytes, at least 9 expected".to_owned()));
    assert_eq!(read("u16be", 8), Err("8 bytes, at least 9 expected".to_owned()));
    assert_eq!(Counter::parse("u24be").unwrap().mask(), 0xFF_FFFF);
    assert_eq!(Counter::parse("u64be").unwrap().mask(), u64::MAX);
}
