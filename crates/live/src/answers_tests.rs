//! Clients that do not read, over real sockets: memory stays bounded, and the others are served
//! again.
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use keepup_error::Cause;
use rustix::net::{AddressFamily, SocketType};

use super::AnswerLimits;
use crate::testing::{card, get, parse_response, server_limited};
use crate::{Admit, Catalog, EventCopy, Listing, Live};

/// More than the kernel buffers for a connection that is not read.
const EVENT_BYTES: u64 = 16 << 20;
/// Memory for four events.
const BYTES_MAX: u64 = 4 * EVENT_BYTES;
const PATH: &str = "/recordings/00ff/event?stream=3";

/// Catalog of events that counts the memory in use.
#[derive(Default)]
struct Counted {
    held: Arc<AtomicU64>,
    held_max: Arc<AtomicU64>,
}

struct Payload(Vec<u8>, Arc<AtomicU64>);

impl AsRef<[u8]> for Payload {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        self.1.fetch_sub(self.0.len() as u64, SeqCst);
    }
}

impl Catalog for Counted {
    fn list(&self) -> Result<Listing, Cause> {
        Ok(Listing::default())
    }

    fn page(&self, _: &str) -> Result<Option<String>, Cause> {
        Ok(None)
    }

    fn compare(&self, _: &str, _: &str) -> Result<Option<String>, Cause> {
        Ok(None)
    }

    fn recording(&self, _: &str) -> Result<Option<serde_json::Value>, Cause> {
        Ok(None)
    }

    fn event(&self, _: &str, stream: u32, from: u64, admit: Admit<'_>) -> Result<Option<EventCopy>, Cause> {
        if !admit(EVENT_BYTES) {
            return Err("no memory".into());
        }
        let held = self.held.fetch_add(EVENT_BYTES, SeqCst) + EVENT_BYTES;
        self.held_max.fetch_max(held, SeqCst);
        let payload = Payload(vec![0; EVENT_BYTES as usize], Arc::clone(&self.held));
        Ok(Some(EventCopy::new(card(stream, from), payload)))
    }
}

fn limits(send_time: Duration) -> AnswerLimits {
    AnswerLimits { bytes_max: BYTES_MAX, requests_per_peer_max: 2, send_time, bytes_per_second_min: u64::MAX }
}

/// Connects from `127.0.0.LAST` and requests an event.
fn ask_from(live: &Live, last: u8) -> TcpStream {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    let own = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)), 0);
    rustix::net::bind(&socket, &own).unwrap();
    rustix::net::connect(&socket, &live.address()).unwrap();
    let mut socket = TcpStream::from(socket);
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(socket, "GET {PATH} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", live.address()).unwrap();
    socket
}

/// Status and presence of Retry-After of an answer; reads no further.
fn head(socket: &mut TcpStream) -> (u16, bool) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        socket.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let answer = parse_response(&head);
    (answer.status, answer.head.contains("retry-after: "))
}

/// Repeats the request until an event comes.
fn served_at_last(live: &Live, last: u8) {
    let by = Instant::now() + Duration::from_secs(60);
    loop {
        let mut socket = ask_from(live, last);
        if head(&mut socket).0 == 200 {
            let mut body = Vec::new();
            socket.read_to_end(&mut body).unwrap();
            assert_eq!(body.len() as u64, EVENT_BYTES);
            return;
        }
        assert!(Instant::now() < by, "the client was not served again");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn clients_that_do_not_read_take_bounded_memory_and_later_ones_get_retry_after() {
    let catalog = Arc::new(Counted::default());
    let live = server_limited(limits(Duration::from_secs(3600)), catalog.clone());
    let mut slow: Vec<TcpStream> = (1..=60).map(|last| ask_from(&live, last)).collect();
    let heads: Vec<(u16, bool)> = slow.iter_mut().map(head).collect();
    let served = heads.iter().filter(|head| **head == (200, false)).count();
    let refused = heads.iter().filter(|head| **head == (503, true)).count();
    assert_eq!((served, refused), (4, 56), "{heads:?}");
    assert!(catalog.held_max.load(SeqCst) <= BYTES_MAX, "{}", catalog.held_max.load(SeqCst));
    assert_eq!(get(&live, "/health").status, 200);
    // The served clients hang up.
    drop(slow);
    served_at_last(&live, 99);
    assert!(catalog.held_max.load(SeqCst) <= BYTES_MAX);
}

#[test]
fn a_slow_reader_is_disconnected_even_if_it_reads_a_little() {
    let catalog = Arc::new(Counted::default());
    let live = server_limited(limits(Duration::from_secs(2)), catalog.clone());
    let mut slow: Vec<TcpStream> = (1..=4).map(|last| ask_from(&live, last)).collect();
    assert!(slow.iter_mut().all(|socket| head(socket).0 == 200));
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let dripping = std::thread::spawn(move || {
        while !over.load(SeqCst) {
            slow.iter_mut().for_each(|socket| drop(socket.read(&mut [0; 1])));
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    served_at_last(&live, 99);
    is_over.store(true, SeqCst);
    dripping.join().unwrap();
    drop(live);
    assert_eq!(catalog.held.load(SeqCst), 0, "all memory is released");
}

#[test]
fn requests_are_limited_per_peer() {
    let catalog = Arc::new(Counted::default());
    let live = server_limited(limits(Duration::from_secs(3600)), catalog);
    let mut slow: Vec<TcpStream> = (0..3).map(|_| ask_from(&live, 7)).collect();
    let mut heads: Vec<(u16, bool)> = slow.iter_mut().map(head).collect();
    heads.sort_unstable();
    assert_eq!(heads, [(200, false), (200, false), (503, true)]);
    assert_eq!(head(&mut ask_from(&live, 8)), (200, false), "others are served");
    drop(slow);
    served_at_last(&live, 7);
}
