//! Sessions and messages over TCP on loopback.
use super::*;
use crate::link::tests::{heartbeat, order};
use crate::message::{Goal, HostState};

/// A free port. Another program may take it before the test does; none here uses ports of this range.
fn free() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn secret() -> Secret {
    Secret::new("secret of the zenoh tests")
}

fn listen(hosts: HostId) -> (ZenohController, SocketAddr) {
    let address = free();
    (ZenohController::listen(address, &secret(), hosts).unwrap(), address)
}

fn connect(address: SocketAddr, host: HostId) -> ZenohAgent {
    ZenohAgent::connect(address, host, 7, &secret().token(host).unwrap()).unwrap()
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn messages_pass_in_both_directions_and_are_counted() {
    let (mut lead, address) = listen(3);
    let mut hosts: Vec<ZenohAgent> = (0..3).map(|host| connect(address, host)).collect();
    crate::link::tests::exchange(&mut lead, &mut hosts);
}

#[test]
fn a_host_that_goes_is_noticed() {
    let (mut lead, address) = listen(2);
    let (stays, goes) = (connect(address, 0), connect(address, 1));
    drop(goes);
    assert_eq!(lead.receive(LONG), Some(FromHost::Closed { host: 1, incarnation: 7 }));
    drop(stays);
    assert_eq!(lead.receive(LONG), Some(FromHost::Closed { host: 0, incarnation: 7 }));
}

#[test]
fn a_controller_that_goes_is_noticed() {
    let (lead, address) = listen(1);
    let mut host = connect(address, 0);
    drop(lead);
    assert_eq!(host.receive(LONG), Some(FromController::Closed));
}

#[test]
fn a_host_connects_again_to_a_controller_that_is_back() {
    let (lead, address) = listen(1);
    let mut host = connect(address, 0);
    drop(lead);
    assert_eq!(host.receive(LONG), Some(FromController::Closed));
    let mut lead = ZenohController::listen(address, &secret(), 1).unwrap();
    let found = (0..600).find_map(|number| {
        host.send(&heartbeat(0, number));
        lead.receive(Duration::from_millis(100))
    });
    assert!(matches!(found, Some(FromHost::Heartbeat(_))), "{found:?}");
}

#[test]
fn a_wrong_token_opens_no_session() {
    let (mut lead, address) = listen(2);
    let other = Secret::new("another session").token(0).unwrap();
    let error = ZenohAgent::connect(address, 0, 1, &other).err().unwrap();
    assert_eq!(error.to_string(), format!("cannot join the fleet of {address}: it refused the session"));
    // Nor that of another host.
    assert!(ZenohAgent::connect(address, 0, 1, &secret().token(1).unwrap()).is_err());
    assert!(ZenohAgent::connect(address, 2, 1, &secret().token(2).unwrap()).is_err(), "no such host");
    connect(address, 0).send(&heartbeat(0, 1));
    assert!(matches!(lead.receive(LONG), Some(FromHost::Heartbeat(_) | FromHost::Closed { .. })));
}

#[test]
fn a_controller_that_is_not_there_is_reported() {
    let address = free();
    let error = ZenohAgent::connect(address, 0, 1, &secret().token(0).unwrap()).err().unwrap();
    let cause = "Connection refused (os error 111)";
    assert_eq!(error.to_string(), format!("cannot join the fleet of {address}: {cause}"));
}

#[test]
fn a_session_without_password_is_refused() {
    let (_lead, address) = listen(1);
    let mut config = ::zenoh::Config::default();
    for (key, value) in [
        ("mode", "\"client\"".to_owned()),
        ("scouting/multicast/enabled", "false".to_owned()),
        ("connect/endpoints", format!("[\"tcp/{address}\"]")),
    ] {
        config.insert_json5(key, &value).unwrap();
    }
    assert!(::zenoh::open(config).wait().is_err());
}

#[test]
fn garbage_and_lies_of_a_host_are_refused() {
    let (mut lead, address) = listen(2);
    let host = connect(address, 0);
    let mut expect = |key: &str,
                      bytes: Vec<u8>,
                      expected: Option<HostId>,
                      why: &dyn Fn(&super::super::Refusal) -> bool| {
        put(host.session.get(), key.to_owned(), bytes);
        match lead.receive(LONG) {
            Some(FromHost::Refused { host, why: refusal }) => {
                assert_eq!(host, expected);
                assert!(why(&refusal), "{refusal}");
            }
            other => panic!("{other:?}"),
        }
    };
    use super::super::Refusal;
    expect("keepup/0/heartbeat", b"garbage".to_vec(), Some(0), &|why| *why == Refusal::Foreign);
    expect("keepup/17/heartbeat", host.end.seal(&heartbeat(0, 1)).unwrap(), None, &|why| {
        *why == Refusal::UnknownHost
    });
    expect("keepup/x/heartbeat", vec![], None, &|why| *why == Refusal::UnknownHost);
    // In the name of another host, with the own token.
    expect("keepup/1/heartbeat", host.end.seal(&heartbeat(1, 1)).unwrap(), Some(1), &|why| {
        *why == Refusal::Token
    });
    expect("keepup/0/heartbeat", host.end.seal(&heartbeat(1, 1)).unwrap(), Some(0), &|why| {
        *why == Refusal::OtherHost(1)
    });
    drop(host);
}

#[test]
fn the_longest_messages_pass() {
    let (mut lead, address) = listen(1);
    let mut host = connect(address, 0);
    let why = "x".repeat(super::super::HEARTBEAT_BYTES_MAX - 1_000);
    let long = Heartbeat { state: HostState::Failed { run: 1, why }, ..heartbeat(0, 1) };
    host.send(&long);
    // Not `assert_eq`, which would print them.
    assert!(lead.receive(LONG) == Some(FromHost::Heartbeat(Box::new(long))));
    let why = "x".repeat(super::super::ORDER_BYTES_MAX - 1_000);
    let long = Order { goal: Goal::Leave { why }, ..order(0, 1) };
    lead.send(&long);
    assert!(host.receive(LONG) == Some(FromController::Order(Box::new(long))));
}

#[test]
fn a_host_that_does_not_read_delays_no_other() {
    let (mut lead, address) = listen(2);
    let stuck = std::net::TcpStream::connect(address).unwrap();
    let mut other = connect(address, 1);
    for number in 0..2_000 {
        lead.send(&order(0, number));
    }
    lead.send(&order(1, 1));
    assert!(matches!(other.receive(LONG), Some(FromController::Order(_))));
    drop(stuck);
}

#[test]
fn an_address_in_use_is_reported() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let error = ZenohController::listen(address, &secret(), 1).err().unwrap();
    assert!(error.to_string().starts_with(&format!("cannot listen on {address} for hosts: ")), "{error}");
}
