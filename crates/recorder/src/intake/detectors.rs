//! Detectors at an intake: it connects to them, decodes what they send, and connects again.
//!
//! Packets arrive at a socket that was bound before, or come from a file. A message is received into the
//! decoder's memory. The payload of each event is copied to the block and checksummed on the way. The decoder
//! is kept when a connection is lost, so the series can continue. The files of a directory are received
//! straight into their blocks.
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;

use keepup_error::Cause;
use keepup_measure::sum::Sums;
use keepup_sources::{Input, STREAMS_MAX, SourceAddress};
use keepup_stream::ledger::LossCause;
use keepup_stream::rejected::{RejectReason, RejectUnit, Rejection};
use keepup_stream::wire::{Control, Hello};
use keepup_sys::datagram::{Batch, DatagramReceiver};
use rustix::event::epoll;
use rustix::net::{RecvFlags, recv};

use super::Intake;
use super::connection::{Connection, Expect, Phase};
use super::detector::{Detector, connect};
use super::detector_items::take_items;
use super::receive::{Pause, TurnEnd};
use super::store::Store;
use crate::capture_feed::Fill;
use crate::packet_socket::SourceInput;
use crate::series::Held;

/// Interval between attempts to connect, in nanoseconds.
const RETRY_NS: u64 = 1_000_000_000;
/// Most bytes served from one connection before the next one.
const TURN_BYTES: usize = 8 << 20;
/// Most bytes of a file per system call: they are checksummed while they are in the cache.
const PAYLOAD_BYTES: usize = 256 << 10;
/// Most batches of packets from one socket before the next connection, whatever their size.
const TURN_BATCHES: usize = 32;
/// Peer timeouts after which the last files of a directory that cannot be read are given up.
const FILES_TIMEOUTS: u64 = 6;
/// Most turns that take what has arrived when the recording ends.
const REST_TURNS: usize = 10_000;

impl Intake {
    /// Adds the configured detectors. All of them start at this intake.
    pub(super) fn add_detectors(&mut self) {
        let sources = self.config.sources.clone();
        let several = sources.len() > 1;
        let inputs = std::mem::take(&mut self.inputs);
        let now_ns = self.clock.now_ns();
        let mut more_ids = 0_u32;
        for ((place, address), input) in (0..).zip(sources).zip(inputs) {
            self.shards.connect();
            let held = self.config.series.as_ref().and_then(|series| series.take(place as usize, &address));
            let event_bytes_max = self.config.event_bytes_max();
            let opened_ns = self.switches.opened_ns();
            let more = address.streams_max().saturating_sub(STREAMS_MAX) as u32;
            let of_recording = (place, several, more_ids);
            more_ids = more_ids.saturating_add(more);
            let mut detector = Detector::new(address, event_bytes_max, of_recording, opened_ns);
            if let Some(held) = held {
                detector.decoder = held.decoder;
                match held.socket {
                    Some(socket) => self.watch_detector(detector, socket, now_ns),
                    None => self.detectors.push(detector),
                }
                continue;
            }
            match input {
                SourceInput::Connection => self.detectors.push(detector),
                SourceInput::Socket(socket) => self.watch_detector(detector, socket, now_ns),
                SourceInput::Capture(capture) => match detector.read(*capture, &self.clock) {
                    Ok(descriptor) => self.watch_detector(detector, descriptor, now_ns),
                    Err(why) => {
                        self.shards.note_failure(format!("{}: {why}", detector.address));
                        self.shards.disconnect();
                    }
                },
            }
        }
    }

