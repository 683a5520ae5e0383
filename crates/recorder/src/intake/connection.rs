//! One connection: its protocol state, and what remains to be sent to it.
//!
//! Invariant: the memory of a connection is bounded: one control message, one staging buffer of
//! bytes that arrived before a block was free, one outbox. Control messages of strangers are bounded
//! together (`strangers.rs`).
use std::os::fd::{AsFd, OwnedFd};

use keepup_recording::crc::Crc32;
use keepup_sources::SourceAddress;
use keepup_stream::ledger::Count;
use keepup_stream::wire::{ControlMessage, EventHead, HEADER_BYTES, Session};
use keepup_sys::socket::{set_receive_low_water, unsent_bytes};

use super::detector::Detector;

/// Most bytes that wait for a client that does not read; later acknowledgements are merged.
const OUTBOX_BYTES: usize = 64 << 10;
/// Events of at least this many bytes are received straight into their block.
pub(super) const IN_PLACE_BYTES: u64 = 32 << 10;

/// Highest receive low-water mark, in bytes: the data should still be in the cache when it is
/// copied.
const LOW_WATER_MAX: usize = 512 << 10;
/// Receive low-water mark for small events, in bytes.
const LOW_WATER_SMALL: usize = 32 << 10;

/// Meaning of a connection's next bytes.
pub(super) enum Expect {
    /// A frame's header.
    Header,
    /// The payload of a control frame.
    Control { length: usize, bytes: Vec<u8> },
    /// An event that waits for a free block.
    Blocked { slot: usize, head: EventHead },
    /// The payload of an event, received into its block.
    Event(Partial),
}

/// A partly received event.
pub(super) struct Partial {
    pub(super) slot: usize,
    pub(super) head: EventHead,
    pub(super) received: usize,
    pub(super) crc: Crc32,
}

/// Protocol phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Hello is expected, or events are being received.
    Open,
    /// The client has sent end: waiting until all its events are durable.
    Ending,
    /// The last frame is in the outbox or sent. Data from the client is discarded until it
    /// closes, or until this time: closing at once could destroy the last frame in transit.
    Closing { until_ns: u64 },
}

/// Counts of a stream at one time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    pub(super) received: Count,
    pub(super) durable: Count,
    pub(super) missing_events: u64,
    pub(super) damaged_events: u64,
    pub(super) next_sequence: u64,
}

/// Connection of one client.
pub(super) struct Connection {
    pub(super) socket: OwnedFd,
    pub(super) peer: String,
    /// Name that the client gave itself; empty before hello.
    pub(super) client: String,
    pub(super) session: Session,
    pub(super) expect: Expect,
    pub(super) header: [u8; HEADER_BYTES],
    pub(super) header_bytes: usize,
    /// Bytes that arrived while no block was free.
    pub(super) carry: Vec<u8>,
    /// Session index to slot in the store.
    pub(super) slots: Vec<usize>,
    /// Account of each stream at the start of this connection.
    pub(super) before: Vec<Account>,
    /// Resume identity of a client that can repeat what is not acknowledged.
    pub(super) resume: Option<String>,
    /// Time of the last received byte.
    pub(super) heard_ns: u64,
    pub(super) last_event_bytes: u64,
    /// Whether data was received since the last tick.
    pub(super) busy: bool,
    /// Whether the connection has been idle: the next byte wakes the intake.
    pub(super) quiet: bool,
    low_water: usize,
    pub(super) phase: Phase,
    /// The client has closed its side of the connection after end. It is read no more, and may still read.
    pub(super) sends_no_more: bool,
    pub(super) opened_ns: u64,
    /// Number of questions that it has asked.
    pub(super) questions: u32,
    /// Waiting for a free block. The connection is removed from epoll meanwhile; otherwise a
    /// client that hung up would be reported endlessly.
    pub(super) waiting: bool,
    /// Ticket of its request for streams of other intakes.
    pub(super) ticket: Option<u64>,
    /// Whether it is registered with epoll.
    pub(super) watched: bool,
    /// Whether the recorder's owner has the other end, and sends hello when it has a document.
    pub(super) is_of_owner: bool,
    /// Whether its hello was accepted.
    pub(super) is_admitted: bool,
    /// Decoder of a detector that the recorder has connected to.
    pub(super) detector: Option<Box<Detector>>,
    outbox: Vec<u8>,
    sent: usize,
    pub(super) wants_write: bool,
}

impl Connection {
    pub(super) fn new(socket: OwnedFd, peer: String, session: Session, opened_ns: u64) -> Self {
        Self {
            socket,
            peer,
            client: String::new(),
            session,
            expect: Expect::Header,
            header: [0; HEADER_BYTES],
            header_bytes: 0,
            carry: Vec::new(),
            slots: Vec::new(),
            before: Vec::new(),
            resume: None,
            heard_ns: opened_ns,
            last_event_bytes: 0,
            busy: false,
            quiet: true,
            low_water: 1,
            phase: Phase::Open,
            sends_no_more: false,
            opened_ns,
            questions: 0,
            waiting: false,
            ticket: None,
            watched: true,
            is_of_owner: false,
            is_admitted: false,
            detector: None,
            outbox: Vec::new(),
            sent: 0,
            wants_write: false,
        }
    }

