//! Receiving from a socket into blocks: large events in place, small ones through one staging
//! buffer.
use std::io::IoSliceMut;

use keepup_error::Cause;
use keepup_measure::clock::Clock;
use keepup_recording::crc::{Crc32, crc32};
use keepup_stream::rejected::RejectReason;
use keepup_stream::wire::{Control, EventHead, HEADER_BYTES, Missing, Next, WireError};

use super::connection::{Connection, Expect, IN_PLACE_BYTES, Partial, Phase};
use super::store::{Allocation, Store};
use super::stream::Stream;

/// Bytes per read for small events; also the most that a waiting connection keeps in memory.
pub(super) const STAGING_BYTES: usize = 64 << 10;
/// Most bytes served from one connection before the next one.
pub(super) const TURN_BYTES: usize = 4 << 20;

/// Time in which connections are served in one turn, in nanoseconds. What has arrived then waits for the next
/// one, behind reports of the writers and the limits of age.
const SERVE_NS: u64 = 2_000_000;

/// Streams of a connection from which on their memory is asked for before it is used.
const LOOK_AHEAD_STREAMS: usize = 8;

/// Why reading from a connection paused.
#[derive(Debug)]
pub(super) enum Pause {
    /// Nothing more has arrived.
    Drained,
    /// Its turn has ended.
    Turn,
    /// No block is free.
    NoMemory,
    /// Its gaps come faster than they can be journalled.
    Journal,
    /// Hello or end arrived: handle it, then continue.
    Message(Box<Control>),
    /// A detector has sent its series of this many events.
    EndOfSeries {
        /// Events of each of the first `streams` streams.
        events: u64,
        /// Number of streams with so many events.
        streams: usize,
    },
    /// The client closed the connection.
    Closed,
    /// The connection cannot continue: the socket failed, a detector violated its protocol, or a client must
    /// send an event again.
    Broken(Cause),
    /// A client sent what cannot be recorded.
    Rejected(RejectReason, Cause),
}

/// When connections have had their time in a turn.
#[derive(Clone, Copy)]
pub(super) struct TurnEnd<'a> {
    clock: &'a dyn Clock,
    at_ns: u64,
}

impl<'a> TurnEnd<'a> {
    /// End of a turn that began at `begun_ns`.
    pub(super) fn of(clock: &'a dyn Clock, begun_ns: u64) -> Self {
        Self { clock, at_ns: begun_ns.saturating_add(SERVE_NS) }
    }

    pub(super) fn has_come(self) -> bool {
        self.clock.now_ns() >= self.at_ns
    }
}

/// Reads and decodes what has arrived on `connection`, for one turn. Returns the bytes read and
/// the reason for the pause.
pub(super) fn receive(
    connection: &mut Connection,
    store: &mut Store,
    staging: &mut [u8],
    now_ns: u64,
    end: TurnEnd<'_>,
) -> (usize, Pause) {
    let mut total = 0;
    if !connection.carry.is_empty() || matches!(connection.expect, Expect::Blocked { .. }) {
        let carried = std::mem::take(&mut connection.carry);
        if let Err(pause) = feed(connection, store, &carried, now_ns) {
            return (0, pause);
        }
    }
    loop {
        let read = match read_some(connection, store, staging) {
            Ok(read) => read,
            Err(rustix::io::Errno::AGAIN) => return (total, Pause::Drained),
            Err(rustix::io::Errno::INTR) => continue,
            // A client that closes before it has read all acknowledgements resets the connection.
            Err(_) if connection.phase == Phase::Ending => return (total, Pause::Closed),
            Err(e) => {
                return (total, Pause::Broken(format!("reading failed: {}", std::io::Error::from(e)).into()));
            }
        };
        if read.in_place + read.staged == 0 {
            return (total, Pause::Closed);
        }
        total += read.in_place + read.staged;
        let staged = &staging[..read.staged];
        if let Err(pause) = finish_in_place(connection, store, read.in_place, now_ns) {
            // Bytes behind the event are decoded when the connection continues.
            connection.carry.extend_from_slice(staged);
            return (total, pause);
        }
        if let Err(pause) = feed(connection, store, staged, now_ns) {
            return (total, pause);
        }
        if read.short {
            return (total, Pause::Drained);
        }
        if total >= TURN_BYTES || end.has_come() {
            return (total, Pause::Turn);
        }
    }
}

