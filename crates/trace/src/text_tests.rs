//! Parsing of lines and numbers.
use proptest::prelude::*;

use super::*;

#[test]
fn decimals_are_converted_to_ns() {
    let read = |text: &str, places| decimal(text.as_bytes(), places);
    assert_eq!(read("0.000000001", 9), Some(1));
    assert_eq!(read("12.5", 9), Some(12_500_000_000));
    assert_eq!(read("-0.25", 3), Some(-250));
    assert_eq!(read("+7", 0), Some(7));
    // Digits below 1 ns are truncated, never rounded.
    assert_eq!(read("0.9999999999", 9), Some(999_999_999));
    assert_eq!(read(".5", 1), Some(5));
    for wrong in ["", ".", "-", "1e3", "1.2.3", "0x1", " 1", "9223372036854775808", "1.5s", "--1"] {
        assert_eq!(read(wrong, 9), None, "{wrong:?}");
    }
    assert_eq!(read("9223372037", 9), None);
}

#[test]
fn integers_have_up_to_64_bits() {
    assert_eq!(whole(b"18446744073709551615"), Some(u64::MAX));
    for wrong in [&b""[..], b"18446744073709551616", b"-1", b"1 ", b"1.0", b"\xff"] {
        assert_eq!(whole(wrong), None, "{wrong:?}");
    }
}

#[test]
fn fields_beyond_the_requested_ones_are_counted() {
    assert_eq!(separated::<3>(b"a, b ,c", b','), ([&b"a"[..], b"b", b"c"], 3));
    assert_eq!(separated::<2>(b"a,,c,d", b','), ([&b"a"[..], b""], 4));
    assert_eq!(separated::<1>(b"", b','), ([&b""[..]], 1));
    assert_eq!(words::<2>(b"  one\ttwo  three "), ([&b"one"[..], b"two"], 3));
    assert_eq!(words::<2>(b" \t"), ([&b""[..], b""], 0));
}

/// Reads `text` in pieces of `step` bytes.
fn lines(text: &[u8], step: usize) -> Result<(Vec<Vec<u8>>, bool), ReadError> {
    struct Steps<'a>(&'a [u8], usize);
    impl Read for Steps<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let count = self.1.min(self.0.len()).min(buffer.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }
    let mut lines = Lines::new(Steps(text, step));
    let mut all = Vec::new();
    while let Some(line) = lines.next()? {
        all.push(line.to_vec());
        assert_eq!(lines.number, all.len() as u64);
    }
    Ok((all, lines.is_unfinished))
}

#[test]
fn an_endless_line_is_refused_without_storing_it() {
    let Err(ReadError::Invalid { position, error, .. }) = lines(&vec![b'x'; 2 * LINE_BYTES_MAX], 4096) else {
        panic!("a line of 128 KiB was taken");
    };
    assert_eq!(position, FilePosition::Line(1));
    assert!(error.what.contains("longer than 65536 bytes"), "{error:?}");
}

#[test]
fn a_carriage_return_before_the_line_feed_is_removed() {
    let (all, is_unfinished) = lines(b"a\r\n\r\nb", 1).unwrap();
    assert_eq!((all, is_unfinished), (vec![b"a".to_vec(), Vec::new(), b"b".to_vec()], true));
}

proptest! {
    #[test]
    fn lines_do_not_depend_on_the_read_size(text in "[a-z\n]{0,200}", step in 1usize..50) {
        let mut expected: Vec<Vec<u8>> = text.split('\n').map(|line| line.as_bytes().to_vec()).collect();
        let last = expected.pop().unwrap();
        let is_unfinished = !last.is_empty();
        expected.extend(is_unfinished.then_some(last));
        prop_assert_eq!(lines(text.as_bytes(), step).unwrap(), (expected, is_unfinished));
    }

    #[test]
    fn decimal_ns_round_trip(ns in 0i64..i64::MAX) {
        let text = format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        prop_assert_eq!(decimal(text.as_bytes(), 9), Some(ns));
        let negative = format!("-{text}");
        prop_assert_eq!(decimal(negative.as_bytes(), 9), Some(-ns));
    }
}
