//! Detectors at an intake: it connects to them, decodes what they send, and connects again.
//!
//! Packets arrive at a socket that was bound before. A message is received into the decoder's memory. The
//! payload of each event is copied to the block and checksummed on the way. The decoder is kept when a
//! connection is lost, so the series can continue.
use std::os::fd::{AsFd, OwnedFd};

use keepup_error::Cause;
use keepup_recording::crc::Crc32;
use keepup_sources::{Event, Input, Item, SourceAddress};
use keepup_stream::ledger::LossCause;
use keepup_stream::wire::{Control, ControlMessage, EventHead, Hello};
use keepup_sys::datagram::{Batch, DatagramReceiver};
use rustix::event::epoll;

use super::Intake;
use super::connection::{Connection, Phase};
use super::detector::{Detector, connect};
use super::receive::Pause;
use super::store::{Allocation, Store};

/// Interval between attempts to connect, in nanoseconds.
const RETRY_NS: u64 = 1_000_000_000;
/// Bytes that are copied and then checksummed while they are in the cache.
const PIECE_BYTES: usize = 16 << 10;
/// Most bytes served from one connection before the next one.
const TURN_BYTES: usize = 8 << 20;
/// Most batches of packets from one socket before the next connection, whatever their size.
const TURN_BATCHES: usize = 32;
/// Most turns that take what has arrived when the recording ends.
const REST_TURNS: usize = 10_000;

impl Intake {
    /// Adds the configured detectors. All of them start at this intake.
    pub(super) fn add_detectors(&mut self) {
        let (sources, opened_ns) = (self.config.sources.clone(), self.switches.opened_ns());
        let several = sources.len() > 1;
        let sockets = std::mem::take(&mut self.sockets);
        let now_ns = self.clock.now_ns();
        for ((place, address), socket) in (0..).zip(sources).zip(sockets) {
            self.shards.connect();
            let place = several.then_some(place);
            let detector = Detector::new(address, self.config.event_bytes_max(), place, opened_ns);
            match socket {
                Some(socket) => self.watch_detector(detector, socket, now_ns),
                None => self.detectors.push(detector),
            }
        }
    }

    /// Starts a connection attempt for each disconnected detector with an expired retry interval.
    pub(super) fn connect_detectors(&mut self, now_ns: u64) {
        while let Some(at) = self.detectors.iter().position(|detector| detector.retry_ns <= now_ns) {
            let mut detector = self.detectors.swap_remove(at);
            detector.retry_ns = now_ns + RETRY_NS;
            let Some(endpoint) = detector.address.endpoint().cloned() else {
                self.shards.note_failure(format!("{}: cannot wait for packets", detector.address));
                self.shards.disconnect();
                continue;
            };
            match connect(detector.next_address(&endpoint)) {
                Ok(socket) => self.watch_detector(detector, socket, now_ns),
                Err(error) => self.try_again(detector, &std::io::Error::from(error).to_string()),
            }
        }
    }

    fn watch_detector(&mut self, detector: Detector, socket: OwnedFd, now_ns: u64) {
        let _ = rustix::net::sockopt::set_tcp_nodelay(&socket, true);
        let _ = self.watch_peer(&socket);
        let index = self.free_index();
        let data = epoll::EventData::new_u64(index as u64);
        if let Err(error) = epoll::add(&self.epoll, &socket, data, epoll::EventFlags::OUT) {
            return self.try_again(detector, &std::io::Error::from(error).to_string());
        }
        let peer = detector.address.to_string();
        let mut connection = Connection::new(socket, peer, self.session(), now_ns);
        connection.detector = Some(Box::new(detector));
        connection.push_answers();
        connection.wants_write = true;
        self.connections[index] = Some(connection);
        self.count_connections(1);
    }

