//! Packets in flight, and recovery of lost ones.
//!
//! Invariant: counted from the oldest unanswered packet, no more packets are in flight than the target keeps
//! replies for, so every lost reply can be requested again.
use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_sys::datagram::{Batch, DatagramReceiver};

use super::reply_timeout::ReplyTimeout;
use super::transfer::{ReplyMatch, Transfer};
use super::{ClientCounters, ClientOptions};
use crate::ipbus::error::IpbusError;
use crate::ipbus::packet::{
    PacketError, PacketHeader, PacketKind, Status, Words, next_packet_id, packet_distance,
};
use crate::ipbus::socket::Outbox;

/// A packet in flight.
pub(super) struct InFlight {
    id: u16,
    /// Index of its first word.
    first: usize,
    /// Time when it was put into the outbox, ns.
    sent_ns: u64,
    is_answered: bool,
    lost: Loss,
}

/// The lost part of a packet, as far as known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loss {
    Nothing,
    Request,
    Reply,
}

/// A datagram that answers nothing in flight.
#[derive(Clone, Copy)]
pub(super) enum Unexpected {
    /// Invalid packet.
    Packet(PacketError),
    /// Reply to a packet that is not in flight.
    Id(u16),
    /// Reply with the right packet number and other transactions.
    Content(u16),
}

impl std::fmt::Display for Unexpected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Packet(why) => why.fmt(f),
            Self::Id(id) => write!(f, "a reply to packet {id}, which is not in flight"),
            Self::Content(id) => write!(f, "a reply to packet {id} with the wrong transactions"),
        }
    }
}

/// Result of waiting for an answer.
enum Wait {
    /// An expected answer, with the status if one was received.
    Answered(Option<Status>),
    /// No expected answer within the time limit.
    TimedOut,
}

/// A socket with its packets in flight.
pub(super) struct Connection {
    pub(super) socket: UdpSocket,
    pub(super) target: SocketAddr,
    pub(super) options: ClientOptions,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) batch: Batch,
    pub(super) outbox: Outbox,
    pub(super) in_flight: VecDeque<InFlight>,
    pub(super) window: usize,
    pub(super) next_id: u16,
    /// Whether the packet number that the target expects is unknown.
    pub(super) needs_sync: bool,
    /// Last unexpected datagram since the last answer.
    pub(super) unexpected: Option<Unexpected>,
    /// Receive timeout of the socket.
    pub(super) limit: Duration,
    /// Timeout of replies.
    pub(super) reply_timeout: ReplyTimeout,
    pub(super) counters: ClientCounters,
}

/// Result of a transfer.
#[derive(Default)]
struct Outcome {
    /// Error of the first failed transaction.
    failure: Option<IpbusError>,
}

impl Connection {
    /// Executes all transactions of `transfer`. Sends no further packet after a failed transaction.
    pub(super) fn run(&mut self, transfer: &mut Transfer<'_>) -> Result<(), IpbusError> {
        if self.needs_sync {
            self.synchronize()?;
        }
        let result = self.exchange(transfer);
        // After any error but a failed transaction, it is unknown which packets the target has executed.
        if !self.in_flight.is_empty() {
            self.in_flight.clear();
            self.needs_sync = true;
        }
        result
    }

    fn exchange(&mut self, transfer: &mut Transfer<'_>) -> Result<(), IpbusError> {
        let (mut next, mut outcome) = (0, Outcome::default());
        self.reply_timeout.reset();
        loop {
            let now_ns = self.clock.now_ns();
            while outcome.failure.is_none()
                && self.in_flight.len() < self.window
                && next < transfer.len()
                // Send half of the window at a time, so that target and client work in parallel.
                && self.outbox.len() < self.window.div_ceil(2)
            {
                next += self.send_packet(transfer, next, now_ns);
            }
            let more = next < transfer.len() && self.in_flight.len() < self.window;
            self.flush()?;
            if self.in_flight.is_empty() {
                return outcome.failure.map_or(Ok(()), Err);
            }
            if more && outcome.failure.is_none() {
                continue;
            }
            match self.await_answer(Some(transfer), &mut outcome, false, self.reply_timeout.limit())? {
                Wait::Answered(_) => {}
                Wait::TimedOut => self.recover(transfer, &mut outcome)?,
            }
        }
    }

    /// Puts the packet that begins with word `first` into the outbox. Returns the number of words in it.
    fn send_packet(&mut self, transfer: &Transfer<'_>, first: usize, sent_ns: u64) -> usize {
        let id = self.next_id;
        self.next_id = next_packet_id(id);
        let moved = self.outbox.put(None, |bytes| transfer.encode(id, first, bytes));
        self.in_flight.push_back(InFlight { id, first, sent_ns, is_answered: false, lost: Loss::Nothing });
        self.counters.packets_sent += 1;
        moved
    }

