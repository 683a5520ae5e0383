//! Endpoints are parsed and resolved; addresses are tried in order.
use std::net::{TcpListener, TcpStream};

use keepup_error::Cause;

use super::*;

fn text(endpoint: &Result<Endpoint, EndpointError>) -> String {
    match endpoint {
        Ok(endpoint) => endpoint.to_string(),
        Err(why) => Cause::of(why).to_text(),
    }
}

#[test]
fn addresses_and_names_with_and_without_a_port() {
    for (written, read) in [
        ("127.0.0.1:80", "127.0.0.1:80"),
        ("127.0.0.1", "127.0.0.1:7613"),
        ("::1", "[::1]:7613"),
        ("[::1]", "[::1]:7613"),
        ("[::1]:80", "[::1]:80"),
        ("localhost", "localhost:7613"),
        ("localhost:80", "localhost:80"),
    ] {
        let endpoint = Endpoint::with_default_port(written, 7613);
        assert_eq!(text(&endpoint), read);
        let endpoint = endpoint.unwrap();
        assert!(endpoint.addresses().all(|address| address.ip().is_loopback()) && endpoint.is_loopback());
        assert!(endpoint.addresses().all(|address| address.port() == endpoint.address().port()));
    }
    assert_eq!(text(&"localhost:80".parse()), "localhost:80");
}

#[test]
fn an_invalid_endpoint_is_refused_with_an_example() {
    for bad in [
        "",
        ":80",
        "localhost",
        "127.0.0.1",
        "::1",
        "[::1]",
        "[::1",
        "[::1]80",
        "a:b:80",
        "host:",
        "host:+80",
        "host:65536",
        "ho st:80",
        "http://host:80",
        "user@host:80",
        "[]:80",
    ] {
        let found = bad.parse::<Endpoint>();
        assert!(matches!(found, Err(EndpointError::Syntax { .. })), "{bad:?}: {found:?}");
        assert!(
            text(&found).ends_with("not HOST:PORT\nhint: such as daq1:7611, 192.168.1.2:7611 or [::1]:7611")
        );
    }
    let unknown = "keepup.invalid:7611".parse::<Endpoint>();
    assert!(text(&unknown).starts_with("cannot resolve keepup.invalid: "), "{unknown:?}");
    assert!(text(&unknown).contains("\nhint: "), "{unknown:?}");
}

#[test]
fn loopback_means_every_address() {
    let endpoint = |addresses: &[&str]| {
        let mut addresses = addresses.iter().map(|address| address.parse::<SocketAddr>().unwrap());
        Endpoint { host: "a".into(), first: addresses.next().unwrap(), others: addresses.collect() }
    };
    assert!(endpoint(&["127.0.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1"]).is_loopback());
    for outside in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[::ffff:10.0.0.1]:1"] {
        assert!(!endpoint(&["127.0.0.1:1", outside]).is_loopback(), "{outside}");
        assert!(!endpoint(&[outside, "127.0.0.1:1"]).is_loopback(), "{outside}");
    }
}

#[test]
fn every_address_is_tried_in_order() {
    let (first, second) =
        (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let (gone, alive) = (first.local_addr().unwrap(), second.local_addr().unwrap());
    drop(first);
    for (addresses, tried) in [([gone, alive], 2), ([alive, gone], 1)] {
        let endpoint = Endpoint { host: "a".into(), first: addresses[0], others: vec![addresses[1]] };
        let mut count = 0;
        let stream = endpoint.try_each(|address| {
            count += 1;
            TcpStream::connect(address)
        });
        assert_eq!((stream.unwrap().peer_addr().unwrap(), count), (alive, tried));
    }
    // The port of `alive` is in use, so the first free address is bound.
    let endpoint = Endpoint { host: "a".into(), first: alive, others: vec![gone] };
    assert_eq!(TcpListener::bind(&endpoint).unwrap().local_addr().unwrap(), gone);
    let failed = endpoint.try_each(Err::<(), _>);
    assert_eq!(failed, Err(gone), "the last address's error");
}