    /// Adds the connections over which the recorder's owner sends documents. The recording does not end
    /// before they have ended.
    pub(super) fn add_documents(&mut self) {
        let now_ns = self.clock.now_ns();
        for socket in std::mem::take(&mut self.documents) {
            let index = self.free_index();
            let data = epoll::EventData::new_u64(index as u64);
            if let Err(error) = epoll::add(&self.epoll, &socket, data, epoll::EventFlags::IN) {
                let error = std::io::Error::from(error);
                self.store.incidents.push(format!("cannot receive a document: {error}"));
                continue;
            }
            let mut connection = Connection::new(socket, "document".to_owned(), self.session(), now_ns);
            connection.is_of_owner = true;
            self.connections[index] = Some(connection);
            self.shards.connect();
            self.count_connections(1);
        }
    }

    /// Starts a connection attempt for each disconnected detector with an expired retry interval.
    pub(super) fn connect_detectors(&mut self, now_ns: u64) {
        while let Some(at) = self.detectors.iter().position(|detector| detector.retry_ns <= now_ns) {
            let mut detector = self.detectors.swap_remove(at);
            detector.retry_ns = now_ns + RETRY_NS;
            let Some(endpoint) = detector.address.endpoint().cloned() else {
                self.shards.note_failure(format!("{}: its socket has failed", detector.address));
                self.shards.disconnect();
                continue;
            };
            match connect(detector.next_address(&endpoint)) {
                Ok(socket) => self.watch_detector(detector, socket, now_ns),
                Err(error) => self.try_again(detector, &std::io::Error::from(error).to_string()),
            }
        }
    }

