//! IPbus: the client against the simulated target with every fault, and against other peers.
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use keepup_error::{Cause, Diagnostic as _};
use keepup_measure::clock::SystemClock;
use keepup_registers::ipbus::packet::{ByteOrder, PacketHeader, PacketKind, Status};
use keepup_registers::ipbus::{ClientCounters, ClientOptions, IpbusClient, IpbusError};
use keepup_testkit::Program;

use crate::common::{directory, keepup, start};

/// Time within which a failure must be reported.
const SOON: Duration = Duration::from_secs(5);
/// Additional time for stalls of the machine. A timeout restarted by each datagram would take minutes.
const SLACK: Duration = Duration::from_secs(25);

pub(crate) fn serve(here: &Path, more: &[&str]) -> (Program, SocketAddr) {
    let arguments = [&["register", "serve-ipbus", "--listen", "127.0.0.1:0"], more].concat();
    let mut target = start(here, &arguments);
    let address = target.address();
    (target, address)
}

fn connect(target: SocketAddr, options: ClientOptions) -> Result<IpbusClient, IpbusError> {
    IpbusClient::connect(target, options, Arc::new(SystemClock))
}

/// Stops a target. Returns access to its counters by name.
fn ended(target: Program) -> impl Fn(&str) -> u64 {
    target.signal("TERM");
    let run = target.wait();
    assert_eq!(run.code(), 0, "{run:#?}");
    move |name| {
        let line = run.stdout.lines().find_map(|line| line.trim_start().strip_prefix(name));
        line.and_then(|count| count.trim().parse().ok()).unwrap_or_else(|| panic!("no {name}: {run:#?}"))
    }
}

/// Transfers words to and from a target with faults. All must be correct, and nothing executed twice.
fn exchange(faults: &[&str], options: ClientOptions) -> (ClientCounters, impl Fn(&str) -> u64) {
    let place = directory();
    let (target, address) = serve(place.path(), faults);
    let mut client = connect(address, options).unwrap();
    for round in 1..4u32 {
        let data: Vec<u32> = (0..4000).map(|n: u32| (n ^ round).wrapping_mul(0x9E37_79B9)).collect();
        client.write_block(10, &data, false).unwrap();
        let mut back = vec![0; data.len()];
        client.read_block(10, &mut back, false).unwrap();
        assert!(back == data, "wrong words with {faults:?}");
        back.fill(0);
        client.read_each(10, &mut back, false).unwrap();
        assert!(back == data, "wrong words in single reads with {faults:?}");
        for n in 0..10 {
            assert_eq!(client.read_single(10 + n).unwrap(), data[n as usize], "{faults:?}");
            let before = client.rmw_sum(5, 1).unwrap();
            assert_eq!(before, (round - 1) * 10 + n, "executed twice or never with {faults:?}");
        }
    }
    (client.counters(), ended(target))
}

#[test]
fn without_faults_nothing_is_sent_twice() {
    // A target that does not get a core for a while has lost nothing.
    let patient = ClientOptions { timeout: Duration::from_secs(2), ..ClientOptions::default() };
    let (counters, of) = exchange(&[], patient);
    assert_eq!(
        (counters.packets_resent, counters.replies_asked, counters.ignored),
        (0, 0, 0),
        "{counters:?}"
    );
    assert_eq!(of("packets processed"), counters.packets_sent);
    assert_eq!(of("datagrams that are not packets"), 0);
}

#[test]
fn the_client_recovers_from_every_single_fault() {
    let often = |count: u64, faults: &[&str]| assert!(count > 5, "{count} of {faults:?}");
    let options = ClientOptions::default();
    for seed in ["1", "2"] {
        let faults = ["--drop-requests", "7", "--seed", seed];
        let (counters, of) = exchange(&faults, options);
        often(of("datagrams dropped on purpose"), &faults);
        often(counters.recovered_requests, &faults);
        let faults = ["--drop-replies", "7", "--seed", seed];
        let (counters, of) = exchange(&faults, ClientOptions { order: ByteOrder::Big, ..options });
        often(of("replies resent"), &faults);
        often(counters.recovered_replies, &faults);
        let faults = ["--duplicate", "3", "--seed", seed];
        let (counters, of) = exchange(&faults, options);
        often(of("packets out of sequence"), &faults);
        often(counters.ignored, &faults);
        let faults = ["--reorder", "9", "--seed", seed];
        let (_, of) = exchange(&faults, options);
        often(of("datagrams reordered on purpose"), &faults);
        let faults = ["--wrong-id", "7", "--seed", seed];
        let (counters, of) = exchange(&faults, options);
        often(of("replies with a wrong id on purpose"), &faults);
        often(counters.recovered_replies, &faults);
    }
}

