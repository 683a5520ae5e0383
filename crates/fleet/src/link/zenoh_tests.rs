//! Sessions and messages over TCP on loopback.
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use keepup_error::Diagnostic as _;

use super::*;
use crate::link::tests::{heartbeat, order};
use crate::message::{Goal, HostState};

/// A free port. Another program may take it before the test does; none here uses ports of this range.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn secret() -> Secret {
    Secret::new("secret of the zenoh tests")
}

/// Controller and the address and certificates that its agents need.
struct Site {
    lead: ZenohController,
    address: SocketAddr,
    tls: Option<ControllerTls>,
}

impl Site {
    fn listen(hosts: HostId, tls: Option<ControllerTls>, address: SocketAddr) -> Self {
        let lead = ZenohController::listen(address, &secret(), hosts, tls.as_ref()).unwrap();
        Self { lead, address, tls }
    }

    /// With TLS.
    fn new(hosts: HostId) -> Self {
        let address = free();
        Self::listen(hosts, Some(certificates(address)), address)
    }

    fn agent(&self) -> Option<AgentTls> {
        self.tls.as_ref().map(ControllerTls::agent)
    }

    fn connect(&self, host: HostId) -> ZenohAgent {
        connect(self.address, host, self.agent().as_ref())
    }

    /// Why an agent cannot connect.
    fn refused(&self, tls: Option<&AgentTls>) -> String {
        let error = ZenohAgent::connect(self.address, 0, 1, &secret().token(0).unwrap(), tls).err().unwrap();
        assert!(error.hint().is_some(), "{error}");
        let text = error.to_string();
        let why = text.strip_prefix(&format!("cannot join the fleet of {}: ", self.address));
        why.unwrap().to_owned()
    }
}

fn certificates(address: SocketAddr) -> ControllerTls {
    ControllerTls::new(address).unwrap()
}

fn connect(address: SocketAddr, host: HostId, tls: Option<&AgentTls>) -> ZenohAgent {
    ZenohAgent::connect(address, host, 7, &secret().token(host).unwrap(), tls).unwrap()
}

const LONG: Duration = Duration::from_secs(60);

/// Whether a heartbeat arrives. A connection may be closed once more on a loaded machine, and is made again.
fn hears(lead: &mut ZenohController, host: &mut ZenohAgent) -> bool {
    (0..600).any(|number| {
        host.send(&heartbeat(0, number));
        matches!(lead.receive(Duration::from_millis(100)), Some(FromHost::Heartbeat(_)))
    })
}

#[test]
fn messages_pass_in_both_directions_and_are_counted() {
    for tls in [true, false] {
        let address = free();
        let mut site = Site::listen(3, tls.then(|| certificates(address)), address);
        let mut hosts: Vec<ZenohAgent> = (0..3).map(|host| site.connect(host)).collect();
        crate::link::tests::exchange(&mut site.lead, &mut hosts);
    }
}

#[test]
fn a_host_that_goes_is_noticed() {
    let mut site = Site::new(2);
    let (stays, goes) = (site.connect(0), site.connect(1));
    drop(goes);
    assert_eq!(site.lead.receive(LONG), Some(FromHost::Closed { host: 1, incarnation: 7 }));
    drop(stays);
    assert_eq!(site.lead.receive(LONG), Some(FromHost::Closed { host: 0, incarnation: 7 }));
}

#[test]
fn a_controller_that_goes_is_noticed() {
    let site = Site::new(1);
    let mut host = site.connect(0);
    drop(site.lead);
    assert_eq!(host.receive(LONG), Some(FromController::Closed));
}

#[test]
fn a_host_connects_again_to_a_controller_that_is_back() {
    let site = Site::new(1);
    let mut host = site.connect(0);
    drop(site.lead);
    assert_eq!(host.receive(LONG), Some(FromController::Closed));
    let mut site = Site::listen(1, site.tls, site.address);
    assert!(hears(&mut site.lead, &mut host));
}

#[test]
fn a_wrong_token_opens_no_session() {
    let mut site = Site::new(2);
    let tls = site.agent();
    let open = |host, token: &Token| ZenohAgent::connect(site.address, host, 1, token, tls.as_ref());
    let other = Secret::new("another session").token(0).unwrap();
    let error = open(0, &other).err().unwrap();
    let refused = format!("cannot join the fleet of {}: it refused the session", site.address);
    assert_eq!(error.to_string(), refused);
    // Nor that of another host.
    assert!(open(0, &secret().token(1).unwrap()).is_err());
    assert!(open(2, &secret().token(2).unwrap()).is_err(), "no such host");
    site.connect(0).send(&heartbeat(0, 1));
    assert!(matches!(site.lead.receive(LONG), Some(FromHost::Heartbeat(_) | FromHost::Closed { .. })));
}

