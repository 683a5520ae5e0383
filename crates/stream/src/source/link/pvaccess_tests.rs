//! Images as a client gets them over a socket.
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use super::super::super::plan::{EventSize, Protocol, Rate};
use super::super::super::{Destination, PV_NAME, SourceCounters, SourceReport, run};
use super::*;
use crate::wire::ElementType;

fn plan() -> SourcePlan {
    SourcePlan {
        events: Some(3),
        element: ElementType::U16,
        shape: vec![20, 300],
        protocol: Protocol::PvAccess,
        ..SourcePlan::new(EventSize::Fixed(12_000), Rate::Max)
    }
}

/// A client that has sent its subscription.
struct Client {
    socket: TcpStream,
}

impl Client {
    fn new(door: &Door) -> Self {
        let mut socket = TcpStream::connect(door.address()).unwrap();
        socket.write_all(&subscription()).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self { socket }
    }

    /// A client that acknowledges images, with a queue for this many.
    fn pipelined(door: &Door, queue: u32) -> Self {
        let mut client = Self { socket: TcpStream::connect(door.address()).unwrap() };
        let name = [&[PV_NAME.len() as u8][..], PV_NAME.as_bytes()].concat();
        client.send(7, &[&[1, 0, 1, 0, 0, 0][..], &name].concat());
        client.send(13, &[&[1, 0, 0, 0, 1, 0, 0, 0, 0x88, 0x80, 0, 0][..], &queue.to_le_bytes()].concat());
        client.send(13, &[1, 0, 0, 0, 1, 0, 0, 0, 0x44]);
        client
    }

    fn send(&mut self, command: u8, body: &[u8]) {
        let head = [&[0xCA, 2, 0, command][..], &(body.len() as u32).to_le_bytes()].concat();
        self.socket.write_all(&[&head[..], body].concat()).unwrap();
    }

    fn acknowledge(&mut self, count: u32) {
        self.send(13, &[&[1, 0, 0, 0, 1, 0, 0, 0, 0x80][..], &count.to_le_bytes()].concat());
    }

    /// Body of the next update; `None` at the end of the connection.
    fn update(&mut self) -> Option<Vec<u8>> {
        loop {
            let mut head = [0; 8];
            self.socket.read_exact(&mut head).ok()?;
            let control = head[2] & 1 != 0;
            let length = if control { 0 } else { u32::from_le_bytes(*head.last_chunk().unwrap()) };
            let mut body = vec![0; length as usize];
            self.socket.read_exact(&mut body).unwrap();
            if head[3] == 13 && body[4] == 0 {
                return Some(body);
            }
        }
    }
}

/// `uniqueId` of an image of [`plan`]: it follows the value, the codec, two sizes and two dimensions.
fn unique_id(update: &[u8], pixel_bytes: usize) -> u32 {
    assert_eq!(update[5..9], [3, 0xE6, 0x23, 0x08], "bits of the changed fields");
    let at = 5 + 4 + 1 + 5 + pixel_bytes + 6 + 16 + 1 + 2 * 18;
    u32::from_le_bytes(update[at..at + 4].try_into().unwrap())
}

fn open() -> Door {
    Door::open((Ipv4Addr::LOCALHOST, 0).into(), Some(Duration::from_secs(20))).unwrap()
}

/// Runs a source in a thread.
fn source(plan: &SourcePlan, door: &Door) -> thread::JoinHandle<SourceReport> {
    let (plan, door) = (plan.clone(), door.clone());
    thread::spawn(move || {
        run(&plan, Destination::Accept(door), &AtomicBool::new(false), &SourceCounters::default()).unwrap()
    })
}

#[test]
fn a_client_gets_the_value_before_the_run_and_then_images() {
    let door = open();
    let mut client = Client::new(&door);
    let source = source(&plan(), &door);
    let first = client.update().unwrap();
    assert_eq!(first[5..8], [1, 1, 0xFF], "all fields, and no pixels");
    for expected in 1..=3 {
        let image = client.update().unwrap();
        // The member for 16-bit pixels, and their number.
        assert_eq!(image[9..15], [6, 254, 0x70, 0x17, 0, 0]);
        assert_eq!(unique_id(&image, 12_000), expected);
    }
    assert_eq!(client.update(), None);
    drop(client);
    assert_eq!(source.join().unwrap().streams[0].sent.events, 3);
}

#[test]
fn images_larger_than_the_pool_have_the_announced_length() {
    let large = SourcePlan { shape: vec![1000, 1000], size: EventSize::Fixed(2_000_000), ..plan() };
    let door = open();
    let mut client = Client::new(&door);
    let source = source(&large, &door);
    client.update().unwrap();
    let ids: Vec<u32> = (0..3).map(|_| unique_id(&client.update().unwrap(), 2_000_000)).collect();
    assert_eq!(ids, [1, 2, 3]);
    drop(client);
    source.join().unwrap();
}

