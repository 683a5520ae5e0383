//! Messages to clients: welcome, acknowledgements of durable events, and the final message.
use keepup_error::Cause;
use keepup_measure::sum::Sums;
use keepup_stream::ledger::LossCause;
use keepup_stream::wire::{Ack, Bye, ByeStream, EndStream, ErrorReply, Welcome, WelcomeStream};

use super::Intake;
use super::connection::{Account, Connection, Phase};
use super::stream::Stream;
use crate::report::Ended;

/// Account of a stream so far.
fn account(stream: &Stream) -> Account {
    let gaps = &stream.ledger.gap_events;
    Account {
        received: stream.ledger.received,
        durable: stream.ledger.durable,
        missing_events: gaps.values().saturating_sum(),
        damaged_events: stream.ledger.undeclared(LossCause::BadChecksum),
        next_sequence: stream.next_sequence,
    }
}

impl Intake {
    /// Answers hello with the next sequence number of every stream and the limits.
    pub(super) fn welcome(&mut self, connection: &mut Connection) {
        connection.is_admitted = true;
        let slots = connection.slots.iter().map(|&slot| &self.store.streams[slot]);
        connection.before = slots.clone().map(account).collect();
        let streams = slots
            .map(|s| WelcomeStream {
                id: s.info.id,
                next_sequence: s.next_sequence,
                durable_next: s.watermark.next,
                lost_events: s.watermark.lost_events,
            })
            .collect();
        connection.push_message(&Welcome {
            recording: self.recording.clone(),
            streams,
            max_event_bytes: self.config.event_bytes_max(),
            credit_bytes: self.store.bytes_available(),
        });
        // A failed write shows at the next read.
        let _ = connection.flush();
    }

    /// Acknowledges events that became durable, and sends the final message to clients that have
    /// ended.
    pub(super) fn answer(&mut self) {
        self.acknowledge_touched();
        for index in 0..self.connections.len() {
            let has_news = |c: &Connection| c.phase == Phase::Ending || !c.is_flushed() || c.wants_write;
            let answered = |c: &mut Connection| has_news(c) && !c.is_closing();
            let Some(mut connection) = self.connections[index].take_if(answered) else {
                continue;
            };
            let settled = connection.phase == Phase::Ending
                && connection.slots.iter().all(|&slot| self.store.is_slot_settled(slot));
            if settled && connection.detector.is_some() {
                self.detector_ended(index, connection);
                continue;
            }
            if settled {
                let bye = self.bye(&connection);
                connection.push_message(&bye);
                self.note_end_of(&connection);
                self.start_closing(index, connection, None);
                continue;
            }
            if connection.flush().is_err() {
                self.closed(index, connection);
                continue;
            }
            if connection.wants_write == connection.is_flushed() {
                self.watch(index, &mut connection);
            }
            self.connections[index] = Some(connection);
        }
    }

    /// Hands each connection the acknowledgements of its streams.
    fn acknowledge_touched(&mut self) {
        let mut due = std::mem::take(&mut self.due);
        self.store.advance_touched(&mut due);
        due.sort_unstable();
        for streams in due.chunk_by(|(one, _), (other, _)| one == other) {
            let Some(&(owner, _)) = streams.first() else { continue };
            let Some(mut connection) = self.connections.get_mut(owner).and_then(Option::take) else {
                continue;
            };
            self.acknowledge(&mut connection, streams.iter().map(|&(_, slot)| slot));
            self.connections[owner] = Some(connection);
        }
        due.clear();
        self.due = due;
    }

    /// Acknowledges what is new in these streams of a connection. If its client takes nothing now, a later
    /// acknowledgement covers this one too.
    fn acknowledge(&mut self, connection: &mut Connection, slots: impl Iterator<Item = usize>) {
        if connection.is_closing() {
            return;
        }
        let (takes_acks, credit_bytes) = (connection.takes_acks(), self.store.bytes_available());
        for slot in slots {
            if !takes_acks {
                self.store.touch(slot);
                continue;
            }
            let stream = &mut self.store.streams[slot];
            stream.dirty = false;
            let ack = Ack {
                stream: stream.info.id,
                durable_next: stream.watermark.next,
                received_next: stream.next_sequence,
                credit_bytes,
                lost_events: stream.watermark.lost_events,
            };
            connection.push(&ack.to_header().encode());
        }
    }

    fn bye(&self, connection: &Connection) -> Bye {
        let accounts = connection.slots.iter().zip(&connection.before).map(|(&slot, before)| {
            let stream = &self.store.streams[slot];
            let now = account(stream);
            let (received, durable) = (now.received - before.received, now.durable - before.durable);
            ByeStream {
                id: stream.info.id,
                received_events: received.events,
                received_bytes: received.bytes,
                durable_events: durable.events,
                durable_bytes: durable.bytes,
                lost_events: now.missing_events.saturating_sub(before.missing_events),
            }
        });
        Bye { streams: accounts.collect() }
    }

    /// Checks a client's final counts against what arrived on its connection.
    ///
    /// # Errors
    /// The first wrong count.
    pub(super) fn check_counts(&self, slot: usize, before: &Account, last: &EndStream) -> Result<(), String> {
        let now = account(&self.store.streams[slot]);
        let received = now.received - before.received;
        let damaged = now.damaged_events.saturating_sub(before.damaged_events);
        let arrived = received.events.saturating_add(damaged);
        let wrong = |what: String| Err(format!("the end message of stream {} is wrong: {what}", last.id));
        if last.next_sequence < now.next_sequence {
            let (stated, expected) = (last.next_sequence, now.next_sequence);
            return wrong(format!("next_sequence is {stated}, and event {} has arrived", expected - 1));
        }
        if self.store.streams[slot].check_jump(last.next_sequence).is_err() {
            let (stated, expected) = (last.next_sequence, now.next_sequence);
            return wrong(format!("next_sequence is {stated}, and event {expected} is due"));
        }
        if last.events != arrived {
            return wrong(format!("events is {}, and {arrived} arrived", last.events));
        }
        if damaged == 0 && last.bytes != received.bytes {
            return wrong(format!("bytes is {}, and {} arrived", last.bytes, received.bytes));
        }
        let numbers = last.next_sequence.saturating_sub(before.next_sequence);
        let stated = last.events.saturating_add(last.lost_events);
        if stated > numbers {
            return wrong(format!(
                "events and lost_events are {stated}, and this connection had {numbers} sequence numbers"
            ));
        }
        Ok(())
    }

    /// Final message to a client that has not ended when the recorder does.
    pub(super) fn send_final_message(&mut self, connection: &mut Connection, ended: &Ended) {
        if connection.expects_streams() || connection.is_closing() {
            return;
        }
        let mut slots = connection.slots.clone();
        slots.iter().for_each(|&slot| self.store.advance(slot));
        slots.retain(|&slot| self.store.streams[slot].dirty);
        self.acknowledge(connection, slots.into_iter());
        match ended {
            _ if connection.phase == Phase::Ending => connection.push_message(&self.bye(connection)),
            Ended::VolumesFailed(why) | Ended::InternalError(why) => {
                connection.push_message(&ErrorReply::of(&Cause::from_text(why)));
            }
            Ended::EndOfRun | Ended::Stopped | Ended::SourceFailed(_) => {
                connection.push_message(&ErrorReply {
                    error: "the recorder was stopped".into(),
                    hint: "events acknowledged as durable are on disk".into(),
                })
            }
        }
    }
}
