//! Packets of a path: round trip, and packets of strangers.
use proptest::prelude::*;

use super::*;

fn key(text: &str) -> PathKey {
    PathKey::new(&Token::new(text).unwrap())
}

fn own() -> PathKey {
    key("the-token-of-this-fleet")
}

#[test]
fn packets_have_the_size_under_test() {
    for bytes in [PACKET_BYTES_MIN, 1_472, 8_972, PACKET_BYTES_MAX] {
        let request = Request { id: 7, answer_bytes: 1_472 };
        let packet = own().request(request, bytes);
        assert_eq!((packet.len(), own().read_request(&packet)), (bytes, Some(request)));
        let answer = Answer { id: u64::MAX, request_bytes: bytes, mtu: 9_000 };
        let packet = own().answer(answer, bytes);
        assert_eq!((packet.len(), own().read_answer(&packet)), (bytes, Some(answer)));
    }
    assert_eq!(own().request(Request { id: 0, answer_bytes: 0 }, usize::MAX).len(), PACKET_BYTES_MAX);
}

#[test]
fn packets_of_another_fleet_and_the_other_direction_are_ignored() {
    let request = own().request(Request { id: 1, answer_bytes: 9_000 }, 100);
    assert_eq!(key("the-token-of-another-fleet").read_request(&request), None);
    assert_eq!(own().read_answer(&request), None);
}

proptest! {
    #[test]
    fn a_changed_field_is_noticed(at in 0..PACKET_BYTES_MIN, bit in 0..8_u32) {
        let mut packet = own().request(Request { id: 5, answer_bytes: 576 }, 600);
        packet[at] ^= 1 << bit;
        prop_assert_eq!(own().read_request(&packet), None);
    }

    #[test]
    fn noise_is_no_packet(noise in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(own().read_request(&noise), None);
        prop_assert_eq!(own().read_answer(&noise), None);
    }
}