/// Receives the rest of the event that has arrived in part, and nothing behind it. Returns whether no more of
/// it can arrive.
pub(super) fn finish_event(connection: &mut Connection, store: &mut Store, now_ns: u64) -> bool {
    loop {
        let Expect::Event(partial) = &connection.expect else { return true };
        let space = &mut store.payload(partial.slot, partial.head.length)[partial.received..];
        match rustix::io::read(&connection.socket, space) {
            Ok(0) => return true,
            // Nothing follows, so it need not wait for the journal.
            Ok(bytes) => drop(finish_in_place(connection, store, bytes, now_ns)),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return error != rustix::io::Errno::AGAIN,
        }
    }
}

struct Read {
    in_place: usize,
    staged: usize,
    /// The read returned fewer bytes than requested: the socket is empty.
    short: bool,
}

/// One system call: the rest of the current event goes to its block, what follows to `staging`.
fn read_some(
    connection: &Connection,
    store: &mut Store,
    staging: &mut [u8],
) -> Result<Read, rustix::io::Errno> {
    // After a large event, exactly one header is read, so that the next payload arrives in place
    // again.
    let staged_max = match connection.last_event_bytes >= IN_PLACE_BYTES {
        true => HEADER_BYTES - connection.header_bytes,
        false => staging.len(),
    };
    let staging = &mut staging[..staged_max];
    if let Expect::Event(partial) = &connection.expect {
        let space = &mut store.payload(partial.slot, partial.head.length)[partial.received..];
        let wanted = space.len();
        let read =
            rustix::io::readv(&connection.socket, &mut [IoSliceMut::new(space), IoSliceMut::new(staging)])?;
        let (in_place, staged) = (read.min(wanted), read.saturating_sub(wanted));
        return Ok(Read { in_place, staged, short: read < wanted + staged_max });
    }
    let staged = rustix::io::read(&connection.socket, staging)?;
    Ok(Read { in_place: 0, staged, short: staged < staged_max })
}

fn finish_in_place(
    connection: &mut Connection,
    store: &mut Store,
    bytes: usize,
    now_ns: u64,
) -> Result<(), Pause> {
    if let (Expect::Event(partial), true) = (&mut connection.expect, bytes > 0) {
        let payload = store.payload(partial.slot, partial.head.length);
        partial.crc.update(&payload[partial.received..partial.received + bytes]);
        partial.received += bytes;
        if partial.received as u64 == partial.head.length {
            return complete_partial(connection, store, now_ns);
        }
    }
    Ok(())
}

/// Decodes `bytes`; what cannot be placed is carried over.
fn feed(connection: &mut Connection, store: &mut Store, mut bytes: &[u8], now_ns: u64) -> Result<(), Pause> {
    let outcome = feed_all(connection, store, &mut bytes, now_ns);
    if outcome.is_err() {
        connection.carry.extend_from_slice(bytes);
    }
    outcome
}

fn feed_all(
    connection: &mut Connection,
    store: &mut Store,
    bytes: &mut &[u8],
    now_ns: u64,
) -> Result<(), Pause> {
    if let Expect::Blocked { slot, head } = connection.expect {
        take_event(connection, store, bytes, (slot, head), now_ns)?;
    }
    while !bytes.is_empty() {
        match &mut connection.expect {
            Expect::Header => {
                if let Some(event) = feed_header(connection, store, bytes)? {
                    take_event(connection, store, bytes, event, now_ns)?;
                }
            }
            Expect::Control { .. } => feed_control(connection, store, bytes)?,
            Expect::Event(_) => feed_event(connection, store, bytes, now_ns)?,
            Expect::Blocked { .. } => return Ok(()),
        }
    }
    Ok(())
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (head, tail) = bytes.split_at(count.min(bytes.len()));
    *bytes = tail;
    head
}

