//! Conservation of events over any sequence of deaths, moves and acknowledgements.
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const STREAMS: usize = 3;
const RECORDERS: u16 = 3;

fn address(recorder: u16) -> SocketAddr {
    ([127, 0, 0, 1], recorder).into()
}

/// What a recorder has of a stream.
#[derive(Debug, Clone, Default)]
struct Held {
    next: u64,
    durable_next: u64,
    events: Vec<u64>,
}

/// Recorders, and the streams' connections.
struct World {
    kept: Kept,
    /// Recorder and number of the connection of each stream.
    places: [Option<(u16, ConnectionId)>; STREAMS],
    held: BTreeMap<(u16, usize), Held>,
    durable: [std::collections::BTreeSet<u64>; STREAMS],
    next: [u64; STREAMS],
    pushed: Vec<(usize, u64)>,
    pushed_bytes: u64,
    released_bytes: u64,
    connections: ConnectionId,
}

#[derive(Debug, Clone)]
enum Step {
    /// An event becomes due; so many before it were lost at the source.
    Due { slot: usize, lost: u64 },
    /// A connection sends up to so many events.
    Send { slot: usize, events: usize },
    /// What a recorder has becomes durable; the source may not hear of it.
    Flush { slot: usize, is_heard: bool },
    /// The connection of a stream breaks.
    Cut { slot: usize },
    /// A recorder dies: what is not durable is lost.
    Kill { recorder: u16 },
    /// Streams without a connection get one.
    Connect { recorder: u16 },
}

fn step() -> impl Strategy<Value = Step> {
    let (slot, recorder) = (0..STREAMS, 1..=RECORDERS);
    prop_oneof![
        5 => (slot.clone(), 0..2u64).prop_map(|(slot, lost)| Step::Due { slot, lost }),
        4 => (slot.clone(), 1..6usize).prop_map(|(slot, events)| Step::Send { slot, events }),
        3 => (slot.clone(), any::<bool>()).prop_map(|(slot, is_heard)| Step::Flush { slot, is_heard }),
        1 => slot.prop_map(|slot| Step::Cut { slot }),
        1 => recorder.clone().prop_map(|recorder| Step::Kill { recorder }),
        3 => recorder.prop_map(|recorder| Step::Connect { recorder }),
    ]
}

impl World {
    fn new() -> Self {
        Self {
            kept: Kept::new((0..STREAMS as u32).map(|id| (id, 10))),
            places: [None; STREAMS],
            held: BTreeMap::new(),
            durable: Default::default(),
            next: [10; STREAMS],
            pushed: Vec::new(),
            pushed_bytes: 0,
            released_bytes: 0,
            connections: 0,
        }
    }

    fn due(&mut self, slot: usize, lost: u64) {
        let sequence = self.next[slot] + lost;
        let event = Event { slot, stream: slot as u32, sequence, due_ns: sequence, bytes: sequence % 7 };
        self.kept.push(&event, lost, 0);
        self.next[slot] = sequence + 1;
        self.pushed.push((slot, sequence));
        self.pushed_bytes += event.occupied_bytes();
    }

    fn send(&mut self, slot: usize, events: usize) {
        let Some((recorder, connection)) = self.places[slot] else { return };
        for _ in 0..events {
            let Some(Outgoing { event, .. }) = self.kept.next(connection) else { return };
            let held = self.held.get_mut(&(recorder, event.slot)).unwrap();
            assert!(event.sequence >= held.next, "in order, each once");
            assert_eq!((event.due_ns, event.bytes), (event.sequence, event.sequence % 7));
            held.next = event.sequence + 1;
            held.events.push(event.sequence);
        }
    }

    fn flush(&mut self, slot: usize, is_heard: bool) {
        let Some((recorder, _)) = self.places[slot] else { return };
        let held = self.held.get_mut(&(recorder, slot)).unwrap();
        held.durable_next = held.next;
        self.durable[slot].extend(held.events.drain(..));
        let position = position(held);
        if is_heard {
            self.released_bytes += self.kept.acknowledge(slot, position, 0);
        }
    }

