//! Seats, filters, and what happens when nobody takes what was copied.
use std::sync::Arc;
use std::time::Duration;

use keepup_stream::wire::{ElementType, StreamInfo};

use keepup_results::live::TapFilter;

use super::{NoSeat, TAP_SEATS, Tap, TapInlet};
use crate::counters::StreamCounters;

fn stream(id: u32) -> Arc<StreamCounters> {
    let name = format!("s{id}");
    let info = StreamInfo { id, name, element: ElementType::U8, shape: vec![], compression: None };
    Arc::new(StreamCounters::new(info))
}

/// A tap with 2 MiB, and the intake's end with the streams 0 to 3 in slots of the same number.
fn tap() -> (Arc<Tap>, TapInlet) {
    let tap = Arc::new(Tap::new(2 << 20).unwrap());
    let inlet = tap.attach().unwrap();
    (tap, inlet)
}

fn offer(inlet: &mut TapInlet, id: u32, sequence: u64, now_ns: u64) {
    if inlet.wants(id as usize) {
        inlet.offer(&stream(id), (sequence, 7), &sequence.to_le_bytes(), now_ns);
    }
}

fn drain(tap: &Tap) -> Vec<(u32, u64, u64)> {
    let next = || tap.next(Duration::ZERO);
    std::iter::from_fn(next).map(|event| (event.stream.info.id, event.sequence, event.seats)).collect()
}

#[test]
fn nothing_is_copied_while_nobody_sits() {
    let (tap, mut inlet) = tap();
    inlet.look(0..4);
    assert!((0..4).all(|slot| !inlet.wants(slot)));
    assert!(tap.next(Duration::from_millis(1)).is_none());
}

#[test]
fn a_seat_gets_the_streams_it_asked_for_and_every_nth() {
    let (tap, mut inlet) = tap();
    let one = tap.sit(TapFilter { streams: vec![2], every: 3, per_second: None }).unwrap();
    let all = tap.sit(TapFilter::default()).unwrap();
    inlet.look(0..4);
    for sequence in 0..7 {
        offer(&mut inlet, 2, sequence, 0);
    }
    offer(&mut inlet, 1, 0, 0);
    let (one, all) = (1 << one, 1 << all);
    let both = one | all;
    let wanted = [
        (2, 0, both),
        (2, 1, all),
        (2, 2, all),
        (2, 3, both),
        (2, 4, all),
        (2, 5, all),
        (2, 6, both),
        (1, 0, all),
    ];
    assert_eq!(drain(&tap), wanted);
}

#[test]
fn a_rate_is_a_limit_over_all_streams_of_the_seat() {
    let (tap, mut inlet) = tap();
    tap.sit(TapFilter { per_second: Some(10.0), ..TapFilter::default() }).unwrap();
    inlet.look(0..4);
    // 1,000 events a second for two seconds, over four streams.
    for at in 0..2000u64 {
        offer(&mut inlet, (at % 4) as u32, at / 4, 1_000_000_000 + at * 1_000_000);
    }
    assert_eq!(drain(&tap).len(), 20);
}

#[test]
fn payloads_are_copies_and_their_memory_comes_back() {
    let (tap, mut inlet) = tap();
    tap.sit(TapFilter::default()).unwrap();
    inlet.look(0..4);
    for sequence in 0..10_000 {
        offer(&mut inlet, 0, sequence, 0);
        let event = tap.next(Duration::ZERO).unwrap();
        assert_eq!(event.payload.as_ref(), sequence.to_le_bytes());
    }
    assert_eq!(tap.missed(0), 0);
}

#[test]
fn what_nobody_takes_is_missed_and_counted_and_later_events_come_again() {
    let (tap, mut inlet) = tap();
    let seat = tap.sit(TapFilter::default()).unwrap();
    inlet.look(0..4);
    let big = vec![1u8; 512 << 10];
    for sequence in 0..10 {
        inlet.offer(&stream(0), (sequence, 0), &big, 0);
    }
    assert_eq!(tap.missed(seat), 6, "2 MiB hold four of 512 KiB");
    assert_eq!(drain(&tap).len(), 4);
    inlet.offer(&stream(0), (10, 0), &big, 0);
    assert_eq!(drain(&tap).len(), 1);
    let giant = vec![1u8; 3 << 20];
    inlet.offer(&stream(0), (11, 0), &giant, 0);
    assert_eq!(tap.missed(seat), 7, "one that is larger than the memory is missed, not waited for");
}

#[test]
fn seats_are_bounded_and_come_free() {
    let (tap, mut inlet) = tap();
    let seats: Vec<usize> = (0..TAP_SEATS).map(|_| tap.sit(TapFilter::default()).unwrap()).collect();
    assert_eq!(tap.sit(TapFilter::default()), Err(NoSeat));
    inlet.look(0..1);
    assert!(inlet.wants(0));
    seats.iter().for_each(|seat| tap.leave(*seat));
    inlet.look(0..1);
    assert!(!inlet.wants(0), "nothing is copied for those who left");
    assert!(tap.sit(TapFilter::default()).is_ok());
}

#[test]
fn a_seat_outlives_the_recorder() {
    let (tap, first) = tap();
    tap.sit(TapFilter::default()).unwrap();
    drop(first);
    let mut second = tap.attach().unwrap();
    second.look(0..4);
    offer(&mut second, 3, 9, 0);
    assert_eq!(drain(&tap), [(3, 9, 1)]);
}
