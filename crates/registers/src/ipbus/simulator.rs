//! Simulated target, with memory instead of registers and configurable faults.
//!
//! One thread serves all clients. As IPbus specifies, all clients share one sequence of packet numbers.
mod faults;
mod faulty_path;
mod registers;
mod sequence;
mod state;

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_peer::{Endpoint, Prefix, listen_hint};
use keepup_sys::datagram::{Batch, DATAGRAM_BYTES_MAX, DatagramReceiver};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use self::faults::EveryNth;
pub use self::faults::Faults;
use self::faulty_path::FaultyPath;
pub use self::registers::{IDENTITY, IDENTITY_ADDRESS};
pub use self::state::TargetState;
use super::error::IpbusError;
use super::packet::{IP_UDP_BYTES, PacketHeader, PacketKind, STATUS_BYTES, next_packet_id};
use super::socket::{self, Outbox};

/// Messages received with one system call.
const MESSAGES: usize = 32;
/// Number of waiting replies at which they are sent, even if more requests are waiting.
const REPLIES: usize = 8;
/// Interval between checks of the stop flag.
const STOP_CHECK: Duration = Duration::from_millis(20);
/// Longest delay of a datagram that the next one should overtake.
const HELD_MAX: Duration = Duration::from_millis(2);
/// Largest memory, in words: 1 GiB.
const WORDS_MAX: usize = 1 << 28;
/// Largest total size of delayed replies, in bytes. Further replies are dropped.
const DELAYED_BYTES_MAX: usize = 64 << 20;
/// Largest number of replies kept.
const BUFFERS_MAX: usize = 4096;

/// Settings of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetOptions {
    /// Address to listen on: the first one that works. Port 0 selects a free port.
    pub listen: Endpoint,
    /// Addresses of allowed clients. Empty allows all, on loopback only.
    pub allow: Vec<Prefix>,
    /// Largest packet in bytes, with IP and UDP headers.
    pub mtu_bytes: usize,
    /// Number of replies kept for resending.
    pub buffers: usize,
    /// Words of memory, from address 0.
    pub words: usize,
    /// Simulated faults.
    pub faults: Faults,
}

impl Default for TargetOptions {
    fn default() -> Self {
        Self {
            listen: Endpoint::from((Ipv4Addr::LOCALHOST, 0)),
            allow: Vec::new(),
            mtu_bytes: 1500,
            buffers: 16,
            words: 1 << 20,
            faults: Faults::default(),
        }
    }
}

impl TargetOptions {
    /// Checks the settings.
    ///
    /// # Errors
    /// An invalid setting, or an address other than loopback without `allow`.
    pub fn check(&self) -> Result<(), IpbusError> {
        let within = |what: &str, value: usize, least: usize, most: usize| match value {
            value if (least..=most).contains(&value) => Ok(()),
            value => Err(IpbusError::Options(format!("{what} is {value}, must be {least} to {most}"))),
        };
        if self.allow.is_empty() && !self.listen.is_loopback() {
            return Err(IpbusError::Exposed { endpoint: self.listen.clone() });
        }
        within("mtu", self.mtu_bytes, IP_UDP_BYTES + STATUS_BYTES, DATAGRAM_BYTES_MAX + IP_UDP_BYTES)?;
        within("buffers", self.buffers, 1, BUFFERS_MAX)?;
        within("words", self.words, 1, WORDS_MAX)?;
        let delay_ms = usize::try_from(self.faults.delay.as_millis()).unwrap_or(usize::MAX);
        within("delay in ms", delay_ms, 0, 60_000)
    }
}