    fn flush(&mut self) -> Result<(), IpbusError> {
        self.outbox.flush(&self.socket).map_err(|source| self.failed("send to", source))
    }

    fn failed(&self, action: &'static str, source: std::io::Error) -> IpbusError {
        IpbusError::Socket { action, target: self.target, source }
    }

    /// Receives until an expected answer arrives or `limit` has passed.
    fn await_answer(
        &mut self,
        mut transfer: Option<&mut Transfer<'_>>,
        outcome: &mut Outcome,
        wants_status: bool,
        limit: Duration,
    ) -> Result<Wait, IpbusError> {
        if limit != self.limit {
            self.socket.set_read_timeout(Some(limit)).map_err(|why| self.failed("wait for", why))?;
            self.limit = limit;
        }
        let begin_ns = self.clock.now_ns();
        loop {
            let count = match self.batch.receive(self.socket.as_fd()) {
                Ok(count) => count,
                Err(why) => match why.kind() {
                    std::io::ErrorKind::Interrupted => continue,
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => {
                        return Ok(Wait::TimedOut);
                    }
                    _ => return Err(self.failed("receive from", why)),
                },
            };
            let now_ns = self.clock.now_ns();
            let (mut answers, mut status) = (0, None);
            for message in (0..count).map_while(|index| self.batch.received(index)) {
                for datagram in message.data.chunks(message.segment_bytes) {
                    let mut handler = ReplyHandler {
                        in_flight: &mut self.in_flight,
                        counters: &mut self.counters,
                        unexpected: &mut self.unexpected,
                        outcome,
                        target: self.target,
                        reply_timeout: &mut self.reply_timeout,
                        now_ns,
                    };
                    match handler.handle(datagram, transfer.as_deref_mut()) {
                        Some(Expected::Answer) => answers += 1,
                        Some(Expected::Status(new)) => status = Some(new),
                        None => {}
                    }
                }
            }
            while self.in_flight.front().is_some_and(|packet| packet.is_answered) {
                self.in_flight.pop_front();
            }
            if answers > 0 {
                self.reply_timeout.reset();
                self.unexpected = None;
            }
            if answers > 0 || (wants_status && status.is_some()) {
                return Ok(Wait::Answered(status));
            }
            if now_ns.saturating_sub(begin_ns) > limit.as_nanos() as u64 {
                return Ok(Wait::TimedOut);
            }
        }
    }

    /// Finds out what was lost. Sends lost requests again, and requests lost replies again.
    fn recover(&mut self, transfer: &mut Transfer<'_>, outcome: &mut Outcome) -> Result<(), IpbusError> {
        self.counters.timeouts += 1;
        if self.reply_timeout.expired() > self.options.attempts {
            return Err(self.gave_up());
        }
        let Some(status) = self.ask_status(Some(transfer), outcome)? else { return Ok(()) };
        let Some(oldest) = self.in_flight.front().map(|packet| packet.id) else { return Ok(()) };
        let done = packet_distance(oldest, status.next_id);
        if status.next_id == 0 || done > self.in_flight.len() {
            // A late reply to an old status request is outdated.
            let is_old = packet_distance(status.next_id, oldest) <= super::WINDOW_MAX && status.next_id != 0;
            if is_old && self.reply_timeout.attempts() < self.options.attempts {
                return Ok(());
            }
            return Err(IpbusError::Sequence { target: self.target, expected: status.next_id, ours: oldest });
        }
        let copies = self.reply_timeout.attempts().max(1);
        for _ in 0..copies {
            for (index, packet) in self.in_flight.iter_mut().enumerate().filter(|(_, p)| !p.is_answered) {
                if index < done {
                    self.outbox.put(None, |bytes| bytes.extend(PacketHeader::resend(packet.id)));
                    self.counters.replies_asked += 1;
                    packet.lost = Loss::Reply;
                } else {
                    let write = |bytes: &mut Vec<u8>| transfer.encode(packet.id, packet.first, bytes);
                    self.outbox.put(None, write);
                    self.counters.packets_resent += 1;
                    packet.lost = Loss::Request;
                }
            }
        }
        self.flush()
    }

    fn gave_up(&self) -> IpbusError {
        let id = self.in_flight.front().map_or(self.next_id, |packet| packet.id);
        let why = match &self.unexpected {
            Some(unexpected) => format!("received {unexpected}"),
            None => "no answer".to_owned(),
        };
        let (attempts, timeout) = (self.options.attempts, self.options.timeout);
        IpbusError::GaveUp { target: self.target, id, attempts, timeout, why }
    }

