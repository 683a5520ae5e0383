//! What clients are told: welcome, acknowledgements up to durable, and the last word.
use keepup_stream::ledger::Count;
use keepup_stream::wire::{Ack, Bye, ByeStream, ErrorReply, Welcome, WelcomeStream};

use super::Intake;
use super::connection::{Connection, Phase};
use super::stream::Stream;
use crate::report::Ended;

/// Received, durable and missing events of a stream so far.
fn account(stream: &Stream) -> (Count, Count, u64) {
    (stream.ledger.received, stream.ledger.durable, stream.ledger.gap_events.values().sum())
}

impl Intake {
    /// Answers hello: where every stream goes on, and what is accepted.
    pub(super) fn welcome(&mut self, connection: &mut Connection) {
        let slots = connection.slots.iter().map(|&slot| &self.store.streams[slot]);
        connection.before = slots.clone().map(account).collect();
        let streams =
            slots.map(|s| WelcomeStream { id: s.info.id, next_sequence: s.next_sequence }).collect();
        connection.push_message(&Welcome {
            recording: self.recording.clone(),
            streams,
            max_event_bytes: self.config.event_bytes_max(),
            credit_bytes: self.store.pool.bytes_free() as u64,
        });
        // A client that cannot be written to shows when it is read from.
        let _ = connection.flush();
    }

    /// Acknowledges what became durable and says the last word to those that wait for nothing else.
    pub(super) fn answer(&mut self) {
        for index in 0..self.connections.len() {
            let Some(mut connection) = self.connections[index].take_if(|c| !c.slots.is_empty()) else {
                continue;
            };
            self.acknowledge(&mut connection);
            let settled = connection.slots.iter().all(|&slot| self.store.is_slot_settled(slot));
            if connection.phase == Phase::Ending && settled {
                connection.phase = Phase::Closing;
                connection.push_message(&self.bye(&connection));
            }
            if connection.flush().is_err() {
                self.closed(connection);
                continue;
            }
            if connection.wants_write == connection.is_flushed() {
                self.watch(index, &mut connection);
            }
            self.connections[index] = Some(connection);
        }
    }

    fn acknowledge(&mut self, connection: &mut Connection) {
        let credit_bytes = self.store.pool.bytes_free() as u64;
        for at in 0..connection.slots.len() {
            let stream = &mut self.store.streams[connection.slots[at]];
            if !stream.dirty {
                continue;
            }
            if !connection.has_room() {
                // The client does not read; the next acknowledgement that fits says it all.
                return;
            }
            stream.dirty = false;
            let ack = Ack {
                stream: stream.info.id,
                durable_next: stream.durable_sequence,
                received_next: stream.next_sequence,
                credit_bytes,
            };
            connection.push(&ack.to_header().encode());
        }
    }

    fn bye(&self, connection: &Connection) -> Bye {
        let accounts = connection.slots.iter().zip(&connection.before).map(|(&slot, before)| {
            let stream = &self.store.streams[slot];
            let (received, durable, lost_events) = account(stream);
            let (received, durable) = (received - before.0, durable - before.1);
            ByeStream {
                id: stream.info.id,
                received_events: received.events,
                received_bytes: received.bytes,
                durable_events: durable.events,
                durable_bytes: durable.bytes,
                lost_events: lost_events.saturating_sub(before.2),
            }
        });
        Bye { streams: accounts.collect() }
    }

    /// What a client is told when the recorder ends before it did.
    pub(super) fn last_word(&mut self, connection: &mut Connection, ended: &Ended) {
        if connection.slots.is_empty() || connection.phase == Phase::Closing {
            return;
        }
        self.acknowledge(connection);
        match ended {
            _ if connection.phase == Phase::Ending => connection.push_message(&self.bye(connection)),
            Ended::VolumesFailed(why) => connection.push_message(&ErrorReply::from_text(why)),
            Ended::EndOfRun | Ended::Stopped => connection.push_message(&ErrorReply {
                error: "the recorder was stopped".into(),
                hint: "what was acknowledged as durable is on disk".into(),
            }),
        }
    }
}