    fn cut(&mut self, connection: ConnectionId) {
        let slots: Vec<usize> = (0..STREAMS)
            .filter(|slot| self.places[*slot].is_some_and(|(_, number)| number == connection))
            .collect();
        self.kept.detach(connection, &slots);
        slots.into_iter().for_each(|slot| self.places[slot] = None);
    }

    fn kill(&mut self, recorder: u16) {
        for slot in 0..STREAMS {
            if let Some((of, connection)) = self.places[slot]
                && of == recorder
            {
                self.cut(connection);
            }
            // It begins anew, as another recording.
            self.held.remove(&(recorder, slot));
        }
    }

    fn connect(&mut self, recorder: u16) {
        let free: Vec<usize> = (0..STREAMS).filter(|slot| self.places[*slot].is_none()).collect();
        if free.is_empty() {
            return;
        }
        self.connections += 1;
        let mut positions = Vec::new();
        for slot in free {
            let held = self.held.entry((recorder, slot)).or_default();
            held.next = held.next.max(self.kept.durable_next(slot));
            positions.push((slot, position(held)));
            self.places[slot] = Some((recorder, self.connections));
        }
        self.released_bytes += self.kept.attach(self.connections, address(recorder), &positions, 0).unwrap();
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Due { slot, lost } => self.due(slot, lost),
            Step::Send { slot, events } => self.send(slot, events),
            Step::Flush { slot, is_heard } => self.flush(slot, is_heard),
            Step::Cut { slot } => {
                self.places[slot].into_iter().for_each(|(_, connection)| self.cut(connection));
            }
            Step::Kill { recorder } => self.kill(recorder),
            Step::Connect { recorder } => self.connect(recorder),
        }
        let occupied_bytes: u64 = self.pushed_bytes - self.released_bytes;
        let stored = self.kept.streams.iter().flat_map(|stream| &stream.events);
        assert_eq!(occupied_bytes, stored.map(|kept| kept.event(0, 0).occupied_bytes()).sum::<u64>());
    }
}

fn position(held: &Held) -> Position {
    Position { next_sequence: held.next, durable_next: held.durable_next, lost_events: 0 }
}

proptest! {
    #[test]
    fn every_event_is_acknowledged_once(steps in prop::collection::vec(step(), 1..300)) {
        let mut world = World::new();
        steps.iter().for_each(|step| world.step(step));
        world.connect(1);
        for slot in 0..STREAMS {
            world.send(slot, usize::MAX);
        }
        (0..STREAMS).for_each(|slot| world.flush(slot, true));
        prop_assert!(world.kept.is_empty());
        prop_assert_eq!(world.kept.acknowledged.events, world.pushed.len() as u64);
        prop_assert_eq!(world.released_bytes, world.pushed_bytes);
        for (slot, sequence) in &world.pushed {
            prop_assert!(world.durable[*slot].contains(sequence), "event {} of {}", sequence, slot);
        }
    }
}

fn kept(events: u64) -> Kept {
    let mut kept = Kept::new([(5, 0)].into_iter());
    for sequence in 0..events {
        kept.push(&Event { slot: 0, stream: 5, sequence, due_ns: 0, bytes: 1 }, 0, sequence);
    }
    kept
}

fn at(next_sequence: u64, durable_next: u64) -> [(usize, Position); 1] {
    [(0, Position { next_sequence, durable_next, lost_events: 0 })]
}

#[test]
fn a_recorder_cannot_acknowledge_what_it_was_not_sent() {
    let mut kept = kept(3);
    kept.attach(0, address(1), &at(0, 0), 0).unwrap();
    kept.next(0).unwrap();
    kept.acknowledge(0, Position { durable_next: 1 << 63, ..Position::default() }, 0);
    assert_eq!((kept.acknowledged.events, kept.durable_next(0)), (1, 1));
    assert_eq!(kept.next(0).unwrap().event.sequence, 1);
}

