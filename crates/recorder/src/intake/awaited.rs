//! The end of a recording, and clients that it waits for.
//!
//! A recording is over when clients have ended in order, no connection is left, and nobody is awaited: by
//! default every client whose connection was lost before its end, or else those that are expected by name.
use super::Intake;
use super::connection::Connection;

impl Intake {
    /// Notes that the client of a connection, with all its streams, has ended in order.
    pub(super) fn note_end_of(&self, connection: &Connection) {
        self.shards.note_end_of(&connection.client);
        for &slot in &connection.slots {
            self.shards.note_end_of(&self.store.streams[slot].info.name);
        }
        self.shards.note_end();
    }

    /// Ends the recording if it is over.
    pub(super) fn end_if_over(&mut self, now_ns: u64) {
        let Some(ended) = self.shards.end_of_run() else {
            self.awaiting_since_ns = None;
            return;
        };
        let Some(who) = self.awaited() else { return self.shards.end(ended) };
        let since_ns = *self.awaiting_since_ns.get_or_insert_with(|| {
            let warning = format!(
                "the recording waits for {who}; hint: `--return-timeout TIME` limits this, Ctrl-C ends it"
            );
            self.counters.warn(warning);
            now_ns
        });
        let waited_ns = now_ns.saturating_sub(since_ns);
        if self.config.return_timeout.is_some_and(|limit| u128::from(waited_ns) >= limit.as_nanos()) {
            self.store.incidents.push(format!("the wait for {who} ended after its time limit"));
            self.shards.end(ended);
        }
    }

    /// Who must end before the recording does, if anyone.
    fn awaited(&self) -> Option<String> {
        if !self.config.expect.is_empty() {
            let expected = self.shards.expected();
            return (!expected.is_empty()).then(|| format!("{}, as expected", expected.join(", ")));
        }
        match self.shards.awaited() {
            (0, _) => None,
            (1, name) => Some(format!("stream {name}, whose connection was lost before its end")),
            (count, name) => {
                Some(format!("{count} streams whose connections were lost before their end, last {name}"))
            }
        }
    }
}