/// Counters of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TargetCounters {
    /// Transaction packets executed.
    pub packets: u64,
    /// Transactions executed.
    pub transactions: u64,
    /// Words read.
    pub words_read: u64,
    /// Words written or modified.
    pub words_written: u64,
    /// Failed transactions.
    pub failed: u64,
    /// Status requests answered.
    pub status: u64,
    /// Replies sent again.
    pub resent: u64,
    /// Requests for replies that are not kept.
    pub unknown: u64,
    /// Packets with an unexpected number, which were not executed.
    pub out_of_sequence: u64,
    /// Datagrams that are not IPbus 2.0 packets or exceed the MTU.
    pub foreign: u64,
    /// Simulated losses of requests and replies.
    pub dropped: u64,
    /// Simulated duplicates of requests and replies.
    pub duplicated: u64,
    /// Simulated reordering of requests and replies.
    pub reordered: u64,
    /// Replies with a simulated wrong number.
    pub misnumbered: u64,
    /// Datagrams from addresses that are not allowed.
    pub refused: u64,
    /// Delayed replies dropped because too many were waiting.
    pub overflowed: u64,
    /// Replies that could not be sent.
    pub unsent: u64,
}

impl TargetCounters {
    /// Every counter with its label.
    #[must_use]
    pub fn rows(&self) -> [(&'static str, u64); 17] {
        let Self {
            packets,
            transactions,
            words_read,
            words_written,
            failed,
            status,
            resent,
            unknown,
            out_of_sequence,
            foreign,
            dropped,
            duplicated,
            reordered,
            misnumbered,
            refused,
            overflowed,
            unsent,
        } = *self;
        [
            ("packets processed", packets),
            ("transactions processed", transactions),
            ("words read", words_read),
            ("words written", words_written),
            ("transactions failed", failed),
            ("status requests", status),
            ("replies resent", resent),
            ("resend requests for unknown replies", unknown),
            ("packets out of sequence", out_of_sequence),
            ("datagrams that are not packets", foreign),
            ("datagrams from other addresses", refused),
            ("replies dropped, delay queue full", overflowed),
            ("replies not sent, system error", unsent),
            ("datagrams dropped on purpose", dropped),
            ("datagrams duplicated on purpose", duplicated),
            ("datagrams reordered on purpose", reordered),
            ("replies with a wrong id on purpose", misnumbered),
        ]
    }
}

/// A simulated target with its socket.
pub struct IpbusTarget {
    socket: UdpSocket,
    address: SocketAddr,
    allow: Vec<Prefix>,
    refused: u64,
    batch: Batch,
    requests: FaultyPath,
    responder: Responder,
}

impl IpbusTarget {
    /// Starts to listen.
    ///
    /// # Errors
    /// Invalid settings, or an address that cannot be bound.
    pub fn bind(options: &TargetOptions, clock: Arc<dyn Clock>) -> Result<Self, IpbusError> {
        options.check()?;
        let listen = |source: std::io::Error| {
            let hint = listen_hint(&source);
            IpbusError::Listen { endpoint: options.listen.clone(), source, hint }
        };
        let socket = UdpSocket::bind(&options.listen).map_err(listen)?;
        socket::configure(&socket);
        socket.set_read_timeout(Some(STOP_CHECK)).map_err(listen)?;
        let address = socket.local_addr().map_err(listen)?;
        let faults = &options.faults;
        let mut random = fastrand::Rng::with_seed(faults.seed);
        let requests = FaultyPath::new(faults, faults.drop_requests, &mut random);
        let replies = FaultyPath::new(faults, faults.drop_replies, &mut random);
        let responder = Responder {
            state: TargetState::new(options.mtu_bytes, options.buffers, options.words, faults.bus_error),
            replies,
            wrong_id: EveryNth::new(faults.wrong_id, &mut random),
            misnumbered: 0,
            delay_ns: faults.delay.as_nanos() as u64,
            delayed: DelayQueue::default(),
            outbox: Outbox::new(true),
            reply: Vec::new(),
            clock,
        };
        let (batch, allow) = (Batch::new(MESSAGES, DATAGRAM_BYTES_MAX), options.allow.clone());
        Ok(Self { socket, address, allow, refused: 0, batch, requests, responder })
    }

