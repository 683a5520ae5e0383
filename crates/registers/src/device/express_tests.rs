//! Parsing of the PCI Express capability.
use proptest::prelude::*;

use super::*;

/// A configuration space with power management at 0x40 and PCI Express at 0x60.
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
fn settings_of_a_function_are_read() {
    let expected = Express { payload_bytes_max: 256, read_request_bytes_max: 512, link_states: "L1" };
    assert_eq!(Express::parse(&space()), Some(expected));
    // Without root, and for a conventional PCI function.
    assert_eq!(Express::parse(&space()[..64]), None);
    let mut plain = space();
    plain[STATUS] = 0;
    assert_eq!(Express::parse(&plain), None);
    // A cyclic list.
    let mut round = space();
    round[0x41] = 0x40;
    assert_eq!(Express::parse(&round), None);
}

proptest! {
    #[test]
    fn no_bytes_make_the_parser_panic(space in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Express::parse(&space);
    }
}
