//! Interfaces of this machine.
use super::*;

#[test]
fn the_loopback_interface_has_its_address() {
    assert_eq!(interface_of(Ipv4Addr::LOCALHOST.into()).unwrap().as_deref(), Some("lo"));
}

#[test]
fn an_address_of_documentation_belongs_to_no_interface() {
    assert_eq!(interface_of(IpAddr::from([192, 0, 2, 77])).unwrap(), None);
    assert_eq!(interface_of("2001:db8::77".parse().unwrap()).unwrap(), None);
}