    /// Local address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves requests until `stop` is set. Returns the counters.
    ///
    /// # Errors
    /// A failed receive.
    pub fn serve(mut self, stop: &AtomicBool) -> Result<TargetCounters, IpbusError> {
        let mut unsent = 0;
        while !stop.load(Ordering::Acquire) {
            if self.wait() {
                unsent += self.receive()?;
            }
            let responder = &mut self.responder;
            let now_ns = responder.clock.now_ns();
            self.requests.release(now_ns, &mut |peer, request| responder.request(peer, request, now_ns));
            responder.release(now_ns);
            unsent += send(&mut responder.outbox, &self.socket);
        }
        Ok(self.counters(unsent))
    }

    /// Receives and answers requests. Returns the number of replies that could not be sent.
    fn receive(&mut self) -> Result<u64, IpbusError> {
        let why = match self.batch.receive(self.socket.as_fd()) {
            Ok(count) => return Ok(self.answer_all(count)),
            Err(why) => why,
        };
        match why.kind() {
            std::io::ErrorKind::WouldBlock
            | std::io::ErrorKind::TimedOut
            | std::io::ErrorKind::Interrupted
            // Caused by a reply to a closed port.
            | std::io::ErrorKind::ConnectionRefused => Ok(0),
            _ => Err(IpbusError::Socket { action: "receive on", target: self.address, source: why }),
        }
    }

    /// Answers the `count` received messages. Returns the number of replies that could not be sent.
    fn answer_all(&mut self, count: usize) -> u64 {
        let (responder, mut unsent) = (&mut self.responder, 0);
        let now_ns = responder.clock.now_ns();
        for index in 0..count {
            let Some((message, peer)) = self.batch.received(index).zip(self.batch.peer(index)) else {
                continue;
            };
            for datagram in message.data.chunks(message.segment_bytes) {
                if !self.allow.is_empty() && !self.allow.iter().any(|prefix| prefix.contains(peer.ip())) {
                    self.refused += 1;
                    continue;
                }
                // A truncated datagram exceeds every MTU.
                let datagram = if message.is_truncated { &[] } else { datagram };
                let mut take = |peer, request: &[u8]| responder.request(peer, request, now_ns);
                self.requests.pass(peer, datagram, now_ns, &mut take);
                if responder.outbox.len() >= REPLIES {
                    unsent += send(&mut responder.outbox, &self.socket);
                }
            }
        }
        unsent
    }

    /// Waits for a request while datagrams are held back. Returns whether to receive: a datagram is ready, or
    /// nothing is held back.
    fn wait(&self) -> bool {
        let due_ns = [self.requests.due_ns(), self.responder.due_ns()].into_iter().flatten().min();
        let Some(due_ns) = due_ns else { return true };
        let wait = Duration::from_nanos(due_ns.saturating_sub(self.responder.clock.now_ns()));
        let mut events = [PollFd::new(&self.socket, PollFlags::IN)];
        let limit = Timespec { tv_sec: 0, tv_nsec: wait.min(STOP_CHECK).as_nanos() as i64 };
        // A signal ends the wait early, which is harmless.
        poll(&mut events, Some(&limit)).is_ok_and(|ready| ready > 0)
    }

    fn counters(&self, unsent: u64) -> TargetCounters {
        let (requests, replies) = (self.requests.counters(), self.responder.replies.counters());
        TargetCounters {
            dropped: requests.dropped + replies.dropped,
            duplicated: requests.duplicated + replies.duplicated,
            reordered: requests.reordered + replies.reordered,
            misnumbered: self.responder.misnumbered,
            refused: self.refused,
            overflowed: self.responder.delayed.overflowed,
            unsent,
            ..self.responder.state.counters()
        }
    }
}

/// Sends waiting replies. Returns how many could not be sent.
fn send(outbox: &mut Outbox, socket: &UdpSocket) -> u64 {
    let waiting = outbox.len() as u64;
    if outbox.flush(socket).is_err() { waiting } else { 0 }
}

/// Due time, address and bytes of a delayed reply.
type Delayed = (u64, SocketAddr, Vec<u8>);

/// Bounded queue of delayed replies, earliest first.
#[derive(Default)]
struct DelayQueue {
    replies: VecDeque<Delayed>,
    /// Memory used by `replies`.
    bytes: usize,
    /// Replies dropped because the queue was full.
    overflowed: u64,
}

impl DelayQueue {
    /// Memory used by a reply.
    fn cost(reply: &[u8]) -> usize {
        reply.len() + size_of::<Delayed>()
    }

