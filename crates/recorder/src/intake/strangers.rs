//! Bounds for all clients together that have not said hello: anyone who reaches the port can be one.
//!
//! When they need too much, the oldest of them is closed. Clients that are known lose nothing, and a new one
//! always finds a place.
use keepup_error::Cause;
use keepup_stream::wire::{ErrorReply, MAX_CONTROL_BYTES};

use super::Intake;
use super::connection::Connection;

/// Most memory for control messages of all strangers: that of four of the largest messages.
const STRANGER_BYTES_MAX: usize = 4 * MAX_CONTROL_BYTES as usize;

impl Intake {
    /// Closes the oldest stranger; returns whether there was one.
    pub(super) fn drop_oldest_stranger(&mut self, why: &str) -> bool {
        self.drop_oldest(why, Connection::is_stranger)
    }

    /// Closes the oldest stranger that connected before this time; returns whether there was one.
    pub(super) fn drop_stranger_before(&mut self, now_ns: u64, why: &str) -> bool {
        self.drop_oldest(why, |connection| connection.is_stranger() && connection.opened_ns < now_ns)
    }

    /// Closes strangers until the messages of the others fit the memory for them, after the connection at
    /// `index` was read.
    pub(super) fn bound_strangers(&mut self, index: usize) {
        if !self.connections[index].as_ref().is_some_and(Connection::is_stranger) {
            return;
        }
        let holds = |connection: &Connection| connection.is_stranger() && connection.control_bytes() > 0;
        loop {
            let held = self.connections.iter().flatten().filter(|connection| holds(connection));
            let bytes = held.map(Connection::control_bytes).fold(0, usize::saturating_add);
            if bytes <= STRANGER_BYTES_MAX || !self.drop_oldest("too many messages before hello", holds) {
                return;
            }
        }
    }

    fn drop_oldest(&mut self, why: &str, may_go: impl Fn(&Connection) -> bool) -> bool {
        let places = self.connections.iter().enumerate();
        let candidates = places.filter_map(|(index, place)| Some((index, place.as_ref()?)));
        let oldest = candidates.filter(|(_, c)| may_go(c)).min_by_key(|(_, c)| c.opened_ns);
        let Some(index) = oldest.map(|(index, _)| index) else { return false };
        let Some(mut connection) = self.connections[index].take() else { return false };
        if !connection.is_closing() {
            let reply = Cause::new(format!("cannot wait for hello any longer: {why}"));
            connection
                .push_message(&ErrorReply::of(&reply.with_hint("connect again, and send hello at once")));
            // It is closed at once, whether or not it reads this.
            let _ = connection.flush();
            self.store.incidents.push(format!("{}: closed before its hello, {why}", connection.peer));
        }
        self.drop_connection(connection);
        true
    }
}
