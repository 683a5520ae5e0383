//! A target over real sockets: who is answered, and which settings are refused.
use std::thread::JoinHandle;

use keepup_measure::clock::SystemClock;

use super::super::packet::{ByteOrder, PacketWriter, Status};
use super::*;

/// A target in a thread, until it is dropped.
pub(in super::super) struct Running {
    pub(in super::super) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<TargetCounters>>,
}

impl Running {
    pub(in super::super) fn start(options: &TargetOptions) -> Self {
        let target = IpbusTarget::bind(options, Arc::new(SystemClock)).unwrap();
        let (address, stop) = (target.address(), Arc::new(AtomicBool::new(false)));
        let switch = Arc::clone(&stop);
        let thread = std::thread::spawn(move || target.serve(&switch).unwrap());
        Self { address, stop, thread: Some(thread) }
    }

    pub(in super::super) fn end(mut self) -> TargetCounters {
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
fn everybody_gets_their_own_replies() {
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
            assert_eq!(PacketHeader::of(&buffer[..4]), Ok((PacketHeader::control(0), order)));
            assert_eq!(client.recv(&mut buffer).unwrap(), STATUS_BYTES);
        }
        let counters = target.end();
        assert_eq!((counters.packets, counters.status, counters.foreign), (3, 3, 3));
    }
}

#[test]
fn settings_that_make_no_sense() {
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
        assert!(why.contains("possible are"), "{why}");
    }
    good.check().unwrap();
    let first = Running::start(&good);
    let Err(why) = IpbusTarget::bind(&TargetOptions { listen: first.address.into(), ..good }, Arc::new(SystemClock))
    else {
        panic!("two targets at one address")
    };
    assert!(why.to_string().contains("hint: another program listens there"), "{why}");
}