    /// Notes once that a detector cannot be reached, and tries again later.
    fn try_again(&mut self, mut detector: Detector, why: &str) {
        if !std::mem::replace(&mut detector.is_noted, true) {
            let address = &detector.address;
            let what = format!("{address}: cannot connect: {why}; trying again every second");
            self.counters.warn(what.clone());
            self.store.incidents.push(what);
        }
        self.detectors.push(detector);
    }

    /// Handles a connection to a detector that was closed before the end of its series.
    pub(super) fn detector_closed(&mut self, index: usize, mut connection: Connection, now_ns: u64) {
        let streams = connection.slots.len();
        if streams > 0 {
            self.enter_loss(&connection, &format!("connection with {streams} streams lost"));
        }
        self.release_streams(index, &mut connection, Some(LossCause::ConnectionLost));
        self.count_connections(-1);
        let Some(mut detector) = connection.detector.take() else { return };
        detector.decoder.reconnect();
        (detector.blocked, detector.retry_ns) = (None, now_ns + RETRY_NS);
        match streams {
            0 => self.try_again(*detector, "connection refused, timed out or closed before the first image"),
            _ => self.detectors.push(*detector),
        }
    }

    /// Disconnects from a detector for good after an error in its data.
    pub(super) fn detector_failed(&mut self, index: usize, mut connection: Connection, why: &Cause) {
        let what = format!("{}: {why}", connection.peer);
        self.enter_loss(&connection, &why.to_string());
        if let Some(detector) = &mut connection.detector {
            let drops = keepup_sys::socket::drops(connection.socket.as_fd()).unwrap_or(0);
            detector.decoder.finish(drops);
            self.store.note_remarks(detector);
        }
        self.release_streams(index, &mut connection, Some(LossCause::ConnectionLost));
        self.shards.note_failure(what);
        self.drop_connection(connection);
    }

    /// Takes the end of a detector's series: makes its events durable, and closes its socket, so that the
    /// next series does not go to a recorder that has ended.
    pub(super) fn take_end_of_series(&mut self, connection: &mut Connection, events: u64) {
        for &slot in &connection.slots {
            self.store.conclude_series(slot, events);
        }
        self.end_streams(connection);
        connection.waiting = true;
        let _ = rustix::net::shutdown(&connection.socket, rustix::net::Shutdown::Both);
    }

    /// Lets decoders send what their protocol requires, such as signs of life.
    pub(super) fn tick_detectors(&mut self, now_ns: u64) {
        for index in 0..self.connections.len() {
            let Some(Some(connection)) = self.connections.get_mut(index) else { continue };
            let Some(detector) = &mut connection.detector else { continue };
            detector.decoder.tick(now_ns);
            connection.push_answers();
            if !connection.is_flushed() {
                self.flush(index);
            }
        }
    }

    /// Takes what has arrived from endless sources, and what decoders hold back for the order of events. The
    /// end of the recording is the end of their streams.
    pub(super) fn finish_detectors(&mut self) {
        for detector in &mut self.detectors {
            detector.decoder.finish(0);
            self.store.note_remarks(detector);
        }
        for index in 0..self.connections.len() {
            let is_detector = |connection: &mut Connection| connection.detector.is_some();
            let Some(mut connection) = self.connections[index].take_if(is_detector) else { continue };
            if connection.address().is_some_and(SourceAddress::is_endless) {
                // Nobody else waits for memory any more; what is in the socket's buffer has arrived.
                self.store.reserved_for = None;
                let buffer_bytes = rustix::net::sockopt::socket_recv_buffer_size(&connection.socket);
                let is_read = self.take_rest(index, &mut connection, buffer_bytes.unwrap_or(0));
                let drops = keepup_sys::socket::drops(connection.socket.as_fd()).unwrap_or(0);
                if let Some(detector) = &mut connection.detector {
                    detector.decoder.finish(drops);
                }
                let is_whole = self.take_rest(index, &mut connection, 0) && is_read;
                if let Some(detector) = &mut connection.detector {
                    self.store.note_remarks(detector);
                }
                if is_whole {
                    connection.phase = Phase::Ending;
                    connection.slots.iter().for_each(|&slot| self.store.conclude_series(slot, 0));
                    self.release_streams(index, &mut connection, None);
                }
            }
            self.connections[index] = Some(connection);
        }
    }

