//! A simulated target: memory in place of registers, and the faults that are asked for.
//!
//! One thread answers everybody. The sequence of numbers is the target's and not a client's, as IPbus has it.
mod faults;
mod lane;
mod machine;
mod registers;
mod sequence;

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

pub use self::faults::Faults;
use self::faults::Nth;
use self::lane::Lane;
pub use self::machine::Machine;
pub use self::registers::{IDENTITY, IDENTITY_ADDRESS};
use super::error::IpbusError;
use super::packet::{IP_UDP_BYTES, PacketHeader, PacketKind, STATUS_BYTES, following};
use super::socket::{self, Outbox};

/// Messages that are taken from the kernel with one call.
const MESSAGES: usize = 32;
/// Replies that are sent at the latest, though more is waiting to be answered.
const REPLIES: usize = 8;
/// How long the target waits for a datagram before it looks whether it should end.
const PATIENCE: Duration = Duration::from_millis(20);
/// A datagram that is held back for the next to overtake it is held for no longer than this.
const HELD_MAX: Duration = Duration::from_millis(2);
/// Words of memory at most: 1 GiB.
const WORDS_MAX: usize = 1 << 28;
/// Memory for replies that are delayed, in bytes: more are dropped.
const DELAYED_BYTES_MAX: usize = 64 << 20;
/// Replies that are kept at most.
const BUFFERS_MAX: usize = 4096;

/// What a target is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetOptions {
    /// Where it listens: the first address that works; a free port with port 0.
    pub listen: Endpoint,
    /// Who is answered; all where it listens on loopback and this is empty.
    pub allow: Vec<Prefix>,
    /// Largest packet of IP that it takes and sends, in bytes, with the headers of IP and UDP.
    pub mtu_bytes: usize,
    /// Replies that it keeps.
    pub buffers: usize,
    /// Words of memory, from address 0 on.
    pub words: usize,
    /// What it does wrong.
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
    /// Whether a target can be like this.
    ///
    /// # Errors
    /// The first setting that makes no sense, or an address beyond loopback without `allow`.
    pub fn check(&self) -> Result<(), IpbusError> {
        let within = |what: &str, value: usize, least: usize, most: usize| match value {
            value if (least..=most).contains(&value) => Ok(()),
            value => Err(IpbusError::Options(format!("{what} of {value}; possible are {least} to {most}"))),
        };
        if self.allow.is_empty() && !self.listen.is_loopback() {
            return Err(IpbusError::Exposed { endpoint: self.listen.clone() });
        }
        within("an MTU", self.mtu_bytes, IP_UDP_BYTES + STATUS_BYTES, DATAGRAM_BYTES_MAX + IP_UDP_BYTES)?;
        within("a number of buffers", self.buffers, 1, BUFFERS_MAX)?;
        within("a number of words", self.words, 1, WORDS_MAX)?;
        let delay_ms = usize::try_from(self.faults.delay.as_millis()).unwrap_or(usize::MAX);
        within("a delay in ms", delay_ms, 0, 60_000)
    }
}

/// What a target saw and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TargetCounters {
    /// Packets of transactions that were done.
    pub packets: u64,
    /// Transactions that were done.
    pub transactions: u64,
    /// Words that were read.
    pub words_read: u64,
    /// Words that were written or changed.
    pub words_written: u64,
    /// Transactions that failed.
    pub failed: u64,
    /// Status packets that were answered.
    pub status: u64,
    /// Replies that were sent again.
    pub resent: u64,
    /// Replies that were asked for again and are no longer kept, or never were there.
    pub unknown: u64,
    /// Packets with another number than the next, which were not done.
    pub out_of_sequence: u64,
    /// Datagrams that are no packet of IPbus 2.0, or longer than the MTU.
    pub foreign: u64,
    /// Requests and replies that were dropped on purpose.
    pub dropped: u64,
    /// Requests and replies that came or went twice on purpose.
    pub duplicated: u64,
    /// Requests and replies that were overtaken on purpose.
    pub reordered: u64,
    /// Replies with a wrong number, on purpose.
    pub misnumbered: u64,
    /// Datagrams from addresses that are not answered.
    pub refused: u64,
    /// Replies that were dropped because too many were delayed.
    pub overflowed: u64,
    /// Replies that the system did not take.
    pub unsent: u64,
}

/// A target that can be spoken to.
pub struct IpbusTarget {
    socket: UdpSocket,
    address: SocketAddr,
    allow: Vec<Prefix>,
    refused: u64,
    batch: Batch,
    requests: Lane,
    desk: Desk,
}

