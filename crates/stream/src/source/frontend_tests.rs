//! Conservation of events in the buffer and the counts.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::source::plan::Rate;
use crate::source::plan::tests::plan;

/// One stream with one event of 936 bytes (1000 with its header) per millisecond, and space for
/// `capacity` events.
fn front(capacity: u64, change: impl FnOnce(&mut SourcePlan)) -> FrontEnd {
    let mut plan = SourcePlan {
        size: EventSize::Fixed(936),
        streams: 1,
        connections: 1,
        events: None,
        buffer_bytes: 1000 * capacity,
        ..plan()
    };
    change(&mut plan);
    FrontEnd::new(&plan, None, 0, &vec![50; plan.streams as usize])
}

const MS: u64 = 1_000_000;

#[test]
fn an_event_that_finds_the_buffer_full_is_lost_and_uses_up_its_number() {
    let mut front = front(3, |_| {});
    front.advance(9 * MS); // ten events
    assert_eq!((front.totals().due.events, front.totals().lost.events), (10, 7));
    assert_eq!((front.backlog_bytes(), front.max_backlog_bytes()), (3000, 3000));
    let mut taken = Vec::new();
    while let Some(event) = front.peek(9 * MS) {
        front.take(event);
        taken.push((event.sequence, event.due_ns));
    }
    assert_eq!(taken, [(50, 0), (51, MS), (52, 2 * MS)]);
    front.advance(10 * MS);
    assert_eq!(front.totals().lost.events, 8, "events in flight still occupy the buffer");
    front.confirm();
    front.advance(11 * MS);
    let event = front.peek(11 * MS).unwrap();
    assert_eq!((event.sequence, front.streams()[0].next_sequence), (61, 62));
}

#[test]
fn the_schedule_ends_with_its_duration_or_its_events() {
    let mut timed = front(100, |p| p.duration = Some(Duration::from_millis(5)));
    timed.advance(100 * MS);
    assert_eq!(timed.totals().due.events, 5, "the event at 5 ms is beyond the schedule");
    assert_eq!(timed.next_change_ns(4 * MS), Some(5 * MS), "the schedule lasts to its end");
    assert_eq!(timed.next_change_ns(5 * MS), None);
    let mut counted = front(100, |p| p.events = Some(3));
    assert_eq!(counted.next_change_ns(0), Some(0));
    counted.advance(MS);
    assert_eq!(counted.next_change_ns(MS), Some(2 * MS));
    counted.advance(100 * MS);
    assert_eq!((counted.totals().due.events, counted.next_change_ns(0)), (3, None));
    assert_eq!(front(100, |p| p.events = Some(0)).next_change_ns(0), None);
}

#[test]
fn a_closed_loop_is_never_late_and_loses_nothing() {
    let mut front = front(1, |p| (p.rate, p.duration) = (Rate::Max, Some(Duration::from_millis(5))));
    for now_ns in 0..20 {
        front.advance(now_ns);
        let event = front.peek(now_ns).unwrap();
        assert_eq!((event.sequence, event.due_ns), (50 + now_ns, now_ns));
        front.take(event);
    }
    front.confirm();
    assert_eq!(front.peek(5 * MS), None);
    let totals = front.totals();
    assert_eq!((totals.due.events, totals.sent.events, totals.lost.events), (20, 20, 0));
}

#[test]
fn discarding_accounts_for_waiting_and_in_flight_events() {
    let mut front = front(10, |_| {});
    front.advance(4 * MS);
    for _ in 0..2 {
        let event = front.peek(4 * MS).unwrap();
        front.take(event);
    }
    front.discard();
    assert_eq!((front.totals().lost.events, front.backlog_bytes()), (5, 0));
    assert_eq!((front.peek(9 * MS), front.next_change_ns(0)), (None, None));
}

proptest! {
    #[test]
    fn fifo_conserves_events_and_bytes(
        capacity in 0u64..5000,
        steps in prop::collection::vec((any::<bool>(), 0u64..1500), 0..300),
    ) {
        let mut fifo = Fifo::new(capacity);
        let mut model = VecDeque::new();
        for (number, (arrives, bytes)) in (0u64..).zip(steps) {
            if arrives {
                let used: u64 = model.iter().map(|(_, bytes)| bytes).sum();
                let has_room = used + bytes <= capacity;
                prop_assert_eq!(fifo.arrive(number, bytes), has_room);
                if has_room {
                    model.push_back((number, bytes));
                }
            } else {
                let oldest: Option<(u64, u64)> = model.pop_front();
                prop_assert_eq!(fifo.peek(), oldest.map(|(number, _)| number));
                prop_assert_eq!(fifo.pop(), oldest.map(|(number, _)| number));
                fifo.release(oldest.map_or(0, |(_, bytes)| bytes));
            }
            prop_assert_eq!(fifo.bytes(), model.iter().map(|(_, bytes)| bytes).sum::<u64>());
            prop_assert!(fifo.bytes() <= fifo.bytes_max_seen() && fifo.bytes_max_seen() <= capacity);
            prop_assert!(fifo.ranges.len() <= model.len());
        }
    }

    #[test]
    fn due_is_always_sent_lost_waiting_or_in_flight(
        capacity in 2u64..20, streams in 1u32..5,
        steps in prop::collection::vec((0u64..10, 0usize..10), 1..60),
    ) {
        let size = EventSize::Uniform { min: 0, max: 1900 };
        let mut front = front(capacity, |p| (p.size, p.streams) = (size, streams));
        let mut now_ns = 0;
        for (ms, sends) in steps {
            now_ns += ms * MS;
            front.advance(now_ns);
            for _ in 0..sends {
                if let Some(event) = front.peek(now_ns) {
                    prop_assert!(event.due_ns <= now_ns);
                    front.take(event);
                }
            }
            let t = front.totals();
            let inside: u64 = front.fifo.ranges.iter().map(|r| r.end - r.start).sum();
            let inside = inside + front.in_flight().len() as u64;
            prop_assert_eq!(t.due.events, t.sent.events + t.lost.events + inside);
            prop_assert_eq!(t.due.events, now_ns / MS + 1);
            if sends % 2 == 0 {
                front.confirm();
            }
        }
        front.discard();
        for stream in front.streams() {
            prop_assert_eq!(stream.due, stream.sent + stream.lost);
            prop_assert_eq!(stream.next_sequence - stream.first_sequence, stream.due.events);
        }
    }
}
