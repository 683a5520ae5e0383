//! Hello: which intake serves a connection, and the connections and streams that move for it.
//!
//! The first intake accepts; a client's hello decides where its connection is served. A connection whose
//! streams are at several intakes waits at one of them until the others have sent theirs.
use keepup_error::Cause;
use keepup_stream::wire::Hello;

use super::Intake;
use super::connection::Connection;
use super::mail::{Mail, Wanted};
use super::shards::{Route, StreamMoving};
use super::store::Moved;

/// Times that a connection asks for streams at other intakes. Only two clients that declare the same streams
/// at the same time need more than one.
const ROUNDS_MAX: u32 = 3;

/// A connection that waits for streams of other intakes.
pub(super) struct Parked {
    ticket: u64,
    index: usize,
    hello: Hello,
    /// Intakes that have not answered.
    awaited: usize,
    refused: Option<Cause>,
    round: u32,
}

/// Streams that will be sent to another intake once they are settled.
pub(super) struct Leaving {
    intake: usize,
    ticket: u64,
    slots: Vec<usize>,
    since_ns: u64,
}

/// Outcome of a hello.
enum HelloOutcome {
    Welcome,
    /// Another intake serves the connection.
    Elsewhere(usize),
    /// The connection waits until this many intakes have answered.
    Awaits(usize),
}

impl Intake {
    /// Serves a connection that has said hello, here or at another intake.
    pub(super) fn settle_in(
        &mut self,
        index: usize,
        mut connection: Connection,
        hello: Hello,
        round: u32,
        now_ns: u64,
    ) {
        match self.greet(index, &mut connection, &hello, round, now_ns) {
            Ok(HelloOutcome::Welcome) => {
                self.connections[index] = Some(connection);
                // Bytes behind the hello may have arrived with it.
                self.serve(index, now_ns);
            }
            Ok(HelloOutcome::Elsewhere(intake)) => self.hand_over(index, connection, hello, intake),
            Ok(HelloOutcome::Awaits(awaited)) => {
                let ticket = self.next_ticket;
                (connection.waiting, connection.ticket) = (true, Some(ticket));
                self.watch(index, &mut connection);
                self.connections[index] = Some(connection);
                self.parked.push(Parked { ticket, index, hello, awaited, refused: None, round });
                self.next_ticket += 1;
            }
            Err(why) => {
                self.store.forget_unknown(&hello.streams);
                self.refuse(index, connection, &why);
            }
        }
    }

