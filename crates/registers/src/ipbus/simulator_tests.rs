//! A simulated target with real sockets: allowed clients, and refused settings.
use std::thread::JoinHandle;

use keepup_error::Diagnostic as _;
use keepup_measure::clock::SystemClock;

use super::*;
use crate::ipbus::packet::{ByteOrder, PacketWriter, Status};

/// A target in a thread, stopped on drop.
pub(in crate::ipbus) struct Running {
    pub(in crate::ipbus) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<TargetCounters>>,
}

impl Running {
    pub(in crate::ipbus) fn start(options: &TargetOptions) -> Self {
        let target = IpbusTarget::bind(options, Arc::new(SystemClock)).unwrap();
        let (address, stop) = (target.address(), Arc::new(AtomicBool::new(false)));
        let switch = Arc::clone(&stop);
        let thread = std::thread::spawn(move || target.serve(&switch).unwrap());
        Self { address, stop, thread: Some(thread) }
    }

    pub(in crate::ipbus) fn end(mut self) -> TargetCounters {
        self.stop.store(true, Ordering::Release);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

#[test]
fn every_client_gets_its_own_replies() {
    for listen in ["127.0.0.1:0", "[::1]:0"] {
        let listen = listen.parse().unwrap();
        let target = Running::start(&TargetOptions { listen, ..TargetOptions::default() });
        let clients: Vec<UdpSocket> =
            (0..3).map(|_| UdpSocket::bind(SocketAddr::new(target.address.ip(), 0)).unwrap()).collect();
        let orders = [ByteOrder::Big, ByteOrder::Little, ByteOrder::Big];
        for (client, order) in clients.iter().zip(orders) {
            client.connect(target.address).unwrap();
            client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let mut packet = Vec::new();
            PacketWriter::control(&mut packet, order, 0);
            client.send(&packet).unwrap();
            client.send(b"garbage!").unwrap();
            client.send(&Status::request()).unwrap();
        }
        for (client, order) in clients.iter().zip(orders) {
            let mut buffer = [0; 100];
            assert_eq!(client.recv(&mut buffer).unwrap(), 4);
            assert_eq!(PacketHeader::parse(&buffer[..4]), Ok((PacketHeader::control(0), order)));
            assert_eq!(client.recv(&mut buffer).unwrap(), STATUS_BYTES);
        }
        let counters = target.end();
        assert_eq!((counters.packets, counters.status, counters.foreign), (3, 3, 3));
    }
}

/// A socket connected to `target`.
fn client(target: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind(SocketAddr::new(target.ip(), 0)).unwrap();
    socket.connect(target).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket
}

#[test]
fn a_kept_reply_goes_only_to_its_client() {
    let target = Running::start(&TargetOptions::default());
    let (owner, other) = (client(target.address), client(target.address));
    let mut buffer = [0; 100];
    let mut packet = Vec::new();
    PacketWriter::control(&mut packet, ByteOrder::Big, 1);
    owner.send(&packet).unwrap();
    assert_eq!(owner.recv(&mut buffer).unwrap(), 4);
    // The target answers in order, so the status shows that nothing was sent before it.
    other.send(&PacketHeader::resend(1)).unwrap();
    other.send(&Status::request()).unwrap();
    assert_eq!(other.recv(&mut buffer).unwrap(), STATUS_BYTES, "another client's reply");
    owner.send(&PacketHeader::resend(1)).unwrap();
    assert_eq!(owner.recv(&mut buffer).unwrap(), 4);
    let counters = target.end();
    assert_eq!((counters.resent, counters.unknown), (1, 1));
}

#[test]
fn only_allowed_addresses_are_answered() {
    let (listen, allow) = ("[::]:0".parse().unwrap(), vec!["::1".parse().unwrap()]);
    let target = Running::start(&TargetOptions { listen, allow, ..TargetOptions::default() });
    let port = target.address.port();
    let stranger = client((Ipv4Addr::LOCALHOST, port).into());
    let friend = client((std::net::Ipv6Addr::LOCALHOST, port).into());
    stranger.send(&Status::request()).unwrap();
    friend.send(&Status::request()).unwrap();
    let mut buffer = [0; 100];
    assert_eq!(friend.recv(&mut buffer).unwrap(), STATUS_BYTES);
    stranger.set_nonblocking(true).unwrap();
    assert_eq!(stranger.recv(&mut buffer).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    let counters = target.end();
    assert_eq!((counters.status, counters.refused), (1, 1));
}

#[test]
fn listening_beyond_loopback_needs_allowed_addresses() {
    for (listen, is_exposed) in [("0.0.0.0:0", true), ("[::]:0", true), ("localhost:0", false)] {
        let options = TargetOptions { listen: listen.parse().unwrap(), ..TargetOptions::default() };
        let checked = options.check();
        assert_eq!(matches!(checked, Err(IpbusError::Exposed { .. })), is_exposed, "{checked:?}");
        TargetOptions { allow: vec!["10.0.0.0/8".parse().unwrap()], ..options }.check().unwrap();
    }
}

#[test]
fn delayed_replies_are_bounded_and_stay_in_order() {
    let mut queue = DelayQueue::default();
    let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let reply = vec![0; 60_000];
    let tried = 2 * DELAYED_BYTES_MAX / reply.len();
    (0..tried).for_each(|due_ns| queue.push(due_ns as u64, peer, &reply));
    assert!(queue.bytes <= DELAYED_BYTES_MAX && queue.overflowed > 0);
    let kept = tried as u64 - queue.overflowed;
    assert_eq!(queue.pop(0).map(|(_, reply)| reply.len()), Some(reply.len()));
    assert!(queue.pop(0).is_none() && queue.due_ns() == Some(1));
    assert_eq!(std::iter::from_fn(|| queue.pop(u64::MAX)).count() as u64, kept - 1);
    assert_eq!(queue.bytes, 0);
}

#[test]
fn invalid_settings_are_refused() {
    let good = TargetOptions::default();
    let refused = [
        TargetOptions { mtu_bytes: 91, ..good.clone() },
        TargetOptions { mtu_bytes: 65_536, ..good.clone() },
        TargetOptions { buffers: 0, ..good.clone() },
        TargetOptions { words: 0, ..good.clone() },
        TargetOptions { words: usize::MAX, ..good.clone() },
        TargetOptions {
            faults: Faults { delay: Duration::from_secs(61), ..Faults::default() },
            ..good.clone()
        },
    ];
    for options in refused {
        let why = options.check().unwrap_err().to_string();
        assert!(why.contains("must be"), "{why}");
    }
    good.check().unwrap();
    let first = Running::start(&good);
    let Err(why) =
        IpbusTarget::bind(&TargetOptions { listen: first.address.into(), ..good }, Arc::new(SystemClock))
    else {
        panic!("two targets at one address")
    };
    assert!(why.hint().unwrap().contains("another program listens there"), "{why}");
}
