//! Whole, padded, joined and cut gzip files.
use std::io::Write as _;

use super::*;

fn packed(text: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text).unwrap();
    packed.finish().unwrap()
}

fn unpacked(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    GzipReader::new(bytes).read_to_end(&mut text).map(|_| text)
}

#[test]
fn members_follow_one_another_and_zeros_are_padding() {
    let (one, two) = (packed(b"one"), packed(b"two"));
    assert_eq!(unpacked(&one).unwrap(), b"one");
    assert_eq!(unpacked(&[&one[..], &two].concat()).unwrap(), b"onetwo");
    for zeros in [1, 511, 100_000] {
        let padded = [&one[..], &vec![0; zeros]].concat();
        assert_eq!(unpacked(&padded).unwrap(), b"one", "{zeros}");
        assert_eq!(unpacked(&[&padded[..], &two].concat()).unwrap(), b"onetwo", "{zeros}");
    }
}

#[test]
fn a_cut_file_and_other_data_are_errors() {
    let one = packed(b"some text that is long enough");
    for length in 1..one.len() {
        let error = unpacked(&one[..length]).unwrap_err();
        assert!(error.to_string().contains("truncated"), "{length}: {error}");
    }
    let error = unpacked(&[&one[..], b"\0\0rest"].concat()).unwrap_err();
    assert!(error.to_string().contains("other data"), "{error}");
}