    fn watch_detector(&mut self, mut detector: Detector, socket: OwnedFd, now_ns: u64) {
        let _ = rustix::net::sockopt::set_tcp_nodelay(&socket, true);
        let _ = self.watch_peer(&socket);
        let index = self.free_index();
        let data = epoll::EventData::new_u64(index as u64);
        if let Err(error) = epoll::add(&self.epoll, &socket, data, epoll::EventFlags::OUT) {
            detector.decoder.reconnect();
            return self.try_again(detector, &std::io::Error::from(error).to_string());
        }
        let peer = detector.address.to_string();
        let mut connection = Connection::new(socket, peer, self.session(), now_ns);
        connection.detector = Some(Box::new(detector));
        connection.push_answers();
        connection.wants_write = true;
        // The decoder of an earlier run may have the next series already, and no other byte may arrive.
        connection.quiet = false;
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
        self.take_held(index, &mut connection);
        self.release_streams(index, &mut connection, Some(LossCause::ConnectionLost));
        self.count_connections(-1);
        let Some(mut detector) = connection.detector.take() else { return };
        detector.decoder.reconnect();
        self.store.note_remarks(&mut detector);
        detector.publish(&self.counters);
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
            if let Some(progress) = self.counters.sources.get(detector.place as usize) {
                progress.has_failed.store(true, Relaxed);
            }
        }
        self.take_held(index, &mut connection);
        self.release_streams(index, &mut connection, Some(LossCause::ConnectionLost));
        self.shards.note_failure(what);
        self.drop_connection(connection);
    }

    /// Takes the end of a detector's series of `events` on each of the first `streams`: makes its events
    /// durable. If no other run follows, closes its socket, so that the next series does not go to a recorder
    /// that has ended.
    pub(super) fn take_end_of_series(&mut self, connection: &mut Connection, events: u64, streams: usize) {
        for (index, &slot) in connection.slots.iter().enumerate() {
            self.store.conclude_series(slot, if index < streams { events } else { 0 });
        }
        self.end_streams(connection);
        connection.waiting = true;
        if self.config.series.as_ref().is_some_and(|series| series.continues()) {
            return;
        }
        let _ = rustix::net::shutdown(&connection.socket, rustix::net::Shutdown::Both);
    }

    /// Lets decoders send what their protocol requires, such as signs of life.
    pub(super) fn tick_detectors(&mut self, now_ns: u64) {
        for index in 0..self.connections.len() {
            let Some(Some(connection)) = self.connections.get_mut(index) else { continue };
            let Some(detector) = &mut connection.detector else { continue };
            detector.decoder.tick(now_ns);
            // It is served at the next tick.
            connection.quiet &= !detector.decoder.has_due();
            connection.push_answers();
            if !connection.is_flushed() {
                self.flush(index);
            }
        }
    }

    /// Takes what has arrived from endless sources, what decoders hold back for the order of events, and the
    /// files that are complete. The end of the recording is the end of their streams.
    pub(super) fn finish_detectors(&mut self) {
        for detector in &mut self.detectors {
            detector.decoder.finish(0);
            self.store.note_remarks(detector);
        }
        // A series that has not ended is unfinished. What is not read from its connection is not sent again.
        self.finish_each(SourceAddress::has_series, |intake, index, connection| {
            if let Some(detector) = &mut connection.detector {
                detector.decoder.finish(0);
            }
            intake.take_rest(index, connection, 0);
            false
        });
        let is_endless = |address: &SourceAddress| address.is_endless() && !address.is_directory();
        self.finish_each(is_endless, |intake, index, connection| {
            // What is in the socket's buffer has arrived.
            let buffer_bytes = rustix::net::sockopt::socket_recv_buffer_size(&connection.socket);
            let is_read = intake.take_rest(index, connection, buffer_bytes.unwrap_or(0));
            let drops = keepup_sys::socket::drops(connection.socket.as_fd()).unwrap_or(0);
            if let Some(detector) = &mut connection.detector {
                detector.decoder.finish(drops);
                detector.note_rest_of_file(&mut intake.store.incidents);
            }
            intake.take_rest(index, connection, 0) && is_read
        });
        // A directory may take long, and the buffers of sockets do not wait.
        self.finish_each(SourceAddress::is_directory, Self::finish_directory);
    }

    /// Takes the rest of each matching source with `take`, which returns whether that was everything.
    fn finish_each(
        &mut self,
        is_one: fn(&SourceAddress) -> bool,
        take: fn(&mut Self, usize, &mut Connection) -> bool,
    ) {
        for index in 0..self.connections.len() {
            let is_one = |connection: &mut Connection| connection.address().is_some_and(is_one);
            let Some(mut connection) = self.connections[index].take_if(is_one) else { continue };
            // Nobody else waits for memory any more.
            self.store.reserved_for = None;
            let is_whole = take(self, index, &mut connection);
            if let Some(detector) = &mut connection.detector {
                self.store.note_remarks(detector);
            }
            if is_whole {
                connection.phase = Phase::Ending;
                connection.slots.iter().for_each(|&slot| self.store.conclude_series(slot, 0));
                self.release_streams(index, &mut connection, None);
            }
            self.connections[index] = Some(connection);
        }
    }

    /// Requests the files that are complete from the thread that reads a directory, and takes them.
    fn finish_directory(&mut self, index: usize, connection: &mut Connection) -> bool {
        let timeout_ns = FILES_TIMEOUTS * self.config.peer_timeout.as_nanos() as u64;
        connection.push_answers();
        // A failure shows at the next read.
        let _ = connection.flush();
        let _ = rustix::net::shutdown(&connection.socket, rustix::net::Shutdown::Write);
        let mut heard_ns = self.clock.now_ns();
        let why = loop {
            let now_ns = self.clock.now_ns();
            let end = TurnEnd::of(&*self.clock, now_ns);
            let (bytes, pause) = receive(connection, &mut self.store, (now_ns, self.clock.unix_ns()), end);
            if bytes > 0 {
                heard_ns = now_ns;
            }
            match pause {
                Pause::EndOfSeries { .. } => return true,
                Pause::Turn => {}
                Pause::Drained | Pause::NoMemory | Pause::Journal => {
                    if now_ns.saturating_sub(heard_ns) > timeout_ns {
                        let what = match pause {
                            Pause::Drained => "the directory cannot be read",
                            _ => "the volumes are too slow",
                        };
                        break Cause::new(what);
                    }
                    self.wait_for_reports();
                }
                Pause::Message(message) => match *message {
                    Control::Hello(hello) => match self.declare_here(index, connection, &hello) {
                        Ok(()) => {}
                        Err(why) => break why,
                    },
                    Control::End(_) | Control::Locate(_) | Control::Missing(_) => {
                        break Cause::new("unexpected message");
                    }
                },
                Pause::Broken(why) | Pause::Rejected(_, why) => break why,
                Pause::Closed => break Cause::new("its thread has ended"),
            }
        };
        self.reject_rest(connection, "the last files are not recorded", &why);
        self.shards.note_failure(format!("{}: the last files are not recorded: {why}", connection.peer));
        false
    }

    /// Takes the events that a detector's decoder holds back for the order of events, after the connection
    /// has ended. What arrived in part is rejected.
    fn take_held(&mut self, index: usize, connection: &mut Connection) {
        let Some(detector) = &mut connection.detector else { return };
        detector.decoder.disconnected();
        // The reason of a connection that broke has been entered.
        let _ = self.take_items_of(index, connection, 0);
        if let Some(detector) = &mut connection.detector {
            self.store.note_remarks(detector);
        }
    }

    /// Takes what is left of a detector, after reading at most about `bytes_max`. Returns whether it took
    /// all; what it did not take is rejected.
    fn take_rest(&mut self, index: usize, connection: &mut Connection, bytes_max: usize) -> bool {
        let taken = self.take_items_of(index, connection, bytes_max);
        if let Err(why) = &taken {
            self.reject_rest(connection, "the last events are not recorded", why);
        }
        taken.is_ok()
    }

    /// Enters that what a detector sent last is not recorded.
    fn reject_rest(&mut self, connection: &Connection, what: &str, why: &Cause) {
        let rejection = Rejection {
            sender: None,
            reason: RejectReason::Incomplete,
            unit: RejectUnit::Message,
            count: 1,
            is_foreign: false,
            detail: format!("{what}: {why}"),
        };
        self.store.reject(&connection.peer, &rejection);
    }

    /// Takes the items of a detector, after reading at most about `bytes_max`.
    ///
    /// # Errors
    /// The detector violates the protocol, or the volumes do not follow.
    fn take_items_of(
        &mut self,
        index: usize,
        connection: &mut Connection,
        bytes_max: usize,
    ) -> Result<(), Cause> {
        let patience_ns = self.config.peer_timeout.as_nanos() as u64;
        let (mut total, mut waited_ns) = (0, 0);
        for _ in 0..REST_TURNS {
            let now_ns = self.clock.now_ns();
            let (bytes, pause) = match total < bytes_max {
                true => {
                    let end = TurnEnd::of(&*self.clock, now_ns);
                    receive(connection, &mut self.store, (now_ns, self.clock.unix_ns()), end)
                }
                false => match take_items(connection, &mut self.store, now_ns) {
                    Ok(()) => return Ok(()),
                    Err(pause) => (0, pause),
                },
            };
            total += bytes;
            if bytes > 0 {
                waited_ns = 0;
            }
            let why = match pause {
                Pause::Turn => continue,
                Pause::Drained => return Ok(()),
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
                    Control::End(_) | Control::Locate(_) | Control::Missing(_) => return Ok(()),
                },
                Pause::Broken(why) | Pause::Rejected(_, why) => why,
                Pause::Closed | Pause::EndOfSeries { .. } => return Ok(()),
            };
            return Err(why);
        }
        Err(Cause::new("they do not end"))
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
        connection.slots.extend(self.store.adopt(&hello.streams, index, &[], &Default::default())?);
        if let Some(detector) = &connection.detector {
            self.counters.add_metadata(detector.metadata());
        }
        Ok(())
    }

    /// Releases the streams of a detector whose events are durable, and keeps its connection if another run
    /// follows.
    pub(super) fn detector_ended(&mut self, index: usize, mut connection: Connection) {
        self.release_streams(index, &mut connection, None);
        self.shards.note_end();
        let series = self.config.series.clone().filter(|series| series.continues());
        match (series, connection.detector.take()) {
            (Some(series), Some(detector)) => {
                // The socket stays open, so it would stay in epoll, too.
                let _ = epoll::delete(&self.epoll, &connection.socket);
                let Detector { address, mut decoder, place, .. } = *detector;
                decoder.next_series();
                let mut byte = [0];
                let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
                // A detector that has closed would wait for us to close, too.
                let is_closed = matches!(recv(&connection.socket, &mut byte[..], flags), Ok((0, _)));
                if is_closed {
                    decoder.reconnect();
                }
                let socket = (!is_closed).then_some(connection.socket);
                series.hold(Held { place: place as usize, address, socket, decoder });
                self.shards.disconnect();
                self.count_connections(-1);
            }
            _ => self.drop_connection(connection),
        }
    }
}

