//! What a recorder of a fleet may accept: its streams, while it has permission; and where others are.
//!
//! While the gate is closed, nothing is read from connections, and they do not count as silent. What was
//! received before becomes durable and is acknowledged.
use keepup_error::Cause;
use keepup_stream::wire::{Hello, Locate, Located, LocatedStream};

use super::Intake;
use super::connection::Connection;

/// Most questions on one connection.
const QUESTIONS_MAX: u32 = 32;

impl Intake {
    /// Whether events may be accepted at this moment.
    pub(super) fn may_accept(&self) -> bool {
        self.config.assignment.as_ref().is_none_or(|assignment| assignment.is_open(self.clock.now_ns()))
    }

    /// Stops watching connections for data when the gate has closed, and continues when it is open again.
    pub(super) fn review_gate(&mut self, now_ns: u64) {
        let is_open = self.may_accept();
        if is_open == self.closed_since_ns.is_none() {
            return;
        }
        let since_ns = std::mem::replace(&mut self.closed_since_ns, (!is_open).then_some(now_ns));
        for index in 0..self.connections.len() {
            let Some(mut connection) = self.connections[index].take() else { continue };
            since_ns.iter().for_each(|&since_ns| connection.leave_out(since_ns, now_ns));
            self.watch(index, &mut connection);
            self.connections[index] = Some(connection);
        }
    }

    /// Keeps a connection as it is until the gate is open again.
    pub(super) fn hold(&mut self, index: usize, mut connection: Connection) {
        if connection.waiting {
            self.waiting.push_back(index);
        } else if self.closed_since_ns.is_some() {
            // A connection that was made meanwhile.
            self.watch(index, &mut connection);
        }
        // Bytes that were read before must not wait for more.
        connection.busy = true;
        self.connections[index] = Some(connection);
    }

    /// Checks that this recorder takes the streams of a client.
    pub(super) fn check_assignment(&self, hello: &Hello) -> Result<(), Cause> {
        let Some(assignment) = &self.config.assignment else { return Ok(()) };
        let Some(other) = hello.streams.iter().find(|info| !assignment.takes(info.id)) else { return Ok(()) };
        let what = format!("cannot take stream {}: it is assigned to another recorder", other.id);
        Err(Cause::new(what).with_hint("send locate, and connect to the recorder that takes the stream"))
    }

    /// Answers where streams are recorded.
    pub(super) fn locate(
        &self,
        index: usize,
        connection: &mut Connection,
        question: &Locate,
    ) -> Result<(), Cause> {
        let Some(assignment) = &self.config.assignment else {
            let why = Cause::new("this recorder is not part of a fleet");
            return Err(why.with_hint("send hello; `keepup record --fleet` starts a fleet"));
        };
        // Another frame may have been read with this one: the next tick continues.
        (connection.busy, connection.quiet) = (true, false);
        connection.questions += 1;
        if connection.questions > QUESTIONS_MAX || !connection.is_flushed() {
            let what =
                "cannot answer locate: too many on this connection, or the previous answer was not read";
            let hint = format!("read each answer; at most {QUESTIONS_MAX} on one connection");
            return Err(Cause::new(what).with_hint(hint));
        }
        // Addresses may be newer than the epoch, and never older.
        let epoch = assignment.epoch();
        let place = |&id: &u32| Some(LocatedStream { id, address: assignment.locate(id)? });
        let streams = question.streams.iter().filter_map(place).collect();
        connection.push_message(&Located { epoch, streams });
        // A failed write shows at the next read.
        let _ = connection.flush();
        if !connection.is_flushed() {
            self.watch(index, connection);
        }
        Ok(())
    }
}