    /// Sets the receive low-water mark, so that an event costs one wake-up and not one per TCP
    /// segment.
    ///
    /// On a busy connection the mark is a guess: the next event is as long as the last, and small
    /// events keep coming. If the guess is wrong, the tick finds what has arrived and `quiet`
    /// ends the guessing.
    pub(super) fn await_enough(&mut self) {
        let due = match (&self.detector, &self.expect) {
            (Some(detector), _) => detector.bytes_due(),
            (None, Expect::Header | Expect::Blocked { .. }) => HEADER_BYTES - self.header_bytes,
            (None, Expect::Control { length, bytes }) => length - bytes.len(),
            (None, Expect::Event(partial)) => partial.head.length as usize - partial.received,
        };
        let likely = match (&self.expect, self.last_event_bytes >= IN_PLACE_BYTES) {
            _ if self.quiet || self.detector.is_some() => 0,
            (Expect::Header, true) => HEADER_BYTES + self.last_event_bytes as usize,
            (Expect::Event(_), true) | (Expect::Control { .. } | Expect::Blocked { .. }, _) => 0,
            (_, false) => LOW_WATER_SMALL,
        };
        let low_water = due.max(likely).clamp(1, LOW_WATER_MAX);
        if low_water != self.low_water {
            self.low_water = low_water;
            set_receive_low_water(self.socket.as_fd(), low_water);
        }
    }

    /// Whether acknowledgements may be sent. A client that does not read gets none: once its
    /// receive window is closed, the kernel would consider it dead.
    pub(super) fn takes_acks(&self) -> bool {
        let waiting = self.outbox.len() - self.sent + unsent_bytes(self.socket.as_fd());
        waiting < OUTBOX_BYTES
    }

    /// Whether the peer takes what is sent to it.
    pub(super) fn is_read_by_peer(&self) -> bool {
        self.outbox.len() - self.sent < OUTBOX_BYTES
    }

    /// Whether the connection is closing.
    pub(super) fn is_closing(&self) -> bool {
        matches!(self.phase, Phase::Closing { .. })
    }

    /// Whether nothing has arrived for `limit_ns`, though the recorder was ready to read.
    pub(super) fn is_silent(&self, limit_ns: u64, now_ns: u64) -> bool {
        let nothing_waits = || rustix::io::ioctl_fionread(&self.socket).unwrap_or(0) == 0;
        !self.waiting && now_ns.saturating_sub(self.heard_ns) > limit_ns && nothing_waits()
    }

    /// Leaves a time in which nothing was read out of its time limits.
    pub(super) fn leave_out(&mut self, since_ns: u64, until_ns: u64) {
        for time_ns in [&mut self.opened_ns, &mut self.heard_ns] {
            *time_ns += until_ns.saturating_sub(since_ns.max(*time_ns));
        }
    }

    /// Whether a frame is incomplete.
    pub(super) fn is_within_frame(&self) -> bool {
        match &self.detector {
            Some(detector) => detector.is_within_message(),
            None => self.header_bytes > 0 || !matches!(self.expect, Expect::Header),
        }
    }

    /// Address of the detector.
    pub(super) fn address(&self) -> Option<&SourceAddress> {
        self.detector.as_ref().map(|detector| &detector.address)
    }

    /// Whether the peer is unknown: nothing that it has sent was accepted so far.
    pub(super) fn is_stranger(&self) -> bool {
        !self.is_admitted && !self.is_of_owner && self.detector.is_none() && self.ticket.is_none()
    }

    /// Memory of a control message that is arriving, in bytes.
    pub(super) fn control_bytes(&self) -> usize {
        match &self.expect {
            Expect::Control { bytes, .. } => bytes.capacity(),
            Expect::Header | Expect::Blocked { .. } | Expect::Event(_) => 0,
        }
    }

    /// Whether its streams are not known yet.
    pub(super) fn expects_streams(&self) -> bool {
        match self.detector {
            Some(_) => self.slots.is_empty(),
            None => self.session.expects_hello(),
        }
    }

    /// Whether everything was handed to the kernel.
    pub(super) fn is_flushed(&self) -> bool {
        self.outbox.is_empty()
    }

    /// Appends a frame of our own protocol to the outbox. A detector does not speak it.
    pub(super) fn push(&mut self, frame: &[u8]) {
        if self.detector.is_none() {
            self.outbox.extend_from_slice(frame);
        }
    }

    /// Appends what the detector's protocol answers.
    pub(super) fn push_answers(&mut self) {
        if let Some(detector) = &mut self.detector {
            self.outbox.extend(detector.outgoing());
        }
    }

    /// Appends a control frame to the outbox. A message that cannot be encoded is a bug and is
    /// skipped.
    pub(super) fn push_message(&mut self, message: &impl ControlMessage) {
        if let Ok(frame) = message.to_frame() {
            self.push(&frame);
        }
    }

    /// Sends as much of the outbox as the kernel takes.
    pub(super) fn flush(&mut self) -> std::io::Result<()> {
        while self.sent < self.outbox.len() {
            let flags = rustix::net::SendFlags::NOSIGNAL | rustix::net::SendFlags::DONTWAIT;
            match rustix::net::send(&self.socket, &self.outbox[self.sent..], flags) {
                Ok(n) => self.sent += n,
                Err(rustix::io::Errno::AGAIN) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                // A client that is gone after its end leaves no more than its acknowledgements unread.
                Err(_) if self.phase == Phase::Ending => break,
                Err(e) => return Err(e.into()),
            }
        }
        self.outbox.clear();
        self.sent = 0;
        if self.is_closing() {
            rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Write)?;
        }
        Ok(())
    }

    /// Whether neither side sends anything more.
    pub(super) fn is_over(&self) -> bool {
        self.is_closing() && self.sends_no_more && self.is_flushed()
    }

    /// The event being received, for the account of what was lost with the connection.
    pub(super) fn event_under_way(&self) -> Option<(usize, u64)> {
        match &self.expect {
            Expect::Event(partial) => Some((partial.slot, partial.head.sequence)),
            _ if self.detector.is_some() => self.detector.as_ref()?.blocked,
            Expect::Blocked { slot, head } => Some((*slot, head.sequence)),
            Expect::Header | Expect::Control { .. } => None,
        }
    }
}