#[test]
fn the_client_works_with_a_target_slower_than_the_timeout() {
    let (counters, _) = exchange(&["--delay", "3 ms"], ClientOptions::default());
    assert_eq!(counters.recovered_requests, 0, "{counters:?}");
    let impatient =
        ClientOptions { timeout: Duration::from_millis(8), attempts: 100, ..ClientOptions::default() };
    let (counters, _) = exchange(&["--delay", "12 ms"], impatient);
    assert!(counters.timeouts > 10, "{counters:?}");
}

#[test]
#[ignore = "system"]
fn the_client_recovers_from_all_faults_together() {
    for seed in ["1", "2", "3"] {
        let lossy = ["--drop-requests", "7", "--drop-replies", "7", "--seed", seed];
        let (counters, _) = exchange(&lossy, ClientOptions::default());
        assert!(counters.recovered_requests > 5 && counters.recovered_replies > 5, "{counters:?}");
    }
    let lossy = ["--drop-requests", "7", "--drop-replies", "7", "--seed", "4"];
    let more = ["--duplicate", "5", "--reorder", "11", "--wrong-id", "13", "--delay", "200 us"];
    let small = ["--mtu", "576", "--buffers", "5"];
    drop(exchange(&[&lossy[..], &more, &small].concat(), ClientOptions::default()));
}

#[test]
fn a_bus_error_is_reported_in_spite_of_losses() {
    let place = directory();
    let faults = ["--bus-error", "0x1000", "--drop-requests", "7", "--drop-replies", "7"];
    let (_target, address) = serve(place.path(), &faults);
    let mut client = connect(address, ClientOptions::default()).unwrap();
    let mut words = vec![0; 8192];
    for _ in 0..5 {
        let why = client.read_block(0, &mut words, false).unwrap_err();
        assert!(matches!(why, IpbusError::Bus { address: 0x1000, .. }), "{why}");
        client.read_block(0x1001, &mut words, false).unwrap();
    }
}

/// A peer that answers every datagram with the result of `answer`.
struct Peer {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
}