    /// Takes the items of a detector, after reading at most about `bytes_max`. Returns whether it took all;
    /// gives up when the volumes do not follow.
    fn take_rest(&mut self, index: usize, connection: &mut Connection, bytes_max: usize) -> bool {
        let patience_ns = self.config.peer_timeout.as_nanos() as u64;
        let (mut total, mut waited_ns) = (0, 0);
        for _ in 0..REST_TURNS {
            let now_ns = self.clock.now_ns();
            let (bytes, pause) = match total < bytes_max {
                true => receive(connection, &mut self.store, (now_ns, self.clock.unix_ns())),
                false => match take_items(connection, &mut self.store, now_ns) {
                    Ok(()) => return true,
                    Err(pause) => (0, pause),
                },
            };
            total += bytes;
            if bytes > 0 {
                waited_ns = 0;
            }
            let why = match pause {
                Pause::Turn => continue,
                Pause::Drained => return true,
                Pause::NoMemory | Pause::Journal if waited_ns < patience_ns => {
                    self.wait_for_reports();
                    waited_ns += self.clock.now_ns().saturating_sub(now_ns);
                    continue;
                }
                Pause::NoMemory | Pause::Journal => Cause::new("the volumes are too slow"),
                Pause::Message(message) => match *message {
                    Control::Hello(hello) => match self.declare_here(index, connection, &hello) {
                        Ok(()) => continue,
                        Err(why) => why,
                    },
                    Control::End(_) => return true,
                },
                Pause::Broken(why) => why,
                Pause::Closed | Pause::EndOfSeries { .. } => return true,
            };
            let peer = &connection.peer;
            self.store.incidents.push(format!("{peer}: the last events are not recorded: {why}"));
            return false;
        }
        false
    }

    /// Declares streams of a detector while no stream moves any more.
    pub(super) fn declare_here(
        &mut self,
        index: usize,
        connection: &mut Connection,
        hello: &Hello,
    ) -> Result<(), Cause> {
        let ids: Vec<u32> = hello.streams.iter().map(|info| info.id).collect();
        let route = self.shards.places().route_here(&ids, self.index);
        route.map_err(|_| Cause::new("a stream is moving"))?;
        connection.slots.extend(self.store.adopt(&hello.streams, index, &[])?);
        if let Some(detector) = &connection.detector {
            self.counters.add_metadata(detector.metadata());
        }
        Ok(())
    }

    /// Releases the streams of a detector whose events are durable.
    pub(super) fn detector_ended(&mut self, index: usize, mut connection: Connection) {
        self.release_streams(index, &mut connection, None);
        self.shards.note_end();
        self.drop_connection(connection);
    }
}

/// Reads and decodes what has arrived from a detector, for one turn. Returns the bytes read and the reason
/// for the pause.
pub(super) fn receive(
    connection: &mut Connection,
    store: &mut Store,
    (now_ns, unix_ns): (u64, u64),
) -> (usize, Pause) {
    let (mut total, mut batches) = (0, 0);
    loop {
        let pause = take_items(connection, store, now_ns);
        connection.push_answers();
        // A failed write shows at the next read.
        let _ = connection.flush();
        if !connection.is_read_by_peer() {
            return (total, Pause::Broken("the detector does not read what it asked for".into()));
        }
        if let Err(pause) = pause {
            return (total, pause);
        }
        if total >= TURN_BYTES || batches == TURN_BATCHES {
            return (total, Pause::Turn);
        }
        let Some(detector) = &mut connection.detector else { return (total, Pause::Closed) };
        let decoder = &mut detector.decoder;
        let read = match decoder.input() {
            Input::Bytes(space) => rustix::io::read(&connection.socket, space).map(|read| (read, read)),
            Input::Datagrams(batch) => {
                batches += 1;
                receive_batch(&connection.socket, batch)
            }
        };
        match read {
            Ok((0, _)) => return (total, Pause::Closed),
            Ok((count, bytes)) => {
                decoder.received(count, unix_ns);
                total += bytes;
            }
            Err(rustix::io::Errno::AGAIN) => return (total, Pause::Drained),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) if matches!(detector.address, SourceAddress::Packets(_)) => {
                let error = std::io::Error::from(error);
                return (total, Pause::Broken(format!("cannot receive packets: {error}").into()));
            }
            Err(_) => return (total, Pause::Closed),
        }
    }
}

