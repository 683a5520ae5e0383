//! Packets under way: sent, answered, and found again when they were lost.
//!
//! Invariant: no more packets are under way than the target keeps replies for, counted from the oldest
//! without an answer, so that each reply can be asked for again.
use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_sys::datagram::{Batch, DatagramReceiver};

use super::patience::Patience;
use super::transfer::{Taken, Transfer};
use super::{ClientCounters, ClientOptions};
use crate::ipbus::error::IpbusError;
use crate::ipbus::packet::{PacketError, PacketHeader, PacketKind, Status, Words, following, steps};
use crate::ipbus::socket::Outbox;

/// A packet under way.
pub(super) struct UnderWay {
    id: u16,
    /// Its first word.
    first: usize,
    /// When it was put into the outbox, ns.
    sent_ns: u64,
    is_answered: bool,
    lost: Lost,
}

/// What is known to have been lost of a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lost {
    Nothing,
    Request,
    Reply,
}

/// Something that was no answer to what is under way.
#[derive(Clone, Copy)]
pub(super) enum Odd {
    /// No packet, or one that makes no sense.
    Packet(PacketError),
    /// The reply to another packet.
    Id(u16),
    /// A reply with the right number and other transactions.
    Content(u16),
}

impl std::fmt::Display for Odd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Packet(why) => why.fmt(f),
            Self::Id(id) => write!(f, "a reply to packet {id}, which is not under way"),
            Self::Content(id) => write!(f, "a reply to packet {id} with other transactions than its own"),
        }
    }
}

/// What a turn of receiving brought.
enum Turn {
    /// Something that was waited for.
    Heard(Option<Status>),
    /// Nothing of that kind within the time limit.
    TimedOut,
}

/// The socket and what is under way on it.
pub(super) struct Link {
    pub(super) socket: UdpSocket,
    pub(super) target: SocketAddr,
    pub(super) options: ClientOptions,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) batch: Batch,
    pub(super) outbox: Outbox,
    pub(super) under_way: VecDeque<UnderWay>,
    pub(super) window: usize,
    pub(super) next_id: u16,
    /// Whether the target may expect another number than the next.
    pub(super) is_lost: bool,
    /// The last datagram that was no answer, since the last one that was.
    pub(super) odd: Option<Odd>,
    /// How long the socket waits.
    pub(super) limit: Duration,
    /// How long is waited for an answer.
    pub(super) patience: Patience,
    pub(super) counters: ClientCounters,
}

/// What came back of a transfer.
#[derive(Default)]
struct Outcome {
    /// The first transaction that failed.
    failure: Option<IpbusError>,
}

impl Link {
    /// Does all transactions of `transfer`. After a failed one nothing more is begun.
    pub(super) fn run(&mut self, transfer: &mut Transfer<'_>) -> Result<(), IpbusError> {
        if self.is_lost {
            self.synchronize()?;
        }
        let result = self.exchange(transfer);
        // After a transaction that failed all is answered; after anything else nobody knows.
        if !self.under_way.is_empty() {
            self.under_way.clear();
            self.is_lost = true;
        }
        result
    }

    fn exchange(&mut self, transfer: &mut Transfer<'_>) -> Result<(), IpbusError> {
        let (mut next, mut outcome) = (0, Outcome::default());
        self.patience.answered();
        loop {
            let now_ns = self.clock.now_ns();
            while outcome.failure.is_none()
                && self.under_way.len() < self.window
                && next < transfer.len()
                // Half of the window at a time: target and client then work at the same time.
                && self.outbox.len() < self.window.div_ceil(2)
            {
                next += self.begin(transfer, next, now_ns);
            }
            let more = next < transfer.len() && self.under_way.len() < self.window;
            self.flush()?;
            if self.under_way.is_empty() {
                return outcome.failure.map_or(Ok(()), Err);
            }
            if more && outcome.failure.is_none() {
                continue;
            }
            match self.hear(Some(transfer), &mut outcome, false, self.patience.limit())? {
                Turn::Heard(_) => {}
                Turn::TimedOut => self.recover(transfer, &mut outcome)?,
            }
        }
    }

