//! Connections come and go: accepting, refusing, time limits, and what is entered when one is lost.
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use keepup_stream::ledger::LossCause;
use keepup_stream::wire::{ControlMessage, ErrorReply, Limits, MAX_CONTROL_BYTES, MAX_STREAMS, Session};
use rustix::event::epoll;
use rustix::net::{SocketAddrAny, SocketFlags};

use super::connection::{Connection, Phase};
use super::{Intake, LISTENER};

impl Intake {
    /// Hears of those at the door from now on, first of all of those that have waited there.
    pub(super) fn open_door(&mut self) {
        let (data, flags) = (epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN);
        // Without memory for one more entry it is tried again in the next turn.
        self.is_open = epoll::add(&self.epoll, &self.listener, data, flags).is_ok();
    }

    /// Takes every connection that is waiting at the door.
    pub(super) fn accept(&mut self, now_ns: u64) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        loop {
            match rustix::net::acceptfrom_with(&self.listener, flags) {
                Ok((socket, address)) => self.admit(socket, address, now_ns),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNABORTED) => {}
                // Nobody else, or no descriptor is left: those who wait stay at the door.
                Err(_) => return,
            }
        }
    }

    fn admit(&mut self, socket: OwnedFd, address: Option<SocketAddrAny>, now_ns: u64) {
        let peer = address
            .and_then(|a| std::net::SocketAddr::try_from(a).ok())
            .map_or_else(|| "unknown client".to_owned(), |a| a.to_string());
        if self.connected >= self.config.connections_max {
            let reply = ErrorReply {
                error: format!("{} connections are served at a time, no more", self.config.connections_max),
                hint: "put more streams on one connection".into(),
            };
            if let Ok(frame) = reply.to_frame() {
                let _ = rustix::net::send(&socket, &frame, rustix::net::SendFlags::NOSIGNAL);
            }
            self.store.incidents.push(format!("{peer}: refused, too many connections"));
            return;
        }
        // Without it acknowledgements would wait for each other; failing is no reason to refuse.
        let _ = rustix::net::sockopt::set_tcp_nodelay(&socket, true);
        let limits = Limits {
            max_event_bytes: self.config.event_bytes_max(),
            max_control_bytes: MAX_CONTROL_BYTES,
            max_streams: MAX_STREAMS,
        };
        let free = self.connections.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        let data = epoll::EventData::new_u64(index as u64);
        if epoll::add(&self.epoll, &socket, data, epoll::EventFlags::IN).is_ok() {
            self.connections[index] = Some(Connection::new(socket, peer, Session::new(limits), now_ns));
            self.connected += 1;
            self.counters.intake.connections.store(self.connected as u64, Ordering::Relaxed);
        }
    }

    /// Tells the kernel what this connection waits for now.
    pub(super) fn watch(&self, index: usize, connection: &mut Connection) {
        connection.wants_write = !connection.is_flushed();
        let mut flags = epoll::EventFlags::empty();
        if !connection.waiting {
            flags |= epoll::EventFlags::IN;
        }
        if connection.wants_write {
            flags |= epoll::EventFlags::OUT;
        }
        let data = epoll::EventData::new_u64(index as u64);
        // Each fails only for a socket that is gone, which the next read shows.
        let _ = match (connection.watched, flags.is_empty()) {
            (true, true) => epoll::delete(&self.epoll, &connection.socket),
            (true, false) => epoll::modify(&self.epoll, &connection.socket, data, flags),
            (false, false) => epoll::add(&self.epoll, &connection.socket, data, flags),
            (false, true) => Ok(()),
        };
        connection.watched = !flags.is_empty();
    }

    /// Sends what waits in a connection's outbox.
    pub(super) fn flush(&mut self, index: usize) {
        let Some(Some(mut connection)) = self.connections.get_mut(index).map(Option::take) else { return };
        if connection.flush().is_err() {
            return self.closed(connection);
        }
        if connection.wants_write == connection.is_flushed() {
            self.watch(index, &mut connection);
        }
        self.connections[index] = Some(connection);
    }

    /// Closes what has not said hello in time.
    pub(super) fn expire(&mut self, now_ns: u64) {
        let limit_ns = self.config.hello_timeout.as_nanos() as u64;
        for index in 0..self.connections.len() {
            let late = |c: &mut Connection| {
                c.session.expects_hello() && now_ns.saturating_sub(c.opened_ns) > limit_ns
            };
            if let Some(connection) = self.connections[index].take_if(late) {
                self.refuse(connection, "no hello within the time limit");
            }
        }
    }

    /// The client broke the rules: tell it, enter it, close.
    pub(super) fn refuse(&mut self, mut connection: Connection, why: &str) {
        connection.push_message(&ErrorReply::from_text(why));
        // The client may be gone already; then nobody misses the reply.
        let _ = connection.flush();
        let _ = rustix::net::shutdown(&connection.socket, rustix::net::Shutdown::Write);
        self.enter_loss(&connection, why);
        self.release(connection);
    }

    /// The client closed its end.
    pub(super) fn closed(&mut self, connection: Connection) {
        match connection.phase {
            Phase::Closing => self.ended_any = true,
            Phase::Open if connection.session.expects_hello() && connection.header_bytes == 0 => {}
            Phase::Open | Phase::Ending => {
                let first = connection.slots.first().map_or(0, |_| connection.slots.len());
                self.enter_loss(&connection, &format!("connection with {first} streams lost"));
            }
        }
        self.release(connection);
    }

    fn enter_loss(&mut self, connection: &Connection, why: &str) {
        let why = why.lines().next().unwrap_or_default();
        let place = match connection.event_under_way() {
            Some((slot, sequence)) => {
                let stream = self.store.streams[slot].info.id;
                format!(" in the middle of event {sequence} of stream {stream}, which is not recorded")
            }
            None => String::new(),
        };
        self.store.incidents.push(format!("{}: {why}{place}", connection.peer));
    }

    fn release(&mut self, connection: Connection) {
        for &slot in &connection.slots {
            let cause = (connection.phase == Phase::Open).then_some(LossCause::ConnectionLost);
            self.store.release(slot, cause);
        }
        self.connected -= 1;
        self.counters.intake.connections.store(self.connected as u64, Ordering::Relaxed);
        // Closing the socket takes it out of epoll.
        drop(connection);
    }
}
