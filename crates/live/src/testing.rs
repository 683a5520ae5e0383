//! For tests: a server on loopback and a client that sends whatever bytes it is told.
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
    Flow, Moment, PoolNow, ReductionNow, RunState, RunStatus, StreamNow, TapFilter, VolumeNow,
};

use crate::{Access, AnswerLimits, EventCard, EventCopy, Live, Parts, Shelf, TapSource};

/// The token of servers in tests.
pub(crate) const TOKEN: &str = "0123456789abcdef-token";

/// Who may ask a server in tests.
pub(crate) fn access(closed: bool) -> Access {
    let pass = || Token::new("fedcba9876543210-pass").unwrap();
    Access { token: Token::new(TOKEN).unwrap(), pass: pass(), closed, names: vec!["beamline.example".into()] }
}

/// A server on loopback.
pub(crate) fn server(closed: bool, connections_max: usize) -> Live {
    server_with(closed, connections_max, None)
}

/// A server on loopback, with a shelf.
pub(crate) fn server_with(closed: bool, connections_max: usize, shelf: Option<Arc<dyn Shelf>>) -> Live {
    server_of(closed, connections_max, shelf, Arc::new(Seats::default()), AnswerLimits::default())
}

/// A server on loopback, with a shelf whose answers have these limits.
pub(crate) fn server_limited(answers: AnswerLimits, shelf: Arc<dyn Shelf>) -> Live {
    server_of(false, 256, Some(shelf), Arc::new(Seats::default()), answers)
}

/// A server on loopback, with the tap from which it gets its events.
pub(crate) fn tapped(connections_max: usize) -> (Live, Arc<Seats>) {
    let seats = Arc::new(Seats::default());
    let live = server_of(false, connections_max, None, Arc::clone(&seats), AnswerLimits::default());
    (live, seats)
}

fn server_of(
    closed: bool,
    connections_max: usize,
    shelf: Option<Arc<dyn Shelf>>,
    tap: Arc<Seats>,
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
        shelf,
        answers,
        tap: Some(tap),
        on_start: Box::new(|| ()),
    })
    .unwrap()
}

/// An answer, taken apart.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Sends `request` as it is and reads until the server closes the connection.
pub(crate) fn send(address: SocketAddr, request: &[u8]) -> Answer {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // A server that refuses early may close before all was sent.
    let _ = socket.write_all(request);
    let mut bytes = Vec::new();
    let _ = socket.read_to_end(&mut bytes);
    taken_apart(&bytes)
}

pub(crate) fn taken_apart(bytes: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { panic!("no answer: {text:?}") };
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Answer { status: status.unwrap(), head: head.to_ascii_lowercase(), body: body.to_owned() }
}

/// A request with these header lines beside `Host`, and a body.
pub(crate) fn ask(live: &Live, method: &str, path: &str, lines: &[&str], body: &str) -> Answer {
    let mut request =
        format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", live.address());
    lines.iter().for_each(|line| request.push_str(&format!("{line}\r\n")));
    request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    send(live.address(), request.as_bytes())
}

/// A request without anything special.
pub(crate) fn get(live: &Live, path: &str) -> Answer {
    ask(live, "GET", path, &[], "")
}

/// Run control that records.
pub(crate) fn recording() -> RunStatus {
    RunStatus { state: RunState::Recording, revision: 4, run: Some(17), ..RunStatus::default() }
}

/// A moment with `streams` streams on one volume.
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

/// Seats of a tap from which comes what a test puts there.
#[derive(Debug, Default)]
pub(crate) struct Seats {
    pub(crate) taken: Mutex<Vec<(usize, TapFilter)>>,
    pub(crate) missed: AtomicU64,
    copies: Mutex<(VecDeque<EventCopy>, Option<Waker>)>,
}

impl Seats {
    /// An event for all seats.
    pub(crate) fn put(&self, copy: EventCopy) {
        let (copies, waker) = &mut *self.copies.lock().unwrap();
        copies.push_back(copy);
        waker.take().into_iter().for_each(Waker::wake);
    }
}

impl TapSource for Seats {
    fn sit(&self, wish: &TapFilter) -> Result<usize, String> {
        let mut taken = self.taken.lock().unwrap();
        let free = (0..64).find(|seat| taken.iter().all(|(other, _)| other != seat));
        let seat = free.ok_or("all seats are taken")?;
        taken.push((seat, wish.clone()));
        Ok(seat)
    }

    fn leave(&self, seat: usize) {
        self.taken.lock().unwrap().retain(|(other, _)| *other != seat);
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

/// Opens a WebSocket; the answer's head when it is refused.
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

/// The next frame of a server: its opcode and its payload.
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

/// The next event: its head and its payload, which follow each other.
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