    /// Requests the target's status until it answers; `None` if a packet was answered first.
    fn ask_status(
        &mut self,
        mut transfer: Option<&mut Transfer<'_>>,
        outcome: &mut Outcome,
    ) -> Result<Option<Status>, IpbusError> {
        let (sent_before, mut reply_timeout) =
            (self.counters.status_sent, self.reply_timeout.for_new_request());
        while reply_timeout.attempts() < self.options.attempts {
            for _ in 0..=reply_timeout.attempts() {
                self.outbox.put(None, |bytes| bytes.extend(Status::request()));
                self.counters.status_sent += 1;
            }
            self.flush()?;
            if let Wait::Answered(status) =
                self.await_answer(transfer.as_deref_mut(), outcome, true, reply_timeout.limit())?
            {
                return Ok(status);
            }
            reply_timeout.expired();
        }
        match (self.unexpected, transfer) {
            (_, Some(_)) => Err(self.gave_up()),
            (Some(unexpected), None) => {
                Err(IpbusError::Foreign { target: self.target, what: unexpected.to_string() })
            }
            (None, None) => Err(IpbusError::Silent {
                target: self.target,
                requests: self.counters.status_sent - sent_before,
                waited: self.options.timeout.saturating_mul(self.options.attempts),
            }),
        }
    }

    /// Adopts the packet number that the target expects.
    pub(super) fn synchronize(&mut self) -> Result<Status, IpbusError> {
        let mut outcome = Outcome::default();
        self.unexpected = None;
        let status = self.ask_status(None, &mut outcome)?;
        // Nothing is in flight, so only a status can have ended the wait.
        let status = status.ok_or(IpbusError::Silent {
            target: self.target,
            requests: self.counters.status_sent,
            waited: Duration::ZERO,
        })?;
        if status.next_id == 0 {
            let what = "it does not number packets: it expects packet 0".to_owned();
            return Err(IpbusError::Status { target: self.target, what });
        }
        (self.next_id, self.needs_sync) = (status.next_id, false);
        Ok(status)
    }
}

/// An expected datagram.
enum Expected {
    Answer,
    Status(Status),
}

/// Context for handling a datagram.
struct ReplyHandler<'a> {
    in_flight: &'a mut VecDeque<InFlight>,
    counters: &'a mut ClientCounters,
    unexpected: &'a mut Option<Unexpected>,
    outcome: &'a mut Outcome,
    target: SocketAddr,
    reply_timeout: &'a mut ReplyTimeout,
    now_ns: u64,
}

impl ReplyHandler<'_> {
    fn handle(&mut self, datagram: &[u8], transfer: Option<&mut Transfer<'_>>) -> Option<Expected> {
        let (header, order) = match PacketHeader::parse(datagram) {
            Ok(found) => found,
            Err(why) => return self.ignore(Unexpected::Packet(why)),
        };
        match header.kind {
            PacketKind::Control => {}
            PacketKind::Status => {
                return match Status::from_reply(datagram) {
                    Ok(status) => Some(Expected::Status(status)),
                    Err(why) => self.ignore(Unexpected::Packet(why)),
                };
            }
            PacketKind::Resend => {
                return self.ignore(Unexpected::Packet(PacketError::Header(header.word())));
            }
        }
        let packet = self.in_flight.iter_mut().find(|packet| packet.id == header.id);
        let (Some(packet), Some(transfer)) = (packet, transfer) else {
            return self.ignore(Unexpected::Id(header.id));
        };
        if packet.is_answered {
            self.counters.ignored += 1;
            return None;
        }
        match transfer.decode_reply(packet.id, packet.first, Words::after_header(datagram, order)) {
            ReplyMatch::Complete => {}
            ReplyMatch::Failed(address, info) => {
                let (target, kind) = (self.target, transfer.kind);
                let failure = IpbusError::Bus { target, kind, address, info };
                self.outcome.failure.get_or_insert(failure);
            }
            ReplyMatch::Mismatch(why) => {
                let unexpected = why.map_or(Unexpected::Content(header.id), Unexpected::Packet);
                return self.ignore(unexpected);
            }
        }
        packet.is_answered = true;
        match packet.lost {
            Loss::Nothing => self.reply_timeout.record(self.now_ns.saturating_sub(packet.sent_ns)),
            Loss::Request => self.counters.recovered_requests += 1,
            Loss::Reply => self.counters.recovered_replies += 1,
        }
        Some(Expected::Answer)
    }

    /// Counts an unexpected datagram, and keeps it for the error message.
    fn ignore(&mut self, unexpected: Unexpected) -> Option<Expected> {
        self.counters.ignored += 1;
        *self.unexpected = Some(unexpected);
        None
    }
}