/// Receives datagrams; returns the number of messages and their bytes.
fn receive_batch(socket: &OwnedFd, batch: &mut Batch) -> rustix::io::Result<(usize, usize)> {
    let count = batch
        .receive(socket.as_fd())
        .map_err(|error| rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO))?;
    Ok((count, (0..count).filter_map(|index| batch.received(index)).map(|got| got.data.len()).sum()))
}

/// Takes the items that have arrived.
fn take_items(connection: &mut Connection, store: &mut Store, now_ns: u64) -> Result<(), Pause> {
    let Some(detector) = &mut connection.detector else { return Ok(()) };
    loop {
        let item = detector.decoder.item().map_err(|error| Pause::Broken(Cause::of(&error)))?;
        let Some(item) = item else { break };
        match item {
            Item::Streams(streams) => {
                // Those in front have been declared on this connection.
                let streams = streams.get(connection.slots.len()..).unwrap_or_default().to_vec();
                let hello = Hello::new(&connection.peer, detector.streams_of_recording(&streams));
                detector.decoder.take();
                hello.check().map_err(Pause::Broken)?;
                return Err(Pause::Message(Box::new(Control::Hello(hello))));
            }
            Item::Event(event) => {
                let stream = event.stream;
                let Some(&slot) = connection.slots.get(stream) else {
                    return Err(Pause::Broken(format!("stream {stream} is not known").into()));
                };
                let (sequence, bytes) = (event.sequence, event.payload.len() as u64);
                if bytes > detector.event_bytes_max {
                    let bytes_max = detector.event_bytes_max;
                    let what =
                        format!("cannot record image {sequence}: {bytes} bytes, limit {bytes_max} bytes");
                    let cause = Cause::new(what).with_hint("a larger --pool; above 512 MiB also --max-event");
                    return Err(Pause::Broken(cause));
                }
                if let Some(cause) = event.missing {
                    store.streams[slot].gap_cause = cause;
                }
                detector.blocked = Some((slot, sequence));
                take_event(&event, slot, store, now_ns)?;
                detector.blocked = None;
                detector.decoder.take();
                if store.makes_gaps_too_fast(slot) {
                    return Err(Pause::Journal);
                }
            }
            Item::End { events } => {
                detector.decoder.take();
                return Err(Pause::EndOfSeries { events });
            }
        }
    }
    store.note_remarks(detector);
    Ok(())
}

impl Store {
    /// Enters what a detector's decoder has to report.
    fn note_remarks(&mut self, detector: &mut Detector) {
        for remark in detector.decoder.remarks() {
            self.incidents.push(format!("{}: {remark}", detector.address));
        }
    }
}

/// Copies an event to its block.
fn take_event(event: &Event<'_>, slot: usize, store: &mut Store, now_ns: u64) -> Result<(), Pause> {
    let stream = &store.streams[slot];
    if event.sequence < stream.next_sequence {
        let what = format!(
            "cannot record event {} of stream {}: out of order, expected at least {}",
            event.sequence, stream.info.id, stream.next_sequence
        );
        return Err(Pause::Broken(what.into()));
    }
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
    Ok(())
}
