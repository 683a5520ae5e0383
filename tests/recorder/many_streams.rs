//! Many streams and many connections, at rates that no plan has: nothing is lost, and no one starves another.
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use keepup_stream::wire::{ControlMessage, End, EndStream, FrameKind};
use keepup_testkit::Run;

use crate::common::{TestDirectory, count, directory, json, recorder, verified};
use crate::recorder::raw_client::{answer, connect, end, event, hello};

/// A client that numbers its events.
struct Client {
    socket: TcpStream,
    /// Events and bytes sent of each of its streams, which have consecutive ids from the first one on.
    sent: Vec<(u64, u64)>,
    first: u32,
}

impl Client {
    fn new(to: SocketAddr, ids: std::ops::Range<u32>) -> Self {
        let mut socket = connect(to);
        socket.write_all(&hello(&ids.clone().collect::<Vec<_>>())).unwrap();
        answer(&mut socket, FrameKind::Welcome);
        Self { socket, sent: vec![(0, 0); ids.len()], first: ids.start }
    }

    fn frame(&mut self, stream: u32, payload: &[u8]) -> Vec<u8> {
        let (events, bytes) = &mut self.sent[(stream - self.first) as usize];
        let frame = event(stream, *events, payload);
        (*events, *bytes) = (*events + 1, *bytes + payload.len() as u64);
        frame
    }

    /// Ends all streams; returns the events sent, which the recorder has confirmed.
    fn finish(mut self) -> u64 {
        let ends = (self.first..).zip(&self.sent).map(|(id, &(events, bytes))| EndStream {
            id,
            events,
            bytes,
            lost_events: 0,
            lost_bytes: 0,
            next_sequence: events,
        });
        self.socket.write_all(&End { streams: ends.collect() }.to_frame().unwrap()).unwrap();
        answer(&mut self.socket, FrameKind::Bye);
        self.sent.iter().map(|(events, _)| events).sum()
    }
}

/// The recording has these events, all of them durable, and ended with exit code 0.
fn recorded_all(here: &TestDirectory, run: &Run, events: u64) {
    assert_eq!(run.code(), 0, "{run:#?}");
    assert_eq!(count(&json(run)["durable"]).0, events, "{run:#?}");
    assert_eq!(verified(here.path(), "a/run").0, events);
}

#[test]
fn of_ten_thousand_declared_streams_three_may_send() {
    let here = directory();
    let mut record = recorder(here.path(), &["a"], &["--pool", "1280 MiB"]);
    let mut client = Client::new(record.address(), 0..10_000);
    for round in 0..300_u32 {
        for stream in [17, 5_000, 9_999] {
            let frame = client.frame(stream, &vec![round as u8; 40_000]);
            client.socket.write_all(&frame).unwrap();
        }
    }
    let sent = client.finish();
    recorded_all(&here, &record.wait(), sent);
}

#[test]
fn a_fast_stream_and_many_slow_ones_share_a_small_pool() {
    let here = directory();
    let mut record = recorder(here.path(), &["a", "b"], &[]);
    let mut client = Client::new(record.address(), 0..508);
    for round in 0..200_u32 {
        let slow = (1..508).filter(|id| id % 20 == round % 20);
        let mut frames: Vec<u8> = slow.flat_map(|id| client.frame(id, &[id as u8; 100])).collect();
        (0..200).for_each(|_| frames.extend(client.frame(0, &[round as u8; 4096])));
        client.socket.write_all(&frames).unwrap();
    }
    let sent = client.finish();
    recorded_all(&here, &record.wait(), sent);
}

/// One stream after another becomes a thousand times as fast.
#[test]
fn rates_may_change_by_a_thousand() {
    let here = directory();
    let mut record = recorder(here.path(), &["a"], &[]);
    let mut client = Client::new(record.address(), 0..64);
    for fast in 0..64 {
        let mut frames: Vec<u8> = (0..64).flat_map(|id| client.frame(id, &[id as u8; 1000])).collect();
        (0..1000).for_each(|_| frames.extend(client.frame(fast, &[fast as u8; 1000])));
        client.socket.write_all(&frames).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let sent = client.finish();
    recorded_all(&here, &record.wait(), sent);
}

/// Clients with new streams, and connections without a word, appear and leave while a stream is recorded.
#[test]
fn connections_come_and_go_beside_a_stream() {
    let here = directory();
    let mut record = recorder(here.path(), &["a"], &["--stay"]);
    let (to, is_over) = (record.address(), &AtomicBool::new(false));
    let events = std::thread::scope(|scope| {
        let steady = scope.spawn(move || {
            let mut client = Client::new(to, 0..1);
            // It ends by itself too, so that a failure of the others is not a full disk.
            while !is_over.load(Relaxed) && client.sent[0].0 < 50_000 {
                let frame = client.frame(0, &[7; 20_000]);
                client.socket.write_all(&frame).unwrap();
            }
            client.finish()
        });
        let mut clients = Vec::new();
        for id in 1..=300 {
            drop(TcpStream::connect(to).unwrap());
            let mut client = connect(to);
            client.write_all(&[hello(&[id]), event(id, 0, b"one"), end(id, 1, 3)].concat()).unwrap();
            clients.push(client);
        }
        clients.iter_mut().for_each(|client| drop(answer(client, FrameKind::Bye)));
        is_over.store(true, Relaxed);
        300 + steady.join().unwrap()
    });
    record.signal("TERM");
    recorded_all(&here, &record.wait(), events);
}
