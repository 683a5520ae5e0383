//! The end of a recording: every intake makes durable what it has received, accounts for it, and tells its
//! clients. Writers end once no intake has blocks for them.
use super::connection::Expect;
use super::receive::finish_event;
use super::shards::Step;
use super::{Intake, SHUTDOWN_NS};
use crate::keeper::Conclusion;
use crate::report::Ended;

impl Intake {
    /// Stops reading, makes everything durable, ends the writers and sends clients their final
    /// message.
    pub(super) fn finish(&mut self, ended: &Ended) {
        if self.switches.is_open() && !self.is_open {
            // Its sockets have packets already.
            self.start_accepting();
        }
        self.switches.end();
        self.reach(Step::MovesStopped);
        self.take_last_mail();
        if !matches!(ended, Ended::VolumesFailed(_)) {
            self.finish_events();
        }
        self.store.skip_cut_off();
        self.finish_detectors();
        for slot in 0..self.store.streams.len() {
            self.store.seal(slot);
        }
        self.store.flush();
        while !self.store.is_settled() && !self.store.is_over() {
            if self.shards.has_dead_writers() && self.store.volumes.has_handed_over() {
                break;
            }
            self.wait_for_reports();
        }
        self.reach(Step::Settled);
        if self.shards.has_dead_writers() {
            // The losses of a dead writer are complete once the others have ended.
            self.store.volumes.close();
            self.wait_for_writers();
            self.store.lose_unsettled();
        }
        self.account(ended);
        self.store.reductions.close();
        self.wait_for_writers();
        self.notify_clients(ended);
        for stream in self.store.streams.iter_mut().filter(|stream| stream.owner.is_some()) {
            stream.ledger.unfinished += 1;
        }
    }

    /// Ends after a panic in [`Intake::finish`]: the others do not wait for this intake, and the journals get
    /// their end.
    pub(super) fn give_up(&mut self, ended: &Ended) {
        if self.membership.next_step().is_some() {
            self.shards.lack_account();
        }
        while let Some(step) = self.membership.next_step() {
            if self.membership.take(step) && step == Step::Accounted {
                self.conclude(ended);
            }
        }
        self.store.reductions.close();
    }

    /// Takes the rest of events that have arrived in part: their clients may be sending it.
    fn finish_events(&mut self) {
        let deadline_ns = self.clock.now_ns() + SHUTDOWN_NS;
        for index in 0..self.connections.len() {
            let Some(mut connection) = self.connections[index].take() else { continue };
            let is_client = connection.detector.is_none() && !connection.is_closing();
            while is_client && !finish_event(&mut connection, &mut self.store, self.clock.now_ns()) {
                if self.clock.now_ns() >= deadline_ns {
                    break;
                }
                self.wait_for_reports();
            }
            if let (true, Expect::Event(partial)) = (is_client, &connection.expect) {
                self.store.streams[partial.slot].cut_off = Some(partial.head.sequence);
            }
            self.connections[index] = Some(connection);
        }
    }

    /// Adds this intake's part to the account of the recording. The last one hands it to the journals and
    /// ends the writers.
    fn account(&mut self, ended: &Ended) {
        self.store.volumes.send_open_gap();
        self.shards.add_ends(self.store.ends());
        if self.membership.take(Step::Accounted) {
            self.conclude(ended);
        }
    }

    /// Hands the account of all intakes to the journals and ends the writers.
    fn conclude(&mut self, ended: &Ended) {
        let failure = self.switches.failure().or_else(|| ended.failure());
        self.store.volumes.conclude(&Conclusion {
            clean: failure.is_none(),
            reason: match (failure, ended) {
                (Some(why), _) => why.to_owned(),
                (None, Ended::EndOfRun) => "end of run".into(),
                (None, _) => "stopped".into(),
            },
            streams: self.shards.take_ends(),
            rejected: self.counters.rejected(),
        });
        self.store.volumes.close();
    }

    /// Takes a step and waits until every intake has taken it.
    fn reach(&mut self, step: Step) {
        self.membership.take(step);
        while !self.shards.is_taken(step) {
            self.wait_for_reports();
        }
    }

    fn wait_for_writers(&mut self) {
        while !self.store.volumes.is_closed() {
            if self.shards.is_deserted() {
                // Nobody else may be left to end them.
                self.store.volumes.close();
            }
            self.wait_for_reports();
        }
    }

    pub(super) fn wait_for_reports(&mut self) {
        self.store.volumes.nudge();
        let now_ns = self.clock.now_ns();
        if self.store.absorb().durable {
            self.last_durable_ns = self.clock.now_ns();
        }
        self.clock.sleep_until_ns(now_ns + 500_000);
    }

    /// Sends connected clients the result; waits a little for those that read.
    fn notify_clients(&mut self, ended: &Ended) {
        let deadline_ns = self.clock.now_ns() + SHUTDOWN_NS;
        for index in 0..self.connections.len() {
            let Some(mut connection) = self.connections[index].take() else { continue };
            if let Some((slot, sequence)) = connection.event_under_way() {
                let stream = self.store.streams[slot].info.id;
                self.store.incidents.push(format!(
                    "{}: the recorder ended while event {sequence} of stream {stream} was arriving",
                    connection.peer
                ));
            }
            self.send_final_message(&mut connection, ended);
            while !connection.is_flushed() && self.clock.now_ns() < deadline_ns {
                if connection.flush().is_err() {
                    break;
                }
                self.clock.sleep_until_ns(self.clock.now_ns() + 1_000_000);
            }
        }
    }
}