/// Decodes a header; returns the slot and head of an event that begins.
fn feed_header(
    connection: &mut Connection,
    store: &mut Store,
    bytes: &mut &[u8],
) -> Result<Option<(usize, EventHead)>, Pause> {
    let next = match bytes.split_first_chunk() {
        Some((header, rest)) if connection.header_bytes == 0 => {
            *bytes = rest;
            connection.session.header(header)
        }
        _ => {
            let part = take(bytes, HEADER_BYTES - connection.header_bytes);
            let end = connection.header_bytes + part.len();
            connection.header[connection.header_bytes..end].copy_from_slice(part);
            connection.header_bytes = end;
            if end < HEADER_BYTES {
                return Ok(None);
            }
            connection.header_bytes = 0;
            connection.session.header(&connection.header)
        }
    };
    match next {
        Ok(Next::Control { length }) => {
            connection.expect = Expect::Control { length, bytes: Vec::new() };
            if length == 0 { finish_control(connection, store).map(|()| None) } else { Ok(None) }
        }
        Ok(Next::Event(head)) => {
            connection.last_event_bytes = head.length;
            let Some(&slot) = connection.slots.get(head.index) else {
                let what = format!("stream {} is not known", head.stream);
                return Err(Pause::Rejected(RejectReason::Contradictory, what.into()));
            };
            check_sequence(&store.streams[slot], head.sequence)?;
            look_ahead(connection, store, bytes, head.length);
            Ok(Some((slot, head)))
        }
        Err(e) => Err(Pause::Rejected(reason(&e), Cause::of(&e))),
    }
}

/// Asks the processor for the memory of the next two events that have arrived behind one of `length` bytes:
/// with many streams it is in no cache, and would be waited for several times per event.
fn look_ahead(connection: &Connection, store: &Store, bytes: &[u8], length: u64) {
    if connection.slots.len() < LOOK_AHEAD_STREAMS {
        return;
    }
    let next = |bytes: &[u8], length: u64| -> Option<(usize, usize, u64)> {
        let at = usize::try_from(length).ok()?;
        let header = bytes.get(at..)?.first_chunk()?;
        let (index, length) = connection.session.glance(header)?;
        Some((at + HEADER_BYTES, *connection.slots.get(index)?, length))
    };
    let Some((at, slot, length)) = next(bytes, length) else { return };
    store.streams[slot].prefetch_block();
    let Some((_, slot, _)) = next(&bytes[at..], length) else { return };
    store.streams[slot].prefetch();
}

/// Why a frame cannot be recorded.
fn reason(error: &WireError) -> RejectReason {
    match error {
        WireError::Shape { .. }
        | WireError::TooLong { .. }
        | WireError::UnknownStream { .. }
        | WireError::Sequence { .. }
        | WireError::Unexpected { .. }
        | WireError::Invalid { .. } => RejectReason::Contradictory,
        _ => RejectReason::Malformed,
    }
}

fn feed_control(connection: &mut Connection, store: &mut Store, bytes: &mut &[u8]) -> Result<(), Pause> {
    let Expect::Control { length, bytes: payload } = &mut connection.expect else { return Ok(()) };
    payload.extend_from_slice(take(bytes, *length - payload.len()));
    if payload.len() < *length { Ok(()) } else { finish_control(connection, store) }
}

fn finish_control(connection: &mut Connection, store: &mut Store) -> Result<(), Pause> {
    let Expect::Control { bytes, .. } = std::mem::replace(&mut connection.expect, Expect::Header) else {
        return Ok(());
    };
    match connection.session.control(&bytes) {
        Ok(Control::Missing(missing)) => {
            take_missing(connection, store, &missing)?;
            let is_too_fast = connection.slots.iter().any(|&slot| store.makes_gaps_too_fast(slot));
            if is_too_fast { Err(Pause::Journal) } else { Ok(()) }
        }
        Ok(message) => Err(Pause::Message(Box::new(message))),
        Err(e) => Err(Pause::Rejected(reason(&e), Cause::of(&e))),
    }
}

