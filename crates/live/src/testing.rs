//! For tests: a server on loopback and a client that sends arbitrary bytes.
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use keepup_peer::Token;
use keepup_results::Count;
use keepup_results::live::{
    FleetFlow, FleetHost, FleetHostState, FleetMove, FleetNow, FleetPool, FleetVolume, Flow, Moment, PoolNow,
    ReductionNow, RejectedNow, RunState, RunStatus, StreamNow, TapFilter, VolumeNow,
};

use crate::{Access, AnswerLimits, Catalog, EventCard, EventCopy, Live, Parts, TapSource};

/// Token of servers in tests.
pub(crate) const TOKEN: &str = "0123456789abcdef-token";

/// Token of servers in tests that only reads.
pub(crate) const READ_TOKEN: &str = "89abcdef01234567-reads";

/// Access rules of servers in tests.
pub(crate) fn access(closed: bool) -> Access {
    let pass = || Token::new("fedcba9876543210-pass").unwrap();
    Access {
        token: Token::new(TOKEN).unwrap(),
        read_token: Some(Token::new(READ_TOKEN).unwrap()),
        pass: pass(),
        closed,
        names: vec!["beamline.example".into()],
    }
}

/// A server on loopback.
pub(crate) fn server(closed: bool, connections_max: usize) -> Live {
    server_with(closed, connections_max, None)
}

/// Server on loopback, with a catalog.
pub(crate) fn server_with(closed: bool, connections_max: usize, catalog: Option<Arc<dyn Catalog>>) -> Live {
    server_of(closed, connections_max, catalog, Arc::new(TestTapSource::default()), AnswerLimits::default())
}

/// Server on loopback, with a catalog and limits of its answers.
pub(crate) fn server_limited(answers: AnswerLimits, catalog: Arc<dyn Catalog>) -> Live {
    server_of(false, 256, Some(catalog), Arc::new(TestTapSource::default()), answers)
}

/// Server on loopback, with its event source.
pub(crate) fn server_with_tap(connections_max: usize) -> (Live, Arc<TestTapSource>) {
    let subscribers = Arc::new(TestTapSource::default());
    let live = server_of(false, connections_max, None, Arc::clone(&subscribers), AnswerLimits::default());
    (live, subscribers)
}

fn server_of(
    closed: bool,
    connections_max: usize,
    catalog: Option<Arc<dyn Catalog>>,
    tap: Arc<TestTapSource>,
    answers: AnswerLimits,
) -> Live {
    Live::start(Parts {
        listen: ([127, 0, 0, 1], 0).into(),
        access: access(closed),
        connections_max,
        title: "a <b> & c".into(),
        colours: ":root {}",
        charts: "// charts",
        commands: true,
        catalog,
        answers,
        tap: Some(tap),
        on_start: Box::new(|| ()),
    })
    .unwrap()
}

/// Parsed response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Sends `request` unchanged and reads until the server closes the connection.
pub(crate) fn send(address: SocketAddr, request: &[u8]) -> Answer {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // A server that refuses early may close before everything is sent.
    let _ = socket.write_all(request);
    let mut bytes = Vec::new();
    let _ = socket.read_to_end(&mut bytes);
    parse_response(&bytes)
}

pub(crate) fn parse_response(bytes: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { panic!("no answer: {text:?}") };
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Answer { status: status.unwrap(), head: head.to_ascii_lowercase(), body: body.to_owned() }
}

/// Sends a request with these header lines besides `Host`, and a body.
pub(crate) fn ask(live: &Live, method: &str, path: &str, lines: &[&str], body: &str) -> Answer {
    let mut request =
        format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", live.address());
    lines.iter().for_each(|line| request.push_str(&format!("{line}\r\n")));
    request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    send(live.address(), request.as_bytes())
}

/// Sends a plain GET request.
pub(crate) fn get(live: &Live, path: &str) -> Answer {
    ask(live, "GET", path, &[], "")
}

/// Status of a recording run.
pub(crate) fn recording() -> RunStatus {
    RunStatus { state: RunState::Recording, revision: 4, run: Some(17), ..RunStatus::default() }
}

/// Figures of `streams` streams on one volume.
pub(crate) fn moment(streams: u32) -> Moment {
    let stream = |id| StreamNow {
        id,
        name: format!("module \"{id}\""),
        element: "u16".into(),
        shape: vec![512, 256],
        connected: true,
        received: Count { events: 10 + u64::from(id), bytes: 1000 },
        ..StreamNow::default()
    };
    Moment {
        t_unix_ns: 1_700_000_000_000_000_000,
        seconds: 12.5,
        flow: Flow {
            received: Count { events: 100, bytes: 26_214_400 },
            received_bytes_per_second: 2e8,
            ..Flow::default()
        },
        pool: PoolNow { bytes: 1 << 29, used_bytes: 1 << 20, room_seconds: Some(2.5), ..PoolNow::default() },
        reduction: Some(ReductionNow { busy: vec![0.5, 0.25], ..ReductionNow::default() }),
        volumes: vec![VolumeNow { path: "/data/a \"x\"\\".into(), ..VolumeNow::default() }],
        streams: (0..streams).map(stream).collect(),
        ..Moment::default()
    }
}

/// Packets of a sender that are not recorded.
pub(crate) fn rejected(foreign: bool) -> RejectedNow {
    RejectedNow {
        source: "udp://0.0.0.0:4001".into(),
        reason: "malformed".into(),
        unit: "packet".into(),
        count: 3,
        foreign,
        text: "udp://0.0.0.0:4001: 3 packets not recorded (malformed): too short".into(),
    }
}

