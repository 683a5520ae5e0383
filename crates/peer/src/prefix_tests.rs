//! Which addresses a prefix contains.
use keepup_error::Cause;

use super::*;

fn contains(prefix: &str, ip: &str) -> bool {
    prefix.parse::<Prefix>().unwrap().contains(ip.parse().unwrap())
}

#[test]
fn a_prefix_contains_addresses_with_its_first_bits() {
    for (prefix, inside, outside) in [
        ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
        ("10.1.2.3/8", "10.0.0.1", "9.255.255.255"),
        ("192.168.1.2", "192.168.1.2", "192.168.1.3"),
        ("192.168.1.2/31", "192.168.1.3", "192.168.1.4"),
        ("fd00::/8", "fdff::1", "fe00::1"),
        ("::1", "::1", "::2"),
        ("10.0.0.0/8", "::ffff:10.0.0.1", "::ffff:11.0.0.1"),
        ("0.0.0.0/0", "255.255.255.255", "::1"),
        ("::/0", "::1", "127.0.0.1"),
    ] {
        assert!(contains(prefix, inside) && !contains(prefix, outside), "{prefix}");
    }
    assert_eq!("10.0.0.7".parse::<Prefix>().unwrap().to_string(), "10.0.0.7/32");
}

#[test]
fn an_invalid_prefix_is_refused() {
    for bad in
        ["", "10", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "::/129", "host/8", "[::1]"]
    {
        let why = Cause::of(&bad.parse::<Prefix>().unwrap_err()).to_text();
        assert!(why.contains("hint: such as 10.0.0.0/8"), "{bad}: {why}");
    }
}