impl Peer {
    fn start(answer: impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + 'static) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let (address, stop) = (socket.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let switch = Arc::clone(&stop);
        std::thread::spawn(move || {
            let mut buffer = [0; 2000];
            while !switch.load(Ordering::Relaxed) {
                if let Ok((bytes, peer)) = socket.recv_from(&mut buffer) {
                    for reply in answer(&buffer[..bytes]) {
                        drop(socket.send_to(&reply, peer));
                    }
                }
            }
        });
        Self { address, stop }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// The client's error for a peer that answers like this.
fn client_error(answer: impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + 'static) -> String {
    let _place = directory();
    let peer = Peer::start(answer);
    let since = Instant::now();
    let why = match connect(peer.address, ClientOptions::default()) {
        Err(why) => why,
        Ok(mut client) => client.read_block(0, &mut [0; 100], false).unwrap_err(),
    };
    assert!(since.elapsed() < SOON + SLACK, "{:?}", since.elapsed());
    let text = Cause::of(&why).to_text();
    assert!(text.contains(&peer.address.to_string()) && text.contains("\nhint: "), "{text}");
    text
}

/// Answers status requests with a valid status, and everything else with `answer`.
fn status_and(
    next_id: u16,
    answer: impl Fn(u16) -> Vec<Vec<u8>> + Send + 'static,
) -> impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + 'static {
    move |request| match PacketHeader::parse(request) {
        Ok((PacketHeader { kind: PacketKind::Status, .. }, _)) => {
            vec![Status { mtu_bytes: 1500, buffers: 4, next_id, ..Status::default() }.reply().to_vec()]
        }
        Ok((PacketHeader { id, .. }, _)) => answer(id),
        Err(why) => panic!("the client sent {why}"),
    }
}

#[test]
#[ignore = "system"]
fn peers_that_are_not_targets_are_reported_with_the_reason() {
    assert!(client_error(|_| vec![]).contains("no answer to"));
    let garbage = client_error(|_| vec![b"HTTP/1.1 400 Bad Request".to_vec(), vec![], vec![7; 3]]);
    assert!(garbage.contains("does not speak IPbus 2.0"), "{garbage}");
    let old = client_error(|_| vec![[&[0x10, 0, 0, 0xF1], &[0; 60][..]].concat()]);
    assert!(old.contains("IPbus version 1 instead of 2"), "{old}");
    let short = client_error(|_| vec![vec![0x20, 0, 0, 0xF1]]);
    assert!(short.contains("a datagram of 4 bytes"), "{short}");
    // After a valid status.
    let silent = client_error(status_and(9, |_| vec![]));
    assert!(silent.contains("packet 9 timed out") && silent.contains("no answer"), "{silent}");
    let others =
        client_error(status_and(9, |id| vec![PacketHeader::control(id + 100).word().to_be_bytes().to_vec()]));
    assert!(others.contains("a reply to packet 109, which is not in flight"), "{others}");
    let empty =
        client_error(status_and(9, |id| vec![PacketHeader::control(id).word().to_be_bytes().to_vec()]));
    assert!(empty.contains("packet 9 timed out") && empty.contains("a truncated transaction"), "{empty}");
    let odd = client_error(status_and(9, |id| {
        let words = [PacketHeader::control(id).word(), 0x2ABC_0100, 1];
        vec![words.iter().flat_map(|word| word.to_be_bytes()).collect()]
    }));
    assert!(odd.contains("a reply to packet 9 with the wrong transactions"), "{odd}");
}

#[test]
fn a_flood_of_foreign_datagrams_does_not_delay_the_timeout() {
    let error = client_error(|_| (0..200).map(|n: u8| vec![n; 8]).collect());
    assert!(error.contains("does not speak IPbus 2.0"), "{error}");
}

#[test]
fn a_restarted_target_and_a_closed_port_are_reported() {
    let moved = AtomicBool::new(false);
    let restarted = client_error(move |request| {
        // Every status after the first packet is that of a restarted target.
        let is_status =
            matches!(PacketHeader::parse(request), Ok((PacketHeader { kind: PacketKind::Status, .. }, _)));
        moved.fetch_or(!is_status, Ordering::Relaxed);
        let next_id = if moved.load(Ordering::Relaxed) { 1 } else { 500 };
        status_and(next_id, |_| vec![])(request)
    });
    assert!(restarted.contains("expects packet 1, but packet 500 is in flight"), "{restarted}");
    let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    match connect(free, ClientOptions::default()) {
        Err(why @ IpbusError::Socket { .. }) => {
            assert!(why.hint().unwrap().contains("nothing listens there"), "{why}");
        }
        other => panic!("{:?}", other.map(|client| client.status())),
    }
}

#[test]
fn a_client_continues_with_a_restarted_target() {
    let place = directory();
    let (target, address) = serve(place.path(), &[]);
    let mut client = connect(address, ClientOptions::default()).unwrap();
    client.write_block(0, &[7; 1000], false).unwrap();
    drop(ended(target));
    let why = client.read_single(0).unwrap_err();
    assert!(
        matches!(&why, IpbusError::Socket { source, .. } if source.kind() == ErrorKind::ConnectionRefused)
    );
    let listen = address.to_string();
    let mut target = start(place.path(), &["register", "serve-ipbus", "--listen", &listen]);
    target.address();
    // The new target starts with packet 1 and empty memory. The client requests its status first.
    assert_eq!(client.read_single(0).unwrap(), 0);
    assert_eq!(ended(target)("packets processed"), 1);
}

#[test]
fn invalid_options_of_serve_ipbus_are_refused() {
    let place = directory();
    let run = |more: &[&str]| keepup(place.path(), &[&["register", "serve-ipbus"], more].concat());
    let mtu = run(&["--listen", "127.0.0.1:0", "--mtu", "20"]);
    assert!(mtu.code() == 2 && mtu.stderr.contains("mtu is 20, must be 92 to 65535"), "{mtu:#?}");
    let (_target, address) = serve(place.path(), &[]);
    let busy = run(&["--listen", &address.to_string()]);
    assert!(busy.code() == 4 && busy.stderr.contains("hint: another program listens there"), "{busy:#?}");
    let exposed = run(&["--listen", "0.0.0.0:0"]);
    assert!(exposed.code() == 3 && exposed.stderr.contains("hint: allow clients by address"), "{exposed:#?}");
    let prefix = run(&["--listen", "0.0.0.0:0", "--allow", "10.0.0.0/33"]);
    assert!(prefix.code() == 2 && prefix.stderr.contains("hint: such as 10.0.0.0/8"), "{prefix:#?}");
    let foreign = run(&["--listen", "203.0.113.1:1", "--allow", "203.0.113.0/24"]);
    assert!(foreign.code() == 4 && foreign.stderr.contains("no such address"), "{foreign:#?}");
    let word = run(&["--bus-error", "0xG"]);
    assert!(word.code() == 2 && word.stderr.contains("is not an address such as"), "{word:#?}");
}