/// Figures of a fleet: a recorder, a lost one, and a spare that has its streams.
pub(crate) fn fleet() -> FleetNow {
    let flow = FleetFlow {
        received: Count { events: 100, bytes: 26_214_400 },
        durable: Count { events: 90, bytes: 23_592_960 },
        received_bytes_per_second: 2e8,
        durable_bytes_per_second: 1.9e8,
        connected_streams: 4,
        ..FleetFlow::default()
    };
    let volume = FleetVolume {
        path: "/data/a/run".into(),
        free_bytes: Some(7),
        total_bytes: Some(9),
        ..FleetVolume::default()
    };
    let host = |name: &str, state| FleetHost {
        name: name.into(),
        role: "recorder".into(),
        state,
        flow: flow.clone(),
        pool: Some(FleetPool { bytes: 1 << 29, room_seconds: Some(2.5), ..FleetPool::default() }),
        volumes: vec![volume.clone()],
        clock_offset_seconds: Some(-0.001),
        clock_error_seconds: Some(0.0002),
        heartbeat_age_seconds: Some(0.1),
        ..FleetHost::default()
    };
    let why = "daq2 is lost: no heartbeat until its lease expired".to_owned();
    FleetNow {
        t_unix_ns: 1_700_000_000_000_000_000,
        seconds: 12.5,
        fleet: "hall".into(),
        flow: FleetFlow {
            missing: [("volume failed".to_owned(), 3)].into(),
            missing_events: 3,
            ..flow.clone()
        },
        hosts: vec![
            host("daq1", FleetHostState::Recording),
            host("daq2", FleetHostState::Lost),
            FleetHost { role: "spare".into(), ..host("daq3", FleetHostState::Recording) },
        ],
        moves: vec![FleetMove { from: "daq2".into(), to: Some("daq3".into()), at_unix_ns: 5 }],
        failures: vec![why.clone()],
        warnings: vec![why, "the streams of daq2 moved to daq3".into()],
    }
}

/// Event source with copies put in by a test.
#[derive(Debug, Default)]
pub(crate) struct TestTapSource {
    pub(crate) taken: Mutex<Vec<(usize, TapFilter)>>,
    pub(crate) missed: AtomicU64,
    copies: Mutex<(VecDeque<EventCopy>, Option<Waker>)>,
}

impl TestTapSource {
    /// Adds an event for all subscribers.
    pub(crate) fn put(&self, copy: EventCopy) {
        let (copies, waker) = &mut *self.copies.lock().unwrap();
        copies.push_back(copy);
        waker.take().into_iter().for_each(Waker::wake);
    }
}

impl TapSource for TestTapSource {
    fn subscribe(&self, filter: &TapFilter) -> Result<usize, String> {
        let mut taken = self.taken.lock().unwrap();
        let free = (0..64).find(|subscription| taken.iter().all(|(other, _)| other != subscription));
        let subscription = free.ok_or("all subscriptions are taken")?;
        taken.push((subscription, filter.clone()));
        Ok(subscription)
    }

    fn unsubscribe(&self, subscription: usize) {
        self.taken.lock().unwrap().retain(|(other, _)| *other != subscription);
    }

    fn missed(&self, _: usize) -> u64 {
        self.missed.load(Relaxed)
    }

    fn bytes(&self) -> usize {
        8000
    }

    fn poll_next(&self, context: &mut Context<'_>) -> Poll<(u64, EventCopy)> {
        let (copies, waker) = &mut *self.copies.lock().unwrap();
        *waker = Some(context.waker().clone());
        copies.pop_front().map_or(Poll::Pending, |copy| Poll::Ready((u64::MAX, copy)))
    }
}

/// An event of stream `stream`: an image of 2 × 2.
pub(crate) fn card(stream: u32, sequence: u64) -> EventCard {
    EventCard {
        stream,
        name: "a \"b\"".into(),
        element: "u8".into(),
        shape: vec![2, 2],
        compression: None,
        sequence,
        timestamp_ns: 5,
    }
}

/// Opens a WebSocket; the head of the response if it is refused.
pub(crate) fn subscribe(address: SocketAddr, query: &str, lines: &str) -> Result<TcpStream, String> {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(
        socket,
        "GET /api/v1/tap?{query} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{lines}\r\n"
    )
    .unwrap();
    let (mut head, mut byte) = (Vec::new(), [0u8]);
    while !head.ends_with(b"\r\n\r\n") {
        socket.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    if head.starts_with("HTTP/1.1 101") { Ok(socket) } else { Err(head) }
}

/// Next frame from a server: opcode and payload.
pub(crate) fn frame(socket: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut start = [0u8; 2];
    socket.read_exact(&mut start).unwrap();
    let length = match start[1] {
        126 => {
            let mut more = [0u8; 2];
            socket.read_exact(&mut more).unwrap();
            u16::from_be_bytes(more).into()
        }
        127 => {
            let mut more = [0u8; 8];
            socket.read_exact(&mut more).unwrap();
            u64::from_be_bytes(more) as usize
        }
        short => usize::from(short),
    };
    let mut payload = vec![0; length];
    socket.read_exact(&mut payload).unwrap();
    (start[0] & 15, payload)
}

/// Next event: its description and its payload.
pub(crate) fn event(socket: &mut TcpStream) -> (serde_json::Value, Vec<u8>) {
    loop {
        let (_, text) = frame(socket);
        let head: serde_json::Value = serde_json::from_slice(&text).unwrap();
        if head.get("stream").is_some() {
            let (opcode, payload) = frame(socket);
            assert_eq!(opcode, 2);
            return (head, payload);
        }
    }
}