    /// Puts the packet that begins with word `first` into the outbox; returns how many words it moves.
    fn begin(&mut self, transfer: &Transfer<'_>, first: usize, sent_ns: u64) -> usize {
        let id = self.next_id;
        self.next_id = following(id);
        let moved = self.outbox.put(None, |bytes| transfer.write(id, first, bytes));
        self.under_way.push_back(UnderWay { id, first, sent_ns, is_answered: false, lost: Lost::Nothing });
        self.counters.packets_sent += 1;
        moved
    }

    fn flush(&mut self) -> Result<(), IpbusError> {
        self.outbox.flush(&self.socket).map_err(|source| self.failed("send to", source))
    }

    fn failed(&self, action: &'static str, source: std::io::Error) -> IpbusError {
        IpbusError::Socket { action, target: self.target, source }
    }

    /// Receives until something that is waited for has come, or nothing of that kind in time.
    fn hear(
        &mut self,
        mut transfer: Option<&mut Transfer<'_>>,
        outcome: &mut Outcome,
        wants_status: bool,
        limit: Duration,
    ) -> Result<Turn, IpbusError> {
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
                        return Ok(Turn::TimedOut);
                    }
                    _ => return Err(self.failed("receive from", why)),
                },
            };
            let now_ns = self.clock.now_ns();
            let (mut answers, mut status) = (0, None);
            for message in (0..count).map_while(|index| self.batch.received(index)) {
                for datagram in message.data.chunks(message.segment_bytes) {
                    let mut desk = Desk {
                        under_way: &mut self.under_way,
                        counters: &mut self.counters,
                        odd: &mut self.odd,
                        outcome,
                        target: self.target,
                        patience: &mut self.patience,
                        now_ns,
                    };
                    match desk.take(datagram, transfer.as_deref_mut()) {
                        Some(News::Answer) => answers += 1,
                        Some(News::Status(new)) => status = Some(new),
                        None => {}
                    }
                }
            }
            while self.under_way.front().is_some_and(|packet| packet.is_answered) {
                self.under_way.pop_front();
            }
            if answers > 0 {
                self.patience.answered();
                self.odd = None;
            }
            if answers > 0 || (wants_status && status.is_some()) {
                return Ok(Turn::Heard(status));
            }
            if now_ns.saturating_sub(begin_ns) > limit.as_nanos() as u64 {
                return Ok(Turn::TimedOut);
            }
        }
    }

    /// Finds out what was lost, and sends or asks for it again.
    fn recover(&mut self, transfer: &mut Transfer<'_>, outcome: &mut Outcome) -> Result<(), IpbusError> {
        self.counters.timeouts += 1;
        if self.patience.waited() > self.options.attempts {
            return Err(self.gave_up());
        }
        let Some(status) = self.ask_status(Some(transfer), outcome)? else { return Ok(()) };
        let Some(oldest) = self.under_way.front().map(|packet| packet.id) else { return Ok(()) };
        let done = steps(oldest, status.next_id);
        if status.next_id == 0 || done > self.under_way.len() {
            // An old status that comes late says less than what was answered since.
            let is_old = steps(status.next_id, oldest) <= super::WINDOW_MAX && status.next_id != 0;
            if is_old && self.patience.attempts() < self.options.attempts {
                return Ok(());
            }
            return Err(IpbusError::Sequence { target: self.target, expected: status.next_id, ours: oldest });
        }
        let copies = self.patience.attempts().max(1);
        for _ in 0..copies {
            for (index, packet) in self.under_way.iter_mut().enumerate().filter(|(_, p)| !p.is_answered) {
                if index < done {
                    self.outbox.put(None, |bytes| bytes.extend(PacketHeader::resend(packet.id)));
                    self.counters.replies_asked += 1;
                    packet.lost = Lost::Reply;
                } else {
                    let write = |bytes: &mut Vec<u8>| transfer.write(packet.id, packet.first, bytes);
                    self.outbox.put(None, write);
                    self.counters.packets_resent += 1;
                    packet.lost = Lost::Request;
                }
            }
        }
        self.flush()
    }

    fn gave_up(&self) -> IpbusError {
        let id = self.under_way.front().map_or(self.next_id, |packet| packet.id);
        let why = match &self.odd {
            Some(odd) => format!("what came instead was {odd}"),
            None => "no answer came".to_owned(),
        };
        let (attempts, timeout) = (self.options.attempts, self.options.timeout);
        IpbusError::GaveUp { target: self.target, id, attempts, timeout, why }
    }

    /// Asks the target for its status until it answers; none when an answer to a packet came first.
    fn ask_status(
        &mut self,
        mut transfer: Option<&mut Transfer<'_>>,
        outcome: &mut Outcome,
    ) -> Result<Option<Status>, IpbusError> {
        let (sent_before, mut patience) = (self.counters.status_sent, self.patience.anew());
        while patience.attempts() < self.options.attempts {
            for _ in 0..=patience.attempts() {
                self.outbox.put(None, |bytes| bytes.extend(Status::request()));
                self.counters.status_sent += 1;
            }
            self.flush()?;
            if let Turn::Heard(status) =
                self.hear(transfer.as_deref_mut(), outcome, true, patience.limit())?
            {
                return Ok(status);
            }
            patience.waited();
        }
        match (self.odd, transfer) {
            (_, Some(_)) => Err(self.gave_up()),
            (Some(odd), None) => Err(IpbusError::Foreign { target: self.target, what: odd.to_string() }),
            (None, None) => Err(IpbusError::Silent {
                target: self.target,
                requests: self.counters.status_sent - sent_before,
                waited: self.options.timeout.saturating_mul(self.options.attempts),
            }),
        }
    }

    /// Takes the number that the target expects.
    pub(super) fn synchronize(&mut self) -> Result<Status, IpbusError> {
        let mut outcome = Outcome::default();
        self.odd = None;
        let status = self.ask_status(None, &mut outcome)?;
        // Nothing is under way, so nothing but a status can have ended the wait.
        let status = status.ok_or(IpbusError::Silent {
            target: self.target,
            requests: self.counters.status_sent,
            waited: Duration::ZERO,
        })?;
        if status.next_id == 0 {
            let what = "it expects packet 0, so it does not number packets".to_owned();
            return Err(IpbusError::Status { target: self.target, what });
        }
        (self.next_id, self.is_lost) = (status.next_id, false);
        Ok(status)
    }
}