/// Enters the gaps and the rejected data that a client declares.
///
/// # Errors
/// A gap is not behind the events before it.
fn take_missing(connection: &Connection, store: &mut Store, missing: &Missing) -> Result<(), Pause> {
    for &gap in &missing.gaps {
        let index = connection.session.index_of(gap.stream);
        let Some(&slot) = index.and_then(|index| connection.slots.get(index)) else {
            let what = format!("stream {} is not known", gap.stream);
            return Err(Pause::Rejected(RejectReason::Contradictory, what.into()));
        };
        check_sequence(&store.streams[slot], gap.first_sequence)?;
        store.declare_missing(slot, gap);
    }
    missing.rejected.iter().for_each(|row| store.copy_rejected(row));
    Ok(())
}

/// Checks that an event with this number may follow.
fn check_sequence(stream: &Stream, sequence: u64) -> Result<(), Pause> {
    let (id, expected) = (stream.info.id, stream.next_sequence);
    if sequence < expected {
        let what =
            format!("cannot take event {sequence} of stream {id}: it goes backwards, {expected} was due");
        let hint = "after a reconnection continue from the next_sequence of the welcome message";
        return Err(Pause::Rejected(RejectReason::Late, Cause::new(what).with_hint(hint)));
    }
    stream.check_jump(sequence).map_err(|why| Pause::Rejected(RejectReason::Contradictory, why))
}

/// Takes an event that begins, or its part in `bytes`. Of one that has arrived whole, nothing is kept in
/// memory in between: the processor would wait for that memory until all that was written before has left its
/// core, which takes long where many streams write to memory that is in no cache.
fn take_event(
    connection: &mut Connection,
    store: &mut Store,
    bytes: &mut &[u8],
    (slot, head): (usize, EventHead),
    now_ns: u64,
) -> Result<(), Pause> {
    if store.begin(slot, &head) == Allocation::Wait {
        connection.expect = Expect::Blocked { slot, head };
        return Err(Pause::NoMemory);
    }
    let Some((payload, rest)) = bytes.split_at_checked(head.length as usize) else {
        connection.expect = Expect::Event(Partial { slot, head, received: 0, crc: Crc32::new() });
        return Ok(());
    };
    *bytes = rest;
    connection.expect = Expect::Header;
    store.payload(slot, head.length).copy_from_slice(payload);
    complete(connection, store, (slot, &head), crc32(payload), now_ns)
}

fn feed_event(
    connection: &mut Connection,
    store: &mut Store,
    bytes: &mut &[u8],
    now_ns: u64,
) -> Result<(), Pause> {
    let Expect::Event(partial) = &mut connection.expect else { return Ok(()) };
    let missing = partial.head.length as usize - partial.received;
    let part = take(bytes, missing);
    let payload = store.payload(partial.slot, partial.head.length);
    payload[partial.received..partial.received + part.len()].copy_from_slice(part);
    partial.crc.update(part);
    partial.received += part.len();
    if part.len() == missing { complete_partial(connection, store, now_ns) } else { Ok(()) }
}

fn complete_partial(connection: &mut Connection, store: &mut Store, now_ns: u64) -> Result<(), Pause> {
    let Expect::Event(partial) = std::mem::replace(&mut connection.expect, Expect::Header) else {
        return Ok(());
    };
    complete(connection, store, (partial.slot, &partial.head), partial.crc.value(), now_ns)
}

/// Takes an event whose payload, with the checksum `crc`, is in its block.
fn complete(
    connection: &Connection,
    store: &mut Store,
    (slot, head): (usize, &EventHead),
    crc: u32,
    now_ns: u64,
) -> Result<(), Pause> {
    if crc != head.crc && connection.resume.is_some() {
        let (stream, sequence) = (head.stream, head.sequence);
        let what =
            format!("cannot take event {sequence} of stream {stream}: it arrived with a wrong checksum");
        let hint = "connect again with the same resume identity and continue from next_sequence";
        return Err(Pause::Broken(Cause::new(what).with_hint(hint)));
    }
    if let Err(gap) = store.complete(slot, head, crc, now_ns) {
        let (stream, sequence) = (gap.stream, gap.first_sequence);
        store.incidents.push(format!(
            "{}: event {sequence} of stream {stream} arrived with a wrong checksum and was discarded",
            connection.peer
        ));
    }
    if store.makes_gaps_too_fast(slot) { Err(Pause::Journal) } else { Ok(()) }
}