impl IpbusTarget {
    /// Listens.
    ///
    /// # Errors
    /// Settings that make no sense, an address that cannot be listened at.
    pub fn bind(options: &TargetOptions, clock: Arc<dyn Clock>) -> Result<Self, IpbusError> {
        options.check()?;
        let listen = |source: std::io::Error| {
            let hint = listen_hint(&source);
            IpbusError::Listen { endpoint: options.listen.clone(), source, hint }
        };
        let socket = UdpSocket::bind(&options.listen).map_err(listen)?;
        socket::prepare(&socket);
        socket.set_read_timeout(Some(PATIENCE)).map_err(listen)?;
        let address = socket.local_addr().map_err(listen)?;
        let faults = &options.faults;
        let mut random = fastrand::Rng::with_seed(faults.seed);
        let requests = Lane::new(faults, faults.drop_requests, &mut random);
        let replies = Lane::new(faults, faults.drop_replies, &mut random);
        let desk = Desk {
            machine: Machine::new(options.mtu_bytes, options.buffers, options.words, faults.bus_error),
            replies,
            wrong_id: Nth::new(faults.wrong_id, &mut random),
            misnumbered: 0,
            delay_ns: faults.delay.as_nanos() as u64,
            delayed: DelayQueue::default(),
            outbox: Outbox::new(true),
            reply: Vec::new(),
            clock,
        };
        let (batch, allow) = (Batch::new(MESSAGES, DATAGRAM_BYTES_MAX), options.allow.clone());
        Ok(Self { socket, address, allow, refused: 0, batch, requests, desk })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until told to stop; what it saw and did.
    ///
    /// # Errors
    /// When nothing can be received any more.
    pub fn serve(mut self, stop: &AtomicBool) -> Result<TargetCounters, IpbusError> {
        let mut unsent = 0;
        while !stop.load(Ordering::Acquire) {
            if self.wait() {
                unsent += self.receive()?;
            }
            let desk = &mut self.desk;
            let now_ns = desk.clock.now_ns();
            self.requests.release(now_ns, &mut |peer, request| desk.request(peer, request, now_ns));
            desk.release(now_ns);
            unsent += send(&mut desk.outbox, &self.socket);
        }
        Ok(self.counters(unsent))
    }

    /// Takes what has come and answers it; how many replies were not taken.
    fn receive(&mut self) -> Result<u64, IpbusError> {
        let why = match self.batch.receive(self.socket.as_fd()) {
            Ok(count) => return Ok(self.answer_all(count)),
            Err(why) => why,
        };
        match why.kind() {
            std::io::ErrorKind::WouldBlock
            | std::io::ErrorKind::TimedOut
            | std::io::ErrorKind::Interrupted
            // What a peer that has gone made the kernel say.
            | std::io::ErrorKind::ConnectionRefused => Ok(0),
            _ => Err(IpbusError::Socket { action: "receive at", target: self.address, source: why }),
        }
    }

    /// Answers the `count` messages that the last call brought; how many replies were not taken.
    fn answer_all(&mut self, count: usize) -> u64 {
        let (desk, mut unsent) = (&mut self.desk, 0);
        let now_ns = desk.clock.now_ns();
        for index in 0..count {
            let Some((message, peer)) = self.batch.received(index).zip(self.batch.peer(index)) else {
                continue;
            };
            for datagram in message.data.chunks(message.segment_bytes) {
                if !self.allow.is_empty() && !self.allow.iter().any(|prefix| prefix.contains(peer.ip())) {
                    self.refused += 1;
                    continue;
                }
                // What was cut off is longer than any MTU.
                let datagram = if message.is_truncated { &[] } else { datagram };
                let mut take = |peer, request: &[u8]| desk.request(peer, request, now_ns);
                self.requests.pass(peer, datagram, now_ns, &mut take);
                if desk.outbox.len() >= REPLIES {
                    unsent += send(&mut desk.outbox, &self.socket);
                }
            }
        }
        unsent
    }

    /// Waits until something that was held back is due. Returns whether to receive: a datagram is there, or
    /// nothing is held back and nothing else is to be done.
    fn wait(&self) -> bool {
        let due_ns = [self.requests.due_ns(), self.desk.due_ns()].into_iter().flatten().min();
        let Some(due_ns) = due_ns else { return true };
        let wait = Duration::from_nanos(due_ns.saturating_sub(self.desk.clock.now_ns()));
        let mut events = [PollFd::new(&self.socket, PollFlags::IN)];
        let limit = Timespec { tv_sec: 0, tv_nsec: wait.min(PATIENCE).as_nanos() as i64 };
        // A signal ends it early, which does no harm.
        poll(&mut events, Some(&limit)).is_ok_and(|ready| ready > 0)
    }

    fn counters(&self, unsent: u64) -> TargetCounters {
        let (requests, replies) = (self.requests.counters(), self.desk.replies.counters());
        TargetCounters {
            dropped: requests.dropped + replies.dropped,
            duplicated: requests.duplicated + replies.duplicated,
            reordered: requests.reordered + replies.reordered,
            misnumbered: self.desk.misnumbered,
            refused: self.refused,
            overflowed: self.desk.delayed.overflowed,
            unsent,
            ..self.desk.machine.counters()
        }
    }
}

/// Sends what waits; how many the system did not take, if any.
fn send(outbox: &mut Outbox, socket: &UdpSocket) -> u64 {
    let waiting = outbox.len() as u64;
    if outbox.flush(socket).is_err() { waiting } else { 0 }
}

/// A reply that is not due yet, and when it is.
type Delayed = (u64, SocketAddr, Vec<u8>);

/// Replies that are not due yet, in the order in which they are. Their memory is bounded.
#[derive(Default)]
struct DelayQueue {
    replies: VecDeque<Delayed>,
    /// Memory of `replies`.
    bytes: usize,
    /// Replies that found no room.
    overflowed: u64,
}

impl DelayQueue {
    /// Memory of a reply.
    fn cost(reply: &[u8]) -> usize {
        reply.len() + size_of::<Delayed>()
    }

