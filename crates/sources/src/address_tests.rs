//! Texts of addresses.
use super::*;

#[test]
fn a_host_and_a_port() {
    let address: SourceAddress = "zmq://127.0.0.1:9000".parse().unwrap();
    assert_eq!(address.to_string(), "zmq://127.0.0.1:9000");
    let address: SourceAddress = "zmq://[::1]".parse().unwrap();
    assert_eq!(address.to_string(), "zmq://[::1]:31001");
}

#[test]
fn what_is_not_an_address() {
    let refused = |text: &str| {
        let error = text.parse::<SourceAddress>().unwrap_err();
        (error.to_string(), error.hint().unwrap().into_owned())
    };
    let (what, hint) = refused("eiger1:31001");
    assert!(what.contains("zmq://") && hint.contains("zmq://eiger1:31001"), "{what} {hint}");
    assert!(refused("zmq://a/b").0.contains("not HOST:PORT"));
    assert!(refused("zmq://no-such-host.invalid").0.contains("cannot resolve"));
}
