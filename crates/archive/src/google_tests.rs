//! Checksums are sent with uploads and taken from answers.
use bytes::Bytes;
use object_store::PutPayload;

use super::*;

/// Check value of CRC-32C (Castagnoli): that of "123456789".
const OF_DIGITS: Crc32c = Crc32c(0xe306_9283);

#[test]
fn a_body_in_pieces_has_the_checksum_of_the_whole() {
    let payload: PutPayload =
        [Bytes::from_static(b"1234"), Bytes::new(), Bytes::from_static(b"56789")].into_iter().collect();
    assert_eq!(crc32c_of(&payload.into()), Some(OF_DIGITS));
    assert_eq!(crc32c_of(&Bytes::from_static(b"123456789").into()), Some(OF_DIGITS));
    assert_eq!(crc32c_of(&HttpRequestBody::empty()), Some(Crc32c(0)));
    assert_eq!(header_value(OF_DIGITS).unwrap(), "crc32c=4waSgw==");
}

#[test]
fn the_checksum_of_an_answer_is_found_in_every_form() {
    let of = |values: &[&'static str]| {
        let mut headers = HeaderMap::new();
        values.iter().for_each(|value| {
            headers.append(HASH_HEADER, HeaderValue::from_static(value));
        });
        returned(&headers)
    };
    let md5 = "md5=1B2M2Y8AsgTpgAmY7PhCfg==";
    for values in [&["crc32c=4waSgw=="][..], &[md5, "crc32c=4waSgw=="], &["md5=x, crc32c=4waSgw=="]] {
        assert_eq!(of(values), Some(OF_DIGITS), "{values:?}");
    }
    for values in [&[][..], &[md5], &["crc32c="], &["crc32c=4waSgw==AA"], &["crc32c=AAAAAAAAAAA="]] {
        assert_eq!(of(values), None, "{values:?}");
    }
}