    /// Takes a reply, or drops it when too many wait.
    fn push(&mut self, due_ns: u64, peer: SocketAddr, reply: &[u8]) {
        let bytes = self.bytes + Self::cost(reply);
        if bytes > DELAYED_BYTES_MAX {
            self.overflowed += 1;
            return;
        }
        self.bytes = bytes;
        self.replies.push_back((due_ns, peer, reply.to_vec()));
    }

    /// When the next reply is due.
    fn due_ns(&self) -> Option<u64> {
        self.replies.front().map(|(due_ns, ..)| *due_ns)
    }

    /// The next reply, if it is due.
    fn pop(&mut self, now_ns: u64) -> Option<(SocketAddr, Vec<u8>)> {
        self.due_ns().filter(|due_ns| *due_ns <= now_ns)?;
        let (_, peer, reply) = self.replies.pop_front()?;
        self.bytes -= Self::cost(&reply);
        Some((peer, reply))
    }
}

/// What answers requests, and does with replies what it should not.
struct Desk {
    machine: Machine,
    replies: Lane,
    wrong_id: Nth,
    misnumbered: u64,
    delay_ns: u64,
    delayed: DelayQueue,
    outbox: Outbox,
    reply: Vec<u8>,
    clock: Arc<dyn Clock>,
}

impl Desk {
    /// Answers one request, if it deserves an answer.
    fn request(&mut self, peer: SocketAddr, request: &[u8], now_ns: u64) {
        self.reply.clear();
        if !self.machine.answer(peer, request, &mut self.reply) {
            return;
        }
        self.misnumber();
        let Self { replies, delay_ns, delayed, outbox, reply, .. } = self;
        replies.pass(peer, reply, now_ns, &mut |peer, reply| {
            post(outbox, delayed, *delay_ns, (now_ns, peer, reply));
        });
    }

    /// Gives every nth reply to a packet the number of the next.
    fn misnumber(&mut self) {
        let Ok((header, order)) = PacketHeader::of(&self.reply) else { return };
        if header.kind != PacketKind::Control || !self.wrong_id.is_now() {
            return;
        }
        self.misnumbered += 1;
        let wrong = PacketHeader::control(following(header.id)).word();
        if let Some(place) = self.reply.first_chunk_mut() {
            *place = order.bytes(wrong);
        }
    }

    /// When something that was held back is due.
    fn due_ns(&self) -> Option<u64> {
        [self.replies.due_ns(), self.delayed.due_ns()].into_iter().flatten().min()
    }

    /// Puts what is due into the outbox.
    fn release(&mut self, now_ns: u64) {
        let Self { replies, delay_ns, delayed, outbox, .. } = self;
        replies.release(now_ns, &mut |peer, reply| {
            post(outbox, delayed, *delay_ns, (now_ns, peer, reply));
        });
        while let Some((peer, reply)) = self.delayed.pop(now_ns) {
            self.outbox.put(Some(peer), |bytes| bytes.extend(reply));
        }
    }
}

/// Has a reply sent, at once or later.
fn post(
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