#[test]
fn a_controller_that_is_not_there_is_reported() {
    let address = free();
    let tls = certificates(address).agent();
    let error = ZenohAgent::connect(address, 0, 1, &secret().token(0).unwrap(), Some(&tls)).err().unwrap();
    let cause = "Connection refused (os error 111)";
    assert_eq!(error.to_string(), format!("cannot join the fleet of {address}: {cause}"));
}

#[test]
fn a_session_without_password_is_refused() {
    let address = free();
    let _site = Site::listen(1, None, address);
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
    let mut site = Site::new(2);
    let host = site.connect(0);
    let mut expect = |key: &str,
                      bytes: Vec<u8>,
                      expected: Option<HostId>,
                      why: &dyn Fn(&super::super::Refusal) -> bool| {
        put(host.session.get(), key.to_owned(), bytes);
        match site.lead.receive(LONG) {
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
    let mut site = Site::new(1);
    let mut host = site.connect(0);
    let why = "x".repeat(super::super::HEARTBEAT_BYTES_MAX - 1_000);
    let long = Heartbeat { state: HostState::Failed { run: 1, why }, ..heartbeat(0, 1) };
    host.send(&long);
    // Not `assert_eq`, which would print them.
    assert!(site.lead.receive(LONG) == Some(FromHost::Heartbeat(Box::new(long))));
    let why = "x".repeat(super::super::ORDER_BYTES_MAX - 1_000);
    let long = Order { goal: Goal::Leave { why }, ..order(0, 1) };
    site.lead.send(&long);
    assert!(host.receive(LONG) == Some(FromController::Order(Box::new(long))));
}

/// Two threads must never use one TLS connection at the same time. Zenoh's own TLS breaks this rule:
/// in this test it crashed or lost its connections.
#[test]
fn messages_in_both_directions_at_once_pass() {
    const MESSAGES: u64 = 4_000;
    const PAUSE: Duration = Duration::from_micros(100);
    let mut site = Site::new(1);
    let mut host = site.connect(0);
    let is_over = AtomicBool::new(false);
    let (mut heard, mut wrong) = (0, None);
    let (last, wrong_at_host) = std::thread::scope(|scope| {
        let replies = scope.spawn(|| {
            let (mut last, mut wrong) = (0, None);
            for number in (1..).take_while(|_| !is_over.load(Ordering::Relaxed)) {
                host.send(&heartbeat(0, number));
                match host.receive(PAUSE) {
                    Some(FromController::Order(order)) => last = order.number,
                    None => {}
                    other => wrong = wrong.or(other),
                }
            }
            (last, wrong)
        });
        for number in 1..=MESSAGES {
            site.lead.send(&order(0, number));
            match site.lead.receive(PAUSE) {
                Some(FromHost::Heartbeat(_)) => heard += 1,
                None => {}
                other => wrong = wrong.take().or(other),
            }
        }
        is_over.store(true, Ordering::Relaxed);
        replies.join().unwrap()
    });
    assert_eq!((wrong, wrong_at_host), (None, None));
    assert!(heard > MESSAGES / 100 && last > MESSAGES / 100, "{heard} heartbeats, order {last}");
}

#[test]
fn a_host_that_does_not_read_delays_no_other() {
    let mut site = Site::new(2);
    let stuck = TcpStream::connect(site.address).unwrap();
    let mut other = site.connect(1);
    for number in 0..2_000 {
        site.lead.send(&order(0, number));
    }
    site.lead.send(&order(1, 1));
    assert!(matches!(other.receive(LONG), Some(FromController::Order(_))));
    drop(stuck);
}

#[test]
fn an_address_in_use_is_reported() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    for tls in [Some(&certificates(address)), None] {
        let error = ZenohController::listen(address, &secret(), 1, tls).err().unwrap();
        assert!(error.to_string().starts_with(&format!("cannot listen on {address} for hosts: ")), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("another program listens there")), "{error}");
    }
}

#[test]
fn only_the_user_of_the_controller_reaches_zenoh() {
    let address = free();
    let (endpoint, _listener) = with_tls(address, 1, &certificates(address)).unwrap();
    let socket = PathBuf::from(endpoint.strip_prefix("unixsock-stream/").unwrap());
    let directory = std::fs::metadata(socket.parent().unwrap()).unwrap();
    assert_eq!(directory.permissions().mode() & 0o777, 0o700);
}

/// Copies both directions of connections to `to`, and returns its own address and what passed.
fn relay(to: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, passed) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<u8>>>::default());
    let seen = Arc::clone(&passed);
    std::thread::spawn(move || {
        for near in listener.incoming().map_while(Result::ok) {
            let Ok(far) = TcpStream::connect(to) else { return };
            for (mut from, mut to) in [
                (near.try_clone().unwrap(), far.try_clone().unwrap()),
                (far.try_clone().unwrap(), near.try_clone().unwrap()),
            ] {
                let seen = Arc::clone(&seen);
                std::thread::spawn(move || {
                    let mut part = [0; 4096];
                    while let Ok(length @ 1..) = from.read(&mut part) {
                        seen.lock().unwrap().extend_from_slice(&part[..length]);
                        if to.write_all(&part[..length]).is_err() {
                            break;
                        }
                    }
                    let _ = to.shutdown(Shutdown::Both);
                });
            }
        }
    });
    (address, passed)
}

