//! Connection lifecycle: accepting, refusing, replacing, time limits, and the entries for a lost
//! connection.
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use keepup_error::Cause;
use keepup_stream::ledger::LossCause;
use keepup_stream::rejected::{RejectReason, RejectUnit, Rejection};
use keepup_stream::wire::{
    ControlMessage, ErrorReply, Limits, MAX_CONTROL_BYTES, MAX_STREAMS, Session, StreamInfo,
};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::net::{SocketAddrAny, SocketFlags, sockopt};

use super::connection::{Connection, Expect, Phase};
use super::{Intake, LISTENER};

/// Peer timeouts after which an incomplete frame is given up.
const STALLED_TIMEOUTS: u64 = 6;
/// Time for a client to close after its last frame, in nanoseconds.
const LAST_FRAME_NS: u64 = 1_000_000_000;
/// Reads from a closing client in one turn.
const DISCARDED_READS: usize = 64;

/// Whether a connection waits at a listening socket.
fn is_readable(listener: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(listener, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    // When this fails, it counts as waiting.
    poll(&mut fds, Some(&now)).is_err() || fds[0].revents().contains(PollFlags::IN)
}

impl Intake {
    /// Watches the listening socket from now on, which reports waiting connections first; or connects to
    /// detectors instead.
    pub(super) fn start_accepting(&mut self) {
        let Some(listener) = &self.listener else { return };
        if !self.config.sources.is_empty() {
            self.is_open = true;
            self.add_documents();
            return self.add_detectors();
        }
        let (data, flags) = (epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN);
        // When the kernel has no memory for the entry, the next turn tries again.
        self.is_open = epoll::add(&self.epoll, listener, data, flags).is_ok();
    }

    /// Accepts every waiting connection.
    pub(super) fn accept(&mut self, now_ns: u64) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        loop {
            let Some(listener) = &self.listener else { return };
            match rustix::net::acceptfrom_with(listener, flags) {
                Ok((socket, address)) => self.admit(socket, address, now_ns),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNABORTED) => {}
                Err(rustix::io::Errno::AGAIN) => {
                    self.is_short_of_descriptors = false;
                    return;
                }
                // The kernel reports this even if no connection waits.
                Err(_) if !is_readable(listener) => return,
                // Strangers must not hold the descriptors of clients. Those of this turn may be clients.
                Err(_) if self.drop_stranger_before(now_ns, "no free descriptor") => {}
                Err(e) => return self.pause_accepting(e),
            }
        }
    }

    /// No descriptor or memory is left. The listener stays readable, so it is not watched until
    /// the next tick.
    fn pause_accepting(&mut self, error: rustix::io::Errno) {
        if let Some(listener) = &self.listener {
            let _ = epoll::delete(&self.epoll, listener);
        }
        self.is_open = false;
        if !std::mem::replace(&mut self.is_short_of_descriptors, true) {
            let error = std::io::Error::from(error);
            self.store.incidents.push(format!("cannot accept connections for the time being: {error}"));
        }
    }

    fn admit(&mut self, socket: OwnedFd, address: Option<SocketAddrAny>, now_ns: u64) {
        let address = address.and_then(|a| std::net::SocketAddr::try_from(a).ok());
        let peer = address.map_or_else(|| "unknown client".to_owned(), |a| a.to_string());
        if self.shards.connected() >= self.config.connections_max {
            self.drop_oldest_stranger("too many connections");
        }
        if let Some((reply, incident)) = self.reason_to_refuse(address.map(|address| address.ip())) {
            if let Ok(frame) = reply.to_frame() {
                let _ = rustix::net::send(&socket, &frame, rustix::net::SendFlags::NOSIGNAL);
            }
            self.store.incidents.push(format!("{peer}: refused, {incident}"));
            return;
        }
        // Without TCP_NODELAY, acknowledgements would wait for each other; without keepalive, a
        // peer that lost power would be noticed late. A failure is no reason to refuse the
        // connection.
        let _ = rustix::net::sockopt::set_tcp_nodelay(&socket, true);
        let _ = self.watch_peer(&socket);
        let index = self.free_index();
        let data = epoll::EventData::new_u64(index as u64);
        if epoll::add(&self.epoll, &socket, data, epoll::EventFlags::IN).is_ok() {
            self.connections[index] = Some(Connection::new(socket, peer, self.session(), now_ns));
            self.shards.connect();
            self.count_connections(1);
        }
    }

    /// Protocol state of a new connection.
    pub(super) fn session(&self) -> Session {
        Session::new(Limits {
            max_event_bytes: self.config.event_bytes_max(),
            max_control_bytes: MAX_CONTROL_BYTES,
            max_streams: MAX_STREAMS,
        })
    }

    /// An unused place in the table of connections.
    pub(super) fn free_index(&mut self) -> usize {
        self.connections.iter().position(Option::is_none).unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        })
    }

    /// Publishes that this intake serves one connection more or less.
    pub(super) fn count_connections(&self, change: i64) {
        let connections = &self.figures().connections;
        connections.store(connections.load(Relaxed).saturating_add_signed(change), Relaxed);
    }

    /// Reply to a client that is refused before its first message, and the reason for the report.
    fn reason_to_refuse(&self, ip: Option<IpAddr>) -> Option<(ErrorReply, &'static str)> {
        let is_other = |only: IpAddr| ip.is_none_or(|ip| ip.to_canonical() != only.to_canonical());
        if self.config.only_from.is_some_and(is_other) {
            let reply = ErrorReply {
                error: "cannot serve this address: the recorder expects another machine".into(),
                hint: "connect from the address of the machine that runs the source".into(),
            };
            return Some((reply, "another address"));
        }
        (self.shards.connected() >= self.config.connections_max).then(|| {
            let reply = ErrorReply {
                error: format!("cannot serve more than {} connections", self.config.connections_max),
                hint: "put more streams on one connection".into(),
            };
            (reply, "too many connections")
        })
    }

    /// Makes the kernel detect a dead peer within the time limit.
    pub(super) fn watch_peer(&self, socket: &OwnedFd) -> rustix::io::Result<()> {
        let timeout = self.config.peer_timeout;
        let second = Duration::from_secs(1);
        sockopt::set_socket_keepalive(socket, true)?;
        sockopt::set_tcp_keepidle(socket, Duration::from_secs(timeout.as_secs() / 2).max(second))?;
        sockopt::set_tcp_keepintvl(socket, Duration::from_secs(timeout.as_secs() / 6).max(second))?;
        sockopt::set_tcp_keepcnt(socket, 3)?;
        sockopt::set_tcp_user_timeout(socket, timeout.as_millis() as u32)
    }

    /// Updates the readiness events that epoll reports for this connection.
    pub(super) fn watch(&self, index: usize, connection: &mut Connection) {
        connection.wants_write = !connection.is_flushed();
        let mut flags = epoll::EventFlags::empty();
        let may_read = self.closed_since_ns.is_none() || connection.is_closing();
        if !connection.waiting && !connection.sends_no_more && may_read {
            flags |= epoll::EventFlags::IN;
        }
        if connection.wants_write {
            flags |= epoll::EventFlags::OUT;
        }
        let data = epoll::EventData::new_u64(index as u64);
        // Each call fails only for a dead socket, which the next read reports.
        let _ = match (connection.watched, flags.is_empty()) {
            (true, true) => epoll::delete(&self.epoll, &connection.socket),
            (true, false) => epoll::modify(&self.epoll, &connection.socket, data, flags),
            (false, false) => epoll::add(&self.epoll, &connection.socket, data, flags),
            (false, true) => Ok(()),
        };
        connection.watched = !flags.is_empty();
    }

    /// Sends the bytes waiting in a connection's outbox.
    pub(super) fn flush(&mut self, index: usize) {
        let Some(Some(mut connection)) = self.connections.get_mut(index).map(Option::take) else { return };
        if connection.flush().is_err() {
            return self.closed(index, connection);
        }
        if connection.is_over() {
            return self.drop_connection(connection);
        }
        if connection.wants_write == connection.is_flushed() {
            self.watch(index, &mut connection);
        }
        self.connections[index] = Some(connection);
    }

    /// Closes connections without a hello in time, with a stalled frame, or after their last
    /// frame.
    pub(super) fn expire(&mut self, now_ns: u64) {
        let hello_ns = self.config.hello_timeout.as_nanos() as u64;
        let stalled_ns = STALLED_TIMEOUTS * self.config.peer_timeout.as_nanos() as u64;
        for index in 0..self.connections.len() {
            let Some(Some(connection)) = self.connections.get(index) else { continue };
            let why = match connection.phase {
                Phase::Closing { until_ns } if now_ns >= until_ns => None,
                Phase::Closing { .. } => continue,
                _ if self.closed_since_ns.is_some() => continue,
                _ if connection.expects_streams()
                    && connection.detector.is_none()
                    && !connection.is_of_owner
                    && now_ns.saturating_sub(connection.opened_ns) > hello_ns =>
                {
                    Some("no hello within the time limit")
                }
                _ if connection.is_within_frame() && connection.is_silent(stalled_ns, now_ns) => {
                    Some("a frame was not completed within the time limit")
                }
                _ => continue,
            };
            let Some(connection) = self.connections[index].take() else { continue };
            match why {
                Some(_) if connection.detector.is_some() => self.closed(index, connection),
                Some(why) => self.refuse(index, connection, &why.into()),
                None => self.drop_connection(connection),
            }
        }
    }

    /// Connections of this intake that a client declaring `streams` may replace: those with its resume
    /// identity, and silent ones.
    pub(super) fn replaceable(
        &self,
        streams: &[StreamInfo],
        resume: Option<&str>,
        now_ns: u64,
    ) -> Vec<usize> {
        let silent_ns = self.config.peer_timeout.as_nanos() as u64;
        let may_read = self.closed_since_ns.is_none();
        let may_replace = |owner: &usize| {
            self.connections.get(*owner).and_then(Option::as_ref).is_some_and(|old| {
                let is_same = resume.is_some() && old.resume.as_deref() == resume;
                is_same || (old.phase == Phase::Open && may_read && old.is_silent(silent_ns, now_ns))
            })
        };
        let owners: BTreeSet<usize> = self.store.owners(streams).map(|(_, owner)| owner).collect();
        owners.into_iter().filter(may_replace).collect()
    }

    /// Closes a connection after `peer` has taken over its streams.
    pub(super) fn replace(&mut self, index: usize, peer: &str) {
        if let Some(connection) = self.connections.get_mut(index).and_then(Option::take) {
            self.refuse(index, connection, &format!("replaced by the connection from {peer}").into());
        }
    }

    /// Handles a protocol violation: sends the client an error, enters it as an incident, closes
    /// the connection.
    pub(super) fn refuse(&mut self, index: usize, mut connection: Connection, why: &Cause) {
        if connection.detector.is_some() {
            return self.detector_failed(index, connection, why);
        }
        connection.push_message(&ErrorReply::of(why));
        self.enter_loss(&connection, &why.to_string());
        self.start_closing(index, connection, Some(LossCause::ConnectionLost));
    }

    /// Handles data of a client that cannot be recorded, as a protocol violation. Who has not been welcomed
    /// is a stranger. A client that is refused by its hello has sent no data.
    pub(super) fn reject(&mut self, index: usize, connection: Connection, reason: RejectReason, why: &Cause) {
        // A detector that cannot be recorded is a failure of the recording.
        if connection.detector.is_none() {
            self.enter_rejection(&connection.peer, connection.slots.is_empty(), reason, &why.to_string());
        }
        self.refuse(index, connection, why);
    }

    fn enter_rejection(&mut self, peer: &str, is_foreign: bool, reason: RejectReason, detail: &str) {
        let (unit, count, detail) = (RejectUnit::Message, 1, detail.to_owned());
        self.store.reject(peer, &Rejection { sender: None, reason, unit, count, is_foreign, detail });
    }

    /// Releases the streams once the last frame is in the outbox; closes the connection when the
    /// client does.
    pub(super) fn start_closing(
        &mut self,
        index: usize,
        mut connection: Connection,
        cause: Option<LossCause>,
    ) {
        self.release_streams(index, &mut connection, cause);
        let until_ns = self.clock.now_ns() + LAST_FRAME_NS;
        (connection.phase, connection.waiting) = (Phase::Closing { until_ns }, false);
        connection.ticket = None;
        (connection.expect, connection.carry) = (Expect::Header, Vec::new());
        if connection.flush().is_err() || connection.is_over() {
            return self.drop_connection(connection);
        }
        self.watch(index, &mut connection);
        self.connections[index] = Some(connection);
    }

    /// Handles a client that sends nothing more after its end, and may still read.
    fn sends_no_more(&mut self, index: usize, mut connection: Connection) {
        connection.sends_no_more = true;
        if connection.is_over() {
            return self.drop_connection(connection);
        }
        self.watch(index, &mut connection);
        self.connections[index] = Some(connection);
    }

    /// Discards what a closing client still sends.
    pub(super) fn discard(&mut self, index: usize, connection: Connection) {
        for _ in 0..DISCARDED_READS {
            match rustix::io::read(&connection.socket, &mut self.staging) {
                Ok(0) => return self.sends_no_more(index, connection),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => break,
                Err(_) => return self.drop_connection(connection),
            }
        }
        self.connections[index] = Some(connection);
    }

    /// Handles a client that closed its end.
    pub(super) fn closed(&mut self, index: usize, mut connection: Connection) {
        match (&connection.detector, connection.phase) {
            (Some(_), Phase::Open) => {
                return self.detector_closed(index, connection, self.clock.now_ns());
            }
            // What it sent has arrived; the end makes it durable.
            (Some(_), _) => return self.detector_ended(index, connection),
            // All that it sent has arrived.
            (None, Phase::Ending) => return self.sends_no_more(index, connection),
            (None, _) => {}
        }
        let has_begun = !connection.expects_streams() || connection.is_within_frame();
        if !connection.is_closing() && has_begun {
            let streams = connection.slots.len();
            if streams == 0 {
                let reason = RejectReason::Incomplete;
                self.enter_rejection(&connection.peer, true, reason, "the connection ended before hello");
            }
            self.enter_loss(&connection, &format!("connection with {streams} streams lost"));
        }
        let cause = (connection.phase == Phase::Open).then_some(LossCause::ConnectionLost);
        self.release_streams(index, &mut connection, cause);
        self.drop_connection(connection);
    }

    pub(super) fn enter_loss(&mut self, connection: &Connection, why: &str) {
        let place = match connection.event_under_way() {
            Some((slot, sequence)) => {
                let stream = &mut self.store.streams[slot];
                if connection.detector.is_none() {
                    stream.cut_off = Some(sequence);
                }
                let stream = stream.info.id;
                format!(" in the middle of event {sequence} of stream {stream}, which is not recorded")
            }
            None => String::new(),
        };
        self.store.incidents.push(format!("{}: {why}{place}", connection.peer));
    }

    /// Releases a connection's streams. `cause` explains later gaps if the connection did not end
    /// in order.
    pub(super) fn release_streams(
        &mut self,
        index: usize,
        connection: &mut Connection,
        cause: Option<LossCause>,
    ) {
        let is_unfinished = connection.phase == Phase::Open;
        for slot in std::mem::take(&mut connection.slots) {
            self.store.streams[slot].ledger.unfinished += u64::from(is_unfinished);
            self.store.release(slot, index, cause);
            if is_unfinished && connection.detector.is_none() {
                self.store.await_return(slot);
            }
        }
    }

    pub(super) fn drop_connection(&mut self, connection: Connection) {
        self.shards.disconnect();
        self.count_connections(-1);
        // Closing the socket removes it from epoll.
        drop(connection);
    }
}