    /// Adds a reply, or drops it if the queue is full.
    fn push(&mut self, due_ns: u64, peer: SocketAddr, reply: &[u8]) {
        let bytes = self.bytes + Self::cost(reply);
        if bytes > DELAYED_BYTES_MAX {
            self.overflowed += 1;
            return;
        }
        self.bytes = bytes;
        self.replies.push_back((due_ns, peer, reply.to_vec()));
    }

    /// Due time of the next reply.
    fn due_ns(&self) -> Option<u64> {
        self.replies.front().map(|(due_ns, ..)| *due_ns)
    }

    /// Removes the next reply if it is due.
    fn pop(&mut self, now_ns: u64) -> Option<(SocketAddr, Vec<u8>)> {
        self.due_ns().filter(|due_ns| *due_ns <= now_ns)?;
        let (_, peer, reply) = self.replies.pop_front()?;
        self.bytes -= Self::cost(&reply);
        Some((peer, reply))
    }
}

/// Answers requests, with simulated faults in the replies.
struct Responder {
    state: TargetState,
    replies: FaultyPath,
    wrong_id: EveryNth,
    misnumbered: u64,
    delay_ns: u64,
    delayed: DelayQueue,
    outbox: Outbox,
    reply: Vec<u8>,
    clock: Arc<dyn Clock>,
}

impl Responder {
    /// Answers a request, if it is valid.
    fn request(&mut self, peer: SocketAddr, request: &[u8], now_ns: u64) {
        self.reply.clear();
        if !self.state.answer(peer, request, &mut self.reply) {
            return;
        }
        self.misnumber();
        let Self { replies, delay_ns, delayed, outbox, reply, .. } = self;
        replies.pass(peer, reply, now_ns, &mut |peer, reply| {
            enqueue(outbox, delayed, *delay_ns, (now_ns, peer, reply));
        });
    }

    /// Gives every nth reply the number of the next packet.
    fn misnumber(&mut self) {
        let Ok((header, order)) = PacketHeader::parse(&self.reply) else { return };
        if header.kind != PacketKind::Control || !self.wrong_id.is_now() {
            return;
        }
        self.misnumbered += 1;
        let wrong = PacketHeader::control(next_packet_id(header.id)).word();
        if let Some(place) = self.reply.first_chunk_mut() {
            *place = order.bytes(wrong);
        }
    }

    /// Due time of the next held-back reply.
    fn due_ns(&self) -> Option<u64> {
        [self.replies.due_ns(), self.delayed.due_ns()].into_iter().flatten().min()
    }

    /// Puts due replies into the outbox.
    fn release(&mut self, now_ns: u64) {
        let Self { replies, delay_ns, delayed, outbox, .. } = self;
        replies.release(now_ns, &mut |peer, reply| {
            enqueue(outbox, delayed, *delay_ns, (now_ns, peer, reply));
        });
        while let Some((peer, reply)) = self.delayed.pop(now_ns) {
            self.outbox.put(Some(peer), |bytes| bytes.extend(reply));
        }
    }
}

/// Puts a reply into the outbox or, with a delay, into the delay queue.
fn enqueue(
    outbox: &mut Outbox,
    delayed: &mut DelayQueue,
    delay_ns: u64,
    (now_ns, peer, reply): (u64, SocketAddr, &[u8]),
) {
    match delay_ns {
        0 => outbox.put(Some(peer), |bytes| bytes.extend_from_slice(reply)),
        _ => delayed.push(now_ns + delay_ns, peer, reply),
    }
}

#[cfg(test)]
#[path = "simulator_tests.rs"]
pub(super) mod tests;