/// What a datagram was.
enum News {
    Answer,
    Status(Status),
}

/// What is needed to look at a datagram.
struct Desk<'a> {
    under_way: &'a mut VecDeque<UnderWay>,
    counters: &'a mut ClientCounters,
    odd: &'a mut Option<Odd>,
    outcome: &'a mut Outcome,
    target: SocketAddr,
    patience: &'a mut Patience,
    now_ns: u64,
}

impl Desk<'_> {
    fn take(&mut self, datagram: &[u8], transfer: Option<&mut Transfer<'_>>) -> Option<News> {
        let (header, order) = match PacketHeader::of(datagram) {
            Ok(found) => found,
            Err(why) => return self.ignore(Odd::Packet(why)),
        };
        match header.kind {
            PacketKind::Control => {}
            PacketKind::Status => {
                return match Status::from_reply(datagram) {
                    Ok(status) => Some(News::Status(status)),
                    Err(why) => self.ignore(Odd::Packet(why)),
                };
            }
            PacketKind::Resend => {
                return self.ignore(Odd::Packet(PacketError::Header(header.word())));
            }
        }
        let packet = self.under_way.iter_mut().find(|packet| packet.id == header.id);
        let (Some(packet), Some(transfer)) = (packet, transfer) else {
            return self.ignore(Odd::Id(header.id));
        };
        if packet.is_answered {
            self.counters.ignored += 1;
            return None;
        }
        match transfer.take(packet.id, packet.first, Words::after_header(datagram, order)) {
            Taken::Whole => {}
            Taken::Failed(address, info) => {
                let (target, kind) = (self.target, transfer.kind);
                let failure = IpbusError::Bus { target, kind, address, info };
                self.outcome.failure.get_or_insert(failure);
            }
            Taken::Foreign(why) => {
                let odd = why.map_or(Odd::Content(header.id), Odd::Packet);
                return self.ignore(odd);
            }
        }
        packet.is_answered = true;
        match packet.lost {
            Lost::Nothing => self.patience.took(self.now_ns.saturating_sub(packet.sent_ns)),
            Lost::Request => self.counters.recovered_requests += 1,
            Lost::Reply => self.counters.recovered_replies += 1,
        }
        Some(News::Answer)
    }

    /// Something that is no answer: counted, and kept in case nothing else comes.
    fn ignore(&mut self, odd: Odd) -> Option<News> {
        self.counters.ignored += 1;
        *self.odd = Some(odd);
        None
    }
}
