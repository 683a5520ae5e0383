//! Sizes, texts, bit sets and their limits.
use super::*;

fn reader(bytes: &[u8]) -> Reader<'_> {
    Reader::new(bytes, 0, false)
}

#[test]
fn sizes_have_one_or_five_bytes() {
    assert_eq!(reader(&[253]).size().unwrap(), Some(253));
    assert_eq!(reader(&[254, 1, 2, 0, 0]).size().unwrap(), Some(513));
    assert_eq!(reader(&[255]).size().unwrap(), None);
    assert!(reader(&[254, 255, 255, 255, 0x7F]).size().is_err());
    assert!(reader(&[255]).count().is_err());
}

#[test]
fn a_length_beyond_the_message_is_refused() {
    let error = reader(&[254, 255, 255, 255, 255, 0]).text().unwrap_err().to_string();
    assert!(error.contains("4294967295 elements of 1 bytes were announced, 1 bytes are left"), "{error}");
    assert!(reader(&[1, 2, 3]).range(usize::MAX, 8).is_err());
}

#[test]
fn bits_are_words_in_the_byte_order_of_the_message() {
    let mut bytes = vec![10];
    bytes.extend((1_u64 << 3 | 1 << 62).to_be_bytes());
    bytes.extend([0b10, 0b1]);
    let bits = Reader::new(&bytes, 0, true).bits().unwrap();
    let set: Vec<usize> = (0..200).filter(|bit| bits.has(*bit)).collect();
    assert_eq!(set, [3, 62, 65, 72]);
    bytes[1..9].reverse();
    let bits = reader(&bytes).bits().unwrap();
    assert_eq!((0..200).filter(|bit| bits.has(*bit)).collect::<Vec<_>>(), set);
    assert!(bits.has_any(60..64) && !bits.has_any(4..62) && !bits.is_empty());
}

#[test]
fn a_status_has_a_text_if_it_is_not_plain_success() {
    assert!(!reader(&[255]).status().unwrap().is_failure);
    assert!(!reader(&[1, 1, b'w', 0]).status().unwrap().is_failure);
    let status = reader(&[2, 3, b'n', b'\n', b'o', 1, b't']).status().unwrap();
    assert!(status.is_failure && status.text == "no");
}

#[test]
fn the_work_for_a_message_is_bounded() {
    let bytes = vec![0; 2 << 20];
    let mut reader = reader(&bytes);
    assert!((0..2 << 20).any(|_| reader.text().is_err()));
}
