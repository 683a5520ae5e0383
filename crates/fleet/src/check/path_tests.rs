//! Paths over the loopback interface of this machine.
use std::net::TcpListener;
use std::time::Duration;

use keepup_measure::clock::SystemClock;
use keepup_peer::Token;

use super::*;
use crate::agent_loop::reports_for_test;
use crate::check::listener::Listener;
use crate::part::{LatestPart, PartControl};

fn key(text: &str) -> PathKey {
    PathKey::new(&Token::new(text).unwrap())
}

/// A source at a free port, and its part.
fn source(key: PathKey) -> (SourceAddress, LatestPart) {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let listener = Listener::bind(&free.to_string(), key).unwrap();
    let serve = move |_: &(), control: &PartControl| {
        listener.serve(control, &SystemClock);
        Ok(String::new())
    };
    let mut part = LatestPart::default();
    part.prepare((1, "null"), &reports_for_test().0, serve);
    (SourceAddress { name: "cam".to_owned(), address: free.to_string() }, part)
}

#[test]
fn the_largest_packet_of_loopback_passes() {
    let (at, part) = source(key("the-token-of-this-fleet"));
    let path = measure(&at, &key("the-token-of-this-fleet"), &SystemClock);
    part.finish(1, false, &reports_for_test().0);
    assert_eq!((path.failure, path.interface.as_deref()), (None, Some("lo")));
    assert_eq!(path.mtu, path.source_mtu);
    let largest = path.mtu.map(|mtu| mtu.min(SIZE_MAX));
    assert_eq!((path.to_source_bytes, path.from_source_bytes), (largest, largest));
}

#[test]
fn a_program_without_the_token_gets_no_answer() {
    let (at, part) = source(key("the-token-of-this-fleet"));
    let path = measure(&at, &key("the-token-of-another-one"), &SystemClock);
    part.finish(1, false, &reports_for_test().0);
    assert_eq!((path.failure, path.source_mtu, path.from_source_bytes), (None, None, None));
    assert!(path.mtu.is_some());
}

#[test]
fn noise_disturbs_nobody() {
    let (at, part) = source(key("the-token-of-this-fleet"));
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    for length in [0, 1, 55, 56, 2_000, 60_000] {
        stranger.send_to(&vec![b'K'; length], &at.address).unwrap();
    }
    let path = measure(&at, &key("the-token-of-this-fleet"), &SystemClock);
    part.finish(1, false, &reports_for_test().0);
    assert!(path.from_source_bytes.is_some(), "{path:?}");
    stranger.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    assert!(stranger.recv_from(&mut [0; 64]).is_err());
}

#[test]
fn a_closed_port_and_an_unknown_name_are_failures() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (address, why) in [(free.to_string(), "refused"), ("no host at all".to_owned(), "not HOST:PORT")] {
        let at = SourceAddress { name: "cam".to_owned(), address };
        let path = measure(&at, &key("the-token-of-this-fleet"), &SystemClock);
        assert!(path.failure.as_ref().is_some_and(|found| found.contains(why)), "{path:?}");
    }
}
