//! Interfaces that exist on every machine, and an interface that does not exist.

use super::*;

#[test]
fn the_loopback_has_offloads_and_no_rings() {
    let card = Card::open("lo").unwrap();
    assert!(card.gro().is_ok() && card.gso().is_ok() && card.lro().is_ok(), "{card:?}");
    let refused = card.ring().unwrap_err();
    assert!(refused.raw_os_error().is_some() && refused.to_string().contains("ring"), "{refused}");
}

#[test]
fn a_missing_interface_is_an_error() {
    let missing = Card::open("no-such-card0").unwrap();
    assert_eq!(missing.gro().unwrap_err().raw_os_error(), Some(libc::ENODEV));
}

#[test]
fn invalid_names_are_refused() {
    for name in ["", "sixteen-letters0", "nul\0"] {
        assert!(matches!(Card::open(name), Err(SysError::Invalid { .. })), "{name:?}");
    }
    assert!(Card::open("fifteen-letters").is_ok());
}
