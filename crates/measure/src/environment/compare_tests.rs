//! Hash test vectors, and the classification of lasting items.

use super::*;

#[test]
fn the_hash_is_the_published_one() {
    let vectors =
        [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)];
    for (text, hash) in vectors {
        assert_eq!(fnv1a(text.as_bytes()), hash, "{text}");
    }
}

#[test]
fn only_the_moment_and_the_room_and_place_on_a_volume_do_not_last() {
    for item in ["moment.load_average[0]", "volumes[0].free", "volumes[1].free.bytes", "volumes[0].path"] {
        assert!(!lasts(item), "{item}");
    }
    for item in ["cpu.model", "volumes[0].device", "network.interfaces.free.mtu", "tool.version"] {
        assert!(lasts(item), "{item}");
    }
}
