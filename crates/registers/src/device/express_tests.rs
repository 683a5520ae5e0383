//! Capabilities are found where they are, and nothing else is taken for one.
use proptest::prelude::*;

use super::*;

/// A space with power management at 0x40 and PCI Express at 0x60.
fn space() -> Vec<u8> {
    let mut space = vec![0; 256];
    space[STATUS] = 0x10;
    space[LIST] = 0x40;
    space[0x40..0x42].copy_from_slice(&[0x01, 0x60]);
    space[0x60..0x62].copy_from_slice(&[EXPRESS, 0]);
    // Payloads of 256 bytes, requests of 512, L1.
    space[0x68..0x6a].copy_from_slice(&(2_u16 << 12 | 1 << 5).to_le_bytes());
    space[0x70..0x72].copy_from_slice(&2_u16.to_le_bytes());
    space
}

#[test]
fn what_is_set_is_read() {
    let expected = Express { payload_bytes_max: 256, read_request_bytes_max: 512, link_states: "L1" };
    assert_eq!(Express::of(&space()), Some(expected));
    // As without root, and as of a function of old PCI.
    assert_eq!(Express::of(&space()[..64]), None);
    let mut plain = space();
    plain[STATUS] = 0;
    assert_eq!(Express::of(&plain), None);
    // A list that leads back to itself.
    let mut round = space();
    round[0x41] = 0x40;
    assert_eq!(Express::of(&round), None);
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_harm(space in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Express::of(&space);
    }
}