#[test]
fn a_welcome_outside_the_kept_events_is_refused() {
    let mut kept = kept(3);
    kept.attach(0, address(1), &at(0, 0), 0).unwrap();
    (0..3).for_each(|_| assert!(kept.next(0).is_some()));
    kept.acknowledge(0, Position { durable_next: 2, ..Position::default() }, 0);
    kept.detach(0, &[0]);
    for next in [0, 1, 4, u64::MAX] {
        assert!(kept.attach(1, address(2), &at(next, 0), 0).is_err(), "{next}");
    }
    kept.attach(1, address(2), &at(2, 2), 0).unwrap();
    let Outgoing { event, is_again } = kept.next(1).unwrap();
    assert_eq!((event.sequence, is_again, kept.moves, kept.sent_again.events), (2, true, 1, 1));
}

#[test]
fn losses_at_a_recorder_count_once_over_its_connections() {
    let mut kept = kept(3);
    let lost = |durable_next, lost_events| Position { next_sequence: 3, durable_next, lost_events };
    kept.attach(0, address(1), &[(0, Position { lost_events: 7, ..Position::default() })], 0).unwrap();
    (0..3).for_each(|_| assert!(kept.next(0).is_some()));
    kept.acknowledge(0, lost(1, 8), 0);
    kept.detach(0, &[0]);
    kept.attach(1, address(1), &[(0, lost(2, 9))], 0).unwrap();
    kept.detach(1, &[0]);
    kept.attach(2, address(2), &[(0, lost(3, 100))], 0).unwrap();
    assert_eq!((kept.lost_at_recorders, kept.acknowledged.events), (2, 3));
}

#[test]
fn end_counts_are_those_of_the_connection() {
    let mut kept = Kept::new([(5, 0)].into_iter());
    for (sequence, gap_bytes) in [(0, 0), (2, 10), (5, 30)] {
        kept.push(&Event { slot: 0, stream: 5, sequence, due_ns: 0, bytes: 100 }, gap_bytes, 0);
    }
    kept.attach(0, address(1), &at(0, 0), 0).unwrap();
    (0..3).for_each(|_| assert!(kept.next(0).is_some()));
    let end = |events, lost_events, lost_bytes| EndStream {
        id: 5,
        events,
        bytes: 100 * events,
        lost_events,
        lost_bytes,
        next_sequence: 7,
    };
    assert_eq!(kept.end(0, 7, 5), end(3, 4, 45));
    kept.acknowledge(0, Position { durable_next: 1, ..Position::default() }, 0);
    kept.detach(0, &[0]);
    kept.attach(1, address(2), &at(1, 0), 0).unwrap();
    (0..2).for_each(|_| assert!(kept.next(1).is_some()));
    assert_eq!(kept.end(0, 7, 5), end(2, 4, 45));
}

#[test]
fn patience_counts_from_the_last_acknowledgement() {
    let mut kept = kept(3); // the first at 0 ns
    let patience = Duration::from_nanos(10);
    assert_eq!((kept.overdue(10, patience), kept.overdue(11, patience)), (None, Some(5)));
    kept.attach(0, address(1), &at(0, 0), 0).unwrap();
    (0..3).for_each(|_| assert!(kept.next(0).is_some()));
    kept.acknowledge(0, Position { durable_next: 1, ..Position::default() }, 8);
    assert_eq!((kept.overdue(18, patience), kept.overdue(19, patience)), (None, Some(5)));
    kept.acknowledge(0, Position { durable_next: 3, ..Position::default() }, 18);
    assert_eq!(kept.overdue(1000, patience), None);
}

#[test]
fn events_that_are_given_up_say_whether_they_were_sent() {
    let mut kept = kept(3);
    kept.attach(0, address(1), &at(0, 0), 0).unwrap();
    kept.next(0).unwrap();
    let mut given_up = Vec::new();
    kept.give_up(|event, was_sent| given_up.push((event.sequence, was_sent)));
    assert_eq!(given_up, [(0, true), (1, false), (2, false)]);
    assert!(kept.is_empty() && kept.next(0).is_none());
}
