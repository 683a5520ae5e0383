//! Items of a detector's decoder: declarations, events and losses on their way to the store.
use keepup_error::Cause;
use keepup_recording::crc::Crc32;
use keepup_sources::{Event, EventStart, Item};
use keepup_stream::rejected::RejectReason;
use keepup_stream::wire::{Control, ControlMessage, EventHead, Hello, NAME_BYTES_MAX, printable_end};

use super::connection::{Connection, Expect, Partial};
use super::detector::Detector;
use super::receive::Pause;
use super::store::{Allocation, Store};
use super::stream::Stream;

/// Bytes that are copied and then checksummed while they are in the cache.
const PIECE_BYTES: usize = 16 << 10;

/// Takes the items that have arrived.
pub(super) fn take_items(connection: &mut Connection, store: &mut Store, now_ns: u64) -> Result<(), Pause> {
    let Some(detector) = &mut connection.detector else { return Ok(()) };
    loop {
        let item = detector.decoder.item().map_err(|error| Pause::Broken(Cause::of(&error)))?;
        let Some(item) = item else { break };
        match item {
            Item::Streams(streams) => {
                // Those in front have been declared on this connection.
                let streams = streams.get(connection.slots.len()..).unwrap_or_default().to_vec();
                let hello = Hello::new(
                    &printable_end(&connection.peer, NAME_BYTES_MAX),
                    detector.streams_of_recording(&streams),
                );
                detector.decoder.take();
                hello.check().map_err(Pause::Broken)?;
                return Err(Pause::Message(Box::new(Control::Hello(hello))));
            }
            Item::Event(event) => {
                let slot = slot_of(&connection.slots, event.stream)?;
                let (sequence, bytes) = (event.sequence, event.payload.len() as u64);
                check_size(sequence, bytes, detector.event_bytes_max)?;
                if let Some(cause) = event.missing {
                    store.streams[slot].gap_cause = cause;
                }
                detector.blocked = Some((slot, sequence));
                let crc = take_event(&event, slot, store, now_ns)?;
                detector.blocked = None;
                detector.decoder.completed(crc);
                detector.decoder.take();
                if store.makes_gaps_too_fast(slot) {
                    return Err(Pause::Journal);
                }
            }
            Item::Start(start) => {
                let slot = slot_of(&connection.slots, start.stream)?;
                check_size(start.sequence, start.bytes, detector.event_bytes_max)?;
                detector.blocked = Some((slot, start.sequence));
                connection.expect = begin_event(start, slot, store)?;
                detector.blocked = None;
                detector.decoder.take();
            }
            Item::Complete { is_whole } => {
                if let Some(crc) = end_event(&mut connection.expect, is_whole, store, now_ns)? {
                    detector.decoder.completed(crc);
                }
                detector.decoder.take();
            }
            Item::Lost { stream, sequence, cause } => {
                let slot = slot_of(&connection.slots, stream)?;
                check_jump(sequence, &store.streams[slot])?;
                store.skip(slot, sequence, cause);
                detector.decoder.take();
                if store.makes_gaps_too_fast(slot) {
                    return Err(Pause::Journal);
                }
            }
            Item::End { events, streams } => {
                detector.decoder.take();
                store.note_remarks(detector);
                return Err(Pause::EndOfSeries { events, streams });
            }
        }
    }
    store.note_remarks(detector);
    Ok(())
}

impl Store {
    /// Enters what a detector's decoder has to report.
    pub(super) fn note_remarks(&mut self, detector: &mut Detector) {
        for remark in detector.decoder.remarks() {
            self.incidents.push(format!("{}: {remark}", detector.address));
        }
        let rejected = detector.decoder.rejected();
        if rejected.is_empty() {
            return;
        }
        let source = detector.address.to_string();
        rejected.iter().for_each(|rejection| self.reject(&source, rejection));
    }
}

/// Slot of a stream in the store.
fn slot_of(slots: &[usize], stream: usize) -> Result<usize, Pause> {
    let slot = slots.get(stream).copied();
    slot.ok_or_else(|| Pause::Broken(format!("stream {stream} is not known").into()))
}

fn check_size(sequence: u64, bytes: u64, bytes_max: u64) -> Result<(), Pause> {
    if bytes <= bytes_max {
        return Ok(());
    }
    let what = format!("cannot record event {sequence}: {bytes} bytes, limit {bytes_max} bytes");
    let cause = Cause::new(what).with_hint("a larger --pool; above 512 MiB also --max-event");
    Err(Pause::Broken(cause))
}

fn check_jump(sequence: u64, stream: &Stream) -> Result<(), Pause> {
    stream.check_jump(sequence).map_err(|why| Pause::Rejected(RejectReason::Contradictory, why))
}

fn check_order(sequence: u64, stream: &Stream) -> Result<(), Pause> {
    if sequence >= stream.next_sequence {
        return check_jump(sequence, stream);
    }
    let what = format!(
        "cannot record event {sequence} of stream {}: out of order, expected at least {}",
        stream.info.id, stream.next_sequence
    );
    Err(Pause::Broken(what.into()))
}

/// Gets memory for an event with a payload that arrives next.
fn begin_event(start: EventStart, slot: usize, store: &mut Store) -> Result<Expect, Pause> {
    let EventStart { stream: index, sequence, timestamp_ns, bytes: length } = start;
    let stream = &store.streams[slot];
    check_order(sequence, stream)?;
    let head = EventHead { index, stream: stream.info.id, sequence, timestamp_ns, length, crc: 0 };
    if store.begin(slot, &head) == Allocation::Wait {
        return Err(Pause::NoMemory);
    }
    Ok(Expect::Event(Partial { slot, head, received: 0, crc: Crc32::new() }))
}

/// Takes or discards the event that has arrived; returns the checksum of one that is taken.
fn end_event(
    expect: &mut Expect,
    is_whole: bool,
    store: &mut Store,
    now_ns: u64,
) -> Result<Option<u32>, Pause> {
    let Expect::Event(partial) = std::mem::replace(expect, Expect::Header) else {
        return Err(Pause::Broken("an event ended that had not started".into()));
    };
    if !is_whole {
        store.discard(partial.slot);
        return Ok(None);
    }
    let crc = partial.crc.value();
    // Cannot fail: the expected checksum is the one just computed.
    let _ = store.complete(partial.slot, &EventHead { crc, ..partial.head }, crc, now_ns);
    Ok(Some(crc))
}

/// Copies an event to its block; returns its checksum.
fn take_event(event: &Event<'_>, slot: usize, store: &mut Store, now_ns: u64) -> Result<u32, Pause> {
    let stream = &store.streams[slot];
    check_order(event.sequence, stream)?;
    let length = event.payload.len() as u64;
    let head = EventHead {
        index: event.stream,
        stream: stream.info.id,
        sequence: event.sequence,
        timestamp_ns: event.timestamp_ns,
        length,
        crc: 0,
    };
    if store.begin(slot, &head) == Allocation::Wait {
        return Err(Pause::NoMemory);
    }
    let mut crc = Crc32::new();
    let pieces = store.payload(slot, length).chunks_mut(PIECE_BYTES).zip(event.payload.chunks(PIECE_BYTES));
    for (to, from) in pieces {
        to.copy_from_slice(from);
        crc.update(to);
    }
    let crc = crc.value();
    // Cannot fail: the expected checksum is the one just computed.
    let _ = store.complete(slot, &EventHead { crc, ..head }, crc, now_ns);
    Ok(crc)
}