#[test]
fn messages_on_the_wire_can_be_read_only_without_tls() {
    let is_readable = |tls: bool| {
        let address = free();
        let mut site = Site::listen(1, tls.then(|| certificates(address)), address);
        let (relay, passed) = relay(address);
        // The certificate has the address of the relay too, because it has no port.
        let mut host = connect(relay, 0, site.agent().as_ref());
        let heard = (0..600).find_map(|number| {
            host.send(&heartbeat(0, number));
            site.lead.receive(Duration::from_millis(100))
        });
        assert!(matches!(heard, Some(FromHost::Heartbeat(_))), "{heard:?}");
        site.lead.send(&order(0, 1));
        assert!(matches!(host.receive(LONG), Some(FromController::Order(_))));
        let passed = passed.lock().unwrap();
        let has = |text: &[u8]| passed.windows(text.len()).any(|window| window == text);
        assert_eq!(has(b"host-0"), !tls, "user name");
        assert_eq!(has(b"keepup/0/order"), !tls, "key");
        has(b"\"version\":") || has(b"KUF1")
    };
    assert!(is_readable(false));
    assert!(!is_readable(true));
}

#[test]
fn an_ipv6_address_works() {
    let listener = match TcpListener::bind("[::1]:0") {
        Ok(listener) => listener,
        Err(error) => return println!("SKIPPED: no IPv6: {error}"),
    };
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut site = Site::listen(1, Some(certificates(address)), address);
    let mut hosts = vec![site.connect(0)];
    crate::link::tests::exchange(&mut site.lead, &mut hosts);
}

#[test]
fn another_controller_at_the_address_is_refused() {
    let site = Site::new(1);
    let (own, other) = (site.agent().unwrap(), certificates(site.address).agent());
    let why = site.refused(Some(&other));
    assert_eq!(why, "its certificate is not that of the controller that started this agent");
    // The right one for another address.
    let elsewhere = ControllerTls::new("127.0.0.2:1".parse().unwrap()).unwrap();
    let site = Site::listen(1, Some(elsewhere), free());
    assert_eq!(site.refused(site.agent().as_ref()), why);
    assert_eq!(site.refused(Some(&own)), why);
}

#[test]
fn a_replaced_controller_gets_no_messages() {
    let site = Site::new(1);
    let mut host = site.connect(0);
    let Site { lead, address, tls } = site;
    drop(lead);
    assert_eq!(host.receive(LONG), Some(FromController::Closed));
    let mut other = Site::listen(1, Some(certificates(address)), address);
    // The agent tries to connect again every second at most.
    let heard = (0..30).find_map(|number| {
        host.send(&heartbeat(0, number));
        other.lead.receive(Duration::from_millis(100))
    });
    assert_eq!(heard, None);
    drop(other);
    let mut site = Site::listen(1, tls, address);
    assert!(hears(&mut site.lead, &mut host));
}

#[test]
fn a_host_without_the_certificate_of_the_agents_is_refused() {
    let site = Site::new(1);
    let (own, other) = (site.agent().unwrap(), certificates(site.address).agent());
    let AgentTls { certificate, key, .. } = other;
    assert_eq!(site.refused(Some(&AgentTls { certificate, key, ..own.clone() })), "it refused the session");
    // The certificate without its key.
    let AgentTls { key, .. } = certificates(site.address).agent();
    let why = site.refused(Some(&AgentTls { key, ..own }));
    assert!(why.starts_with("cannot use its certificates: "), "{why}");
}

#[test]
fn sides_of_which_only_one_uses_tls_are_reported() {
    let site = Site::new(1);
    assert_eq!(site.refused(None), "it uses TLS, but this agent was started without");
    let tls = site.agent();
    let site = Site::listen(1, None, free());
    // The controller closes the connection, or waits for more.
    let why = site.refused(tls.as_ref());
    assert!(why.starts_with("no TLS connection: "), "{why}");
}

#[test]
fn strangers_in_the_handshake_do_not_stop_a_host() {
    let mut site = Site::new(1);
    // More than are handled at the same time, within 1024 descriptors.
    let silent: Vec<TcpStream> = (0..270).map(|_| TcpStream::connect(site.address).unwrap()).collect();
    for _ in 0..10 {
        let mut stranger = TcpStream::connect(site.address).unwrap();
        drop(stranger.write_all(b"GET / HTTP/1.1\r\n\r\n"));
    }
    let mut host = site.connect(0);
    assert!(hears(&mut site.lead, &mut host));
    drop(silent);
}