#[test]
fn every_image_that_a_slow_client_misses_is_counted() {
    let slow = SourcePlan {
        rate: Rate::EventsPerSecond(2000.0),
        events: Some(400),
        // Space for two images.
        buffer_bytes: 25_000,
        ..plan()
    };
    let door = open();
    let mut client = Client::pipelined(&door, 3);
    let source = source(&slow, &door);
    // With the port, the connection is closed.
    drop(door);
    client.update().unwrap();
    client.acknowledge(1);
    let mut ids = Vec::new();
    while let Some(image) = client.update() {
        ids.push(unique_id(&image, 12_000));
        if ids.len() == 3 {
            // The queue is full: nothing may arrive while images become due and are lost.
            client.socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            let found = client.socket.peek(&mut [0]).map_err(|error| error.kind());
            assert_eq!(found, Err(io::ErrorKind::WouldBlock));
            client.socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            client.acknowledge(3);
        } else if ids.len() > 3 {
            client.acknowledge(1);
        }
    }
    drop(client);
    let report = source.join().unwrap();
    let lost = report.total(|stream| stream.lost).events;
    assert!(lost > 0 && ids.is_sorted());
    assert_eq!((ids.len() as u64 + lost, report.total(|stream| stream.due).events), (400, 400));
}

#[test]
fn a_client_that_has_acknowledged_everything_stays_connected() {
    let door = open();
    let mut client = Client::pipelined(&door, 8);
    let source = source(&plan(), &door);
    (0..4).for_each(|_| drop(client.update().unwrap()));
    client.acknowledge(4);
    assert_eq!(source.join().unwrap().streams[0].sent.events, 3);
    client.socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    assert_eq!(client.socket.peek(&mut [0]).map_err(|error| error.kind()), Err(io::ErrorKind::WouldBlock));
    drop(door);
    client.socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(client.update(), None);
}

#[test]
fn a_stop_while_a_closed_loop_waits_for_the_client_keeps_the_counts_exact() {
    let endless = SourcePlan { events: None, ..plan() };
    let door = open();
    let mut client = Client::pipelined(&door, 2);
    let (stop, live) = (AtomicBool::new(false), SourceCounters::default());
    let blocked_ns = || live.blocked_ns.load(Relaxed);
    // Every change follows a check of `stop`, which may precede the first one.
    let await_checks = |count| {
        for _ in 0..count {
            let before_ns = blocked_ns();
            while blocked_ns() == before_ns {
                thread::sleep(Duration::from_millis(1));
            }
        }
    };
    let report = thread::scope(|scope| {
        let destination = Destination::Accept(door.clone());
        let running = scope.spawn(|| run(&endless, destination, &stop, &live).unwrap());
        client.update().unwrap();
        client.update().unwrap();
        await_checks(1);
        stop.store(true, Relaxed);
        await_checks(2);
        client.acknowledge(2);
        running.join().unwrap()
    });
    let (due, sent) = (report.total(|stream| stream.due), report.total(|stream| stream.sent));
    assert_eq!((due, sent.events), (sent, 1));
}

#[test]
fn a_port_of_one_receiver_is_closed_for_other_addresses() {
    let stranger = Ipv4Addr::new(127, 0, 0, 2);
    for (admitted, expected) in [(Ipv4Addr::LOCALHOST, 4), (stranger, 0)] {
        let door = Door::open((Ipv4Addr::LOCALHOST, 0).into(), Some(Duration::from_millis(200))).unwrap();
        let door = door.only_from(admitted.into());
        let mut client = Client::new(&door);
        let running = thread::spawn(move || {
            run(&plan(), Destination::Accept(door), &AtomicBool::new(false), &SourceCounters::default())
        });
        assert_eq!(std::iter::from_fn(|| client.update()).count(), expected);
        drop(client);
        assert_eq!(running.join().unwrap().is_ok(), expected > 0);
    }
}

#[test]
fn clients_that_do_not_monitor_keep_no_one_out() {
    let door = open();
    let others: Vec<_> = (0..2 * CLIENTS_MAX).map(|_| TcpStream::connect(door.address()).unwrap()).collect();
    let mut stranger = TcpStream::connect(door.address()).unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut client = Client::new(&door);
    let source = source(&plan(), &door);
    let updates = std::iter::from_fn(|| client.update()).count();
    assert_eq!(updates, 4);
    drop((client, others));
    assert_eq!(source.join().unwrap().streams[0].sent.events, 3);
}

#[test]
fn a_client_that_goes_away_breaks_the_run() {
    let endless = SourcePlan { events: None, ..plan() };
    let door = open();
    let mut client = Client::pipelined(&door, 2);
    let running = thread::spawn(move || {
        run(&endless, Destination::Accept(door), &AtomicBool::new(false), &SourceCounters::default())
    });
    client.update().unwrap();
    client.send(15, &[1, 0, 0, 0, 1, 0, 0, 0]);
    let error = running.join().unwrap().unwrap_err().to_string();
    assert!(error.contains("closed the connection"), "{error}");
}

#[test]
fn plans_that_the_protocol_cannot_carry_are_refused() {
    let varied = SourcePlan { size: EventSize::Uniform { min: 1, max: 2 }, shape: Vec::new(), ..plan() };
    let many = SourcePlan { streams: 2, ..plan() };
    let large = SourcePlan { size: EventSize::Fixed(1 << 31), shape: Vec::new(), ..plan() };
    for (plan, why) in [(varied, "fixed event size"), (many, "has one"), (large, "limit 2147418112 bytes")] {
        let error = plan.check().unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}