    fn greet(
        &mut self,
        index: usize,
        connection: &mut Connection,
        hello: &Hello,
        round: u32,
        now_ns: u64,
    ) -> Result<HelloOutcome, Cause> {
        hello.client_streams.map_or(Ok(()), |streams| self.store.check_client(streams))?;
        let ids: Vec<u32> = hello.streams.iter().map(|info| info.id).collect();
        let route = match connection.slots.is_empty() {
            true => self.shards.places().route(&ids, self.near(connection)),
            // A detector with more streams.
            false => self.shards.places().route_here(&ids, self.index),
        };
        let Route { intake, elsewhere } = route.map_err(|StreamMoving(id)| busy(id))?;
        if intake != self.index {
            return Ok(HelloOutcome::Elsewhere(intake));
        }
        if let Some(id) = elsewhere.values().flatten().next() {
            if round == ROUNDS_MAX {
                return Err(busy(*id));
            }
            self.store.check_memory(hello.streams.len() - self.store.count_known(&hello.streams))?;
            for (&intake, ids) in &elsewhere {
                let streams = hello.streams.iter().filter(|info| ids.contains(&info.id));
                let wanted = Wanted {
                    intake: self.index,
                    ticket: self.next_ticket,
                    streams: streams.cloned().collect(),
                    resume: hello.resume.clone(),
                    peer: connection.peer.clone(),
                };
                self.post.send(intake, Mail::Wanted(Box::new(wanted)));
            }
            return Ok(HelloOutcome::Awaits(elsewhere.len()));
        }
        let replaced = self.replaceable(&hello.streams, hello.resume.as_deref(), now_ns);
        let starts = hello.continued.iter().map(|stream| (stream.id, stream.next_sequence)).collect();
        connection.slots.extend(self.store.adopt(&hello.streams, index, &replaced, &starts)?);
        if hello.continued.iter().any(|stream| stream.next_sequence > 0) {
            self.counters.continues.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        connection.resume.clone_from(&hello.resume);
        connection.client.clone_from(&hello.client);
        replaced.into_iter().for_each(|old| self.replace(old, &connection.peer));
        // Only the first drain's recording gives this one its name.
        hello.recording.iter().for_each(|sent| drop(self.counters.sent.set(sent.clone())));
        if let Some(detector) = &connection.detector {
            self.counters.add_metadata(detector.metadata());
        }
        self.welcome(connection);
        Ok(HelloOutcome::Welcome)
    }

    /// The intake with the CPU that the kernel receives the connection's data on, or this one.
    fn near(&self, connection: &Connection) -> usize {
        let cpu = rustix::net::sockopt::socket_incoming_cpu(&connection.socket);
        let has = |intake: &usize, cpu| self.config.cpus_of_intake(*intake).contains(&cpu);
        let found =
            cpu.ok().and_then(|cpu| (0..self.shards.count()).find(|intake| has(intake, cpu as usize)));
        found.unwrap_or(self.index)
    }

    fn hand_over(&mut self, index: usize, mut connection: Connection, hello: Hello, intake: usize) {
        (connection.waiting, connection.ticket) = (true, None);
        // Leaves this intake's epoll.
        self.watch(index, &mut connection);
        self.count_connections(-1);
        self.post.send(intake, Mail::Connection(Box::new((connection, hello))));
    }

    /// Handles mail of other intakes.
    pub(super) fn take_mail(&mut self, now_ns: u64) {
        while let Some(mail) = self.inbox.next() {
            match mail {
                Mail::Connection(arrived) => {
                    let (connection, hello) = *arrived;
                    let index = self.free_index();
                    self.count_connections(1);
                    self.settle_in(index, connection, hello, 0, now_ns);
                }
                Mail::Wanted(wanted) => self.give(*wanted, now_ns),
                Mail::Streams { ticket, streams } => {
                    self.put_in(streams);
                    self.answered(ticket, None, now_ns);
                }
                Mail::Refused { ticket, why } => self.answered(ticket, Some(why), now_ns),
            }
        }
    }

    /// Takes what arrived before every intake stood still. Streams belong to the account; connections get no
    /// streams any more.
    pub(super) fn take_last_mail(&mut self) {
        while let Some(mail) = self.inbox.next() {
            match mail {
                Mail::Streams { streams, .. } => self.put_in(streams),
                Mail::Connection(arrived) => {
                    self.count_connections(1);
                    let (mut connection, hello) = *arrived;
                    if connection.detector.is_some() {
                        // It has sent events of these streams, and no one else can take them.
                        let _ = self.declare_here(self.connections.len(), &mut connection, &hello);
                    }
                    self.connections.push(Some(connection));
                }
                Mail::Wanted(_) | Mail::Refused { .. } => {}
            }
        }
        for Leaving { slots, .. } in std::mem::take(&mut self.leaving) {
            self.store.stay(&slots);
        }
    }

    fn put_in(&mut self, streams: Vec<Moved>) {
        let mut places = self.shards.places();
        for moved in streams {
            moved.ids().for_each(|id| places.arrive(id, self.index));
            self.store.put_in(moved);
        }
    }

    /// Prepares streams for a connection at another intake, unless a live connection sends them.
    fn give(&mut self, wanted: Wanted, now_ns: u64) {
        let Wanted { intake, ticket, streams, resume, peer } = wanted;
        let replaced = self.replaceable(&streams, resume.as_deref(), now_ns);
        if let Err(why) = self.store.check_known(&streams, &replaced) {
            return self.post.send(intake, Mail::Refused { ticket, why });
        }
        replaced.into_iter().for_each(|old| self.replace(old, &peer));
        self.store.forget_unknown(&streams);
        let slots = self.store.begin_leaving(streams.iter().map(|info| info.id));
        self.leaving.push(Leaving { intake, ticket, slots, since_ns: now_ns });
    }

    /// Sends streams that are settled to the intakes that want them. Those that are not within a time limit,
    /// because a volume is slow, stay.
    pub(super) fn send_leaving(&mut self, now_ns: u64) {
        let limit_ns = self.config.peer_timeout.as_nanos() as u64;
        let is_late = |leaving: &Leaving| now_ns.saturating_sub(leaving.since_ns) > limit_ns;
        let (leaving, store) = (&self.leaving, &mut self.store);
        let ready = |leaving: &Leaving| leaving.slots.iter().all(|&slot| store.can_leave(slot));
        let Some(at) = leaving.iter().position(ready) else {
            if let Some(at) = self.leaving.iter().position(is_late) {
                let Leaving { intake, ticket, slots, .. } = self.leaving.swap_remove(at);
                self.store.stay(&slots);
                let what = "cannot take streams of another connection: their events are not durable yet";
                let why = Cause::new(what).with_hint("reconnect; a volume is slow");
                self.post.send(intake, Mail::Refused { ticket, why });
            }
            return;
        };
        let Leaving { intake, ticket, slots, .. } = self.leaving.swap_remove(at);
        let streams: Vec<Moved> = slots.into_iter().map(|slot| self.store.take_out(slot)).collect();
        let mut places = self.shards.places();
        streams.iter().flat_map(Moved::ids).for_each(|id| places.leave(id));
        drop(places);
        self.post.send(intake, Mail::Streams { ticket, streams });
    }

    /// Continues with a waiting connection when all intakes have answered.
    fn answered(&mut self, ticket: u64, refused: Option<Cause>, now_ns: u64) {
        let Some(at) = self.parked.iter().position(|parked| parked.ticket == ticket) else { return };
        let parked = &mut self.parked[at];
        parked.awaited -= 1;
        parked.refused = parked.refused.take().or(refused);
        if parked.awaited > 0 {
            return;
        }
        let Parked { index, hello, refused, round, .. } = self.parked.swap_remove(at);
        // The client may be gone, and its place taken.
        let is_waiting = |connection: &mut Connection| connection.ticket == Some(ticket);
        let Some(mut connection) = self.connections[index].take_if(is_waiting) else {
            return self.store.forget_unknown(&hello.streams);
        };
        connection.ticket = None;
        match refused {
            Some(why) => {
                self.store.forget_unknown(&hello.streams);
                self.refuse(index, connection, &why);
            }
            None => self.settle_in(index, connection, hello, round + 1, now_ns),
        }
    }
}

fn busy(id: u32) -> Cause {
    Cause::new(format!("cannot take stream {id}: another connection is taking it over"))
        .with_hint("reconnect; declare each stream on one connection only")
}
