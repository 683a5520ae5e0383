//! One connection: where it is in the protocol, and what still has to be sent to it.
//!
//! Invariant: what a connection can make us remember is bounded: one control message, one staging buffer of
//! bytes that arrived before there was room, one outbox.
use std::os::fd::{AsFd, OwnedFd};

use keepup_recording::crc::Crc32;
use keepup_stream::ledger::Count;
use keepup_stream::wire::{ControlMessage, EventHead, HEADER_BYTES, Session};
use keepup_sys::socket::{set_receive_low_water, unsent_bytes};

/// Bytes that may wait for a client that does not read; acknowledgements beyond that are merged.
const OUTBOX_BYTES: usize = 64 << 10;
/// Events at least this long are received straight into their block, in bytes.
pub(super) const IN_PLACE_BYTES: u64 = 32 << 10;

/// More than this is never waited for before a connection is served, in bytes: it should still be in the
/// cache when it is copied.
const LOW_WATER_MAX: usize = 512 << 10;
/// Small events are waited for until this much has arrived, in bytes.
const LOW_WATER_SMALL: usize = 32 << 10;

/// What the next bytes of a connection are.
pub(super) enum Expect {
    /// A frame's header.
    Header,
    /// The payload of a control frame.
    Control { length: usize, bytes: Vec<u8> },
    /// An event for which there was no room yet.
    Blocked { slot: usize, head: EventHead },
    /// The payload of an event, going to its block.
    Event(Partial),
}

/// An event that is being received.
pub(super) struct Partial {
    pub(super) slot: usize,
    pub(super) head: EventHead,
    pub(super) received: usize,
    pub(super) crc: Crc32,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Events are coming, or hello is awaited.
    Open,
    /// The client said end: waiting until all of it is durable.
    Ending,
    /// The last frame is in the outbox or sent: until the client closes, or this time, what it sends is
    /// dropped. Closing at once could destroy the last frame on its way.
    Closing { until_ns: u64 },
}

/// What has become of a stream at one time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    pub(super) received: Count,
    pub(super) durable: Count,
    pub(super) missing_events: u64,
    pub(super) damaged_events: u64,
    pub(super) next_sequence: u64,
}

/// A client.
pub(super) struct Connection {
    pub(super) socket: OwnedFd,
    pub(super) peer: String,
    pub(super) session: Session,
    pub(super) expect: Expect,
    pub(super) header: [u8; HEADER_BYTES],
    pub(super) header_bytes: usize,
    /// Bytes that arrived while there was no room.
    pub(super) carry: Vec<u8>,
    /// Session index to slot in the store.
    pub(super) slots: Vec<usize>,
    /// Account of each stream when this connection took it over.
    pub(super) before: Vec<Account>,
    /// Identity of a client that can send again what is not acknowledged.
    pub(super) resume: Option<String>,
    /// When anything was received last.
    pub(super) heard_ns: u64,
    pub(super) last_event_bytes: u64,
    /// Whether anything was received since the last tick.
    pub(super) busy: bool,
    /// Nothing was received for a while: the next byte is news.
    pub(super) quiet: bool,
    low_water: usize,
    pub(super) phase: Phase,
    pub(super) opened_ns: u64,
    /// For a free block; meanwhile the kernel is not asked about it, or a client that hung up would be
    /// reported without end.
    pub(super) waiting: bool,
    /// Whether the kernel is asked about it.
    pub(super) watched: bool,
    outbox: Vec<u8>,
    sent: usize,
    pub(super) wants_write: bool,
}

impl Connection {
    pub(super) fn new(socket: OwnedFd, peer: String, session: Session, opened_ns: u64) -> Self {
        Self {
            socket,
            peer,
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
            opened_ns,
            waiting: false,
            watched: true,
            outbox: Vec::new(),
            sent: 0,
            wants_write: false,
        }
    }

    /// Tells the kernel how much to wait for before it wakes us, so that an event costs one wake-up and not
    /// one per segment.
    ///
    /// On a busy connection this is a guess: that the next event is as long as the last, and that small ones
    /// go on coming. Where the guess is wrong, the tick finds what has arrived and `quiet` ends the guessing.
    pub(super) fn await_enough(&mut self) {
        let due = match &self.expect {
            Expect::Header | Expect::Blocked { .. } => HEADER_BYTES - self.header_bytes,
            Expect::Control { length, bytes } => length - bytes.len(),
            Expect::Event(partial) => partial.head.length as usize - partial.received,
        };
        let likely = match (&self.expect, self.last_event_bytes >= IN_PLACE_BYTES) {
            _ if self.quiet => 0,
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

    /// Whether acknowledgements may be sent. A client that does not read gets no more of them: once its
    /// side is full the kernel would take it for dead.
    pub(super) fn takes_acks(&self) -> bool {
        let waiting = self.outbox.len() - self.sent + unsent_bytes(self.socket.as_fd());
        waiting < OUTBOX_BYTES
    }

    /// Whether it is closing.
    pub(super) fn is_closing(&self) -> bool {
        matches!(self.phase, Phase::Closing { .. })
    }

    /// Whether nothing has arrived for `limit_ns`, though the recorder was ready to read it.
    pub(super) fn is_silent(&self, limit_ns: u64, now_ns: u64) -> bool {
        let nothing_waits = || rustix::io::ioctl_fionread(&self.socket).unwrap_or(0) == 0;
        !self.waiting && now_ns.saturating_sub(self.heard_ns) > limit_ns && nothing_waits()
    }

    /// Whether a frame has begun and not ended.
    pub(super) fn is_within_frame(&self) -> bool {
        self.header_bytes > 0 || !matches!(self.expect, Expect::Header)
    }

    /// Whether everything was handed to the kernel.
    pub(super) fn is_flushed(&self) -> bool {
        self.outbox.is_empty()
    }

    pub(super) fn push(&mut self, frame: &[u8]) {
        self.outbox.extend_from_slice(frame);
    }

    /// Puts a control frame into the outbox; a message that cannot be encoded is a bug and is left out.
    pub(super) fn push_message(&mut self, message: &impl ControlMessage) {
        if let Ok(frame) = message.to_frame() {
            self.push(&frame);
        }
    }

    /// Sends what the kernel takes.
    pub(super) fn flush(&mut self) -> std::io::Result<()> {
        while self.sent < self.outbox.len() {
            let flags = rustix::net::SendFlags::NOSIGNAL | rustix::net::SendFlags::DONTWAIT;
            match rustix::net::send(&self.socket, &self.outbox[self.sent..], flags) {
                Ok(n) => self.sent += n,
                Err(rustix::io::Errno::AGAIN) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
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

    /// The event in the middle of which the connection is, for the account of what was lost with it.
    pub(super) fn event_under_way(&self) -> Option<(usize, u64)> {
        match &self.expect {
            Expect::Event(partial) => Some((partial.slot, partial.head.sequence)),
            Expect::Blocked { slot, head } => Some((*slot, head.sequence)),
            Expect::Header | Expect::Control { .. } => None,
        }
    }
}