/// Reads and decodes what has arrived from a detector, for one turn. Returns the bytes read and the reason
/// for the pause.
pub(super) fn receive(
    connection: &mut Connection,
    store: &mut Store,
    (now_ns, unix_ns): (u64, u64),
    end: TurnEnd<'_>,
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
        let has_begun = total > 0 || batches > 0;
        if total >= TURN_BYTES || batches == TURN_BATCHES || has_begun && end.has_come() {
            return (total, Pause::Turn);
        }
        let Some(detector) = &mut connection.detector else { return (total, Pause::Closed) };
        let decoder = &mut detector.decoder;
        if let Some(read) = receive_payload(&mut connection.expect, &connection.socket, store) {
            match read {
                Ok(0) => return (total, Pause::Closed),
                Ok(bytes) => total += bytes,
                Err(rustix::io::Errno::AGAIN) => return (total, Pause::Drained),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return (total, Pause::Closed),
            }
            continue;
        }
        let read = match decoder.input() {
            Input::Bytes(space) => rustix::io::read(&connection.socket, space).map(|read| (read, read)),
            Input::Datagrams(batch) => {
                batches += 1;
                match &mut detector.feed {
                    None => receive_batch(&connection.socket, batch),
                    Some(feed) => match feed.fill(batch) {
                        Fill::Packets(count, bytes) => Ok((count, bytes)),
                        Fill::Empty => Err(rustix::io::Errno::AGAIN),
                        Fill::End if detector.finish_file(store) => continue,
                        Fill::End => {
                            let end = Pause::EndOfSeries { events: 0, streams: 0 };
                            return (total, detector.take_failure().map_or(end, Pause::Broken));
                        }
                    },
                }
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
            Err(error) if detector.address.sends_packets() => {
                let error = std::io::Error::from(error);
                return (total, Pause::Broken(format!("cannot receive packets: {error}").into()));
            }
            Err(_) => return (total, Pause::Closed),
        }
    }
}

/// Receives a part of the payload of an event that began with [`Item::Start`] into its block. `None` if no
/// such payload is missing.
fn receive_payload(
    expect: &mut Expect,
    socket: &OwnedFd,
    store: &mut Store,
) -> Option<rustix::io::Result<usize>> {
    let Expect::Event(partial) = expect else { return None };
    let space = store.payload(partial.slot, partial.head.length).get_mut(partial.received..)?;
    if space.is_empty() {
        return None;
    }
    let length = space.len().min(PAYLOAD_BYTES);
    let space = &mut space[..length];
    Some(rustix::io::read(socket, &mut *space).inspect(|&count| {
        partial.crc.update(&space[..count]);
        partial.received += count;
    }))
}

/// Receives datagrams; returns the number of messages and their bytes.
fn receive_batch(socket: &OwnedFd, batch: &mut Batch) -> rustix::io::Result<(usize, usize)> {
    let count = batch
        .receive(socket.as_fd())
        .map_err(|error| rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO))?;
    Ok((
        count,
        (0..count).filter_map(|index| batch.received(index)).map(|got| got.data.len()).saturating_sum(),
    ))
}
