//! Subscriptions, filters, and behaviour without a reader.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};

use keepup_stream::wire::{ElementType, StreamInfo};

use keepup_results::live::TapFilter;

use super::{TAP_SUBSCRIBERS_MAX, Tap, TapEvent, TapFull, TapInlet};
use crate::counters::StreamCounters;

fn stream(id: u32) -> Arc<StreamCounters> {
    let name = format!("s{id}");
    let info = StreamInfo { id, name, element: ElementType::U8, shape: vec![], compression: None };
    Arc::new(StreamCounters::new(info))
}

/// A tap with 2 MiB, and its intake side with streams 0 to 3 in slots of the same number.
fn tap() -> (Arc<Tap>, TapInlet) {
    let tap = Arc::new(Tap::new(2 << 20));
    let inlet = tap.attach(1).unwrap().remove(0);
    (tap, inlet)
}

fn offer(inlet: &mut TapInlet, id: u32, sequence: u64, now_ns: u64) {
    if inlet.wants(id as usize) {
        inlet.offer(&stream(id), (sequence, 7), &sequence.to_le_bytes(), now_ns);
    }
}

fn next(tap: &Tap) -> Option<TapEvent> {
    match tap.poll_next(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(event) => Some(event),
        Poll::Pending => None,
    }
}

fn drain(tap: &Tap) -> Vec<(u32, u64, u64)> {
    std::iter::from_fn(|| next(tap))
        .map(|event| (event.stream.info.id, event.sequence, event.subscribers))
        .collect()
}

#[test]
fn nothing_is_copied_without_subscribers() {
    let (tap, mut inlet) = tap();
    inlet.refresh(0..4);
    assert!((0..4).all(|slot| !inlet.wants(slot)));
    assert!(next(&tap).is_none());
}

#[test]
fn a_subscriber_gets_its_streams_and_every_nth_event() {
    let (tap, mut inlet) = tap();
    let one = tap.subscribe(TapFilter { streams: vec![2], every: 3, per_second: None }).unwrap();
    let all = tap.subscribe(TapFilter::default()).unwrap();
    inlet.refresh(0..4);
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
fn a_rate_limits_all_streams_of_a_subscriber() {
    let (tap, mut inlet) = tap();
    tap.subscribe(TapFilter { per_second: Some(10.0), ..TapFilter::default() }).unwrap();
    inlet.refresh(0..4);
    // 1,000 events per second for two seconds, over four streams.
    for at in 0..2000u64 {
        offer(&mut inlet, (at % 4) as u32, at / 4, 1_000_000_000 + at * 1_000_000);
    }
    assert_eq!(drain(&tap).len(), 20);
}

#[test]
fn payloads_are_copies_and_their_memory_is_returned() {
    let (tap, mut inlet) = tap();
    tap.subscribe(TapFilter::default()).unwrap();
    inlet.refresh(0..4);
    for sequence in 0..10_000 {
        offer(&mut inlet, 0, sequence, 0);
        let event = next(&tap).unwrap();
        assert_eq!(event.payload.as_ref(), sequence.to_le_bytes());
    }
    assert_eq!(tap.missed(0), 0);
}

#[test]
fn unread_events_are_missed_and_counted_and_later_ones_arrive() {
    let (tap, mut inlet) = tap();
    let subscriber = tap.subscribe(TapFilter::default()).unwrap();
    inlet.refresh(0..4);
    let big = vec![1u8; 512 << 10];
    for sequence in 0..10 {
        inlet.offer(&stream(0), (sequence, 0), &big, 0);
    }
    assert_eq!(tap.missed(subscriber), 6, "2 MiB hold four of 512 KiB");
    assert_eq!(drain(&tap).len(), 4);
    inlet.offer(&stream(0), (10, 0), &big, 0);
    assert_eq!(drain(&tap).len(), 1);
    let giant = vec![1u8; 3 << 20];
    inlet.offer(&stream(0), (11, 0), &giant, 0);
    assert_eq!(tap.missed(subscriber), 7, "an event larger than the memory is missed at once");
}

#[test]
fn subscriptions_are_limited_and_reusable() {
    let (tap, mut inlet) = tap();
    let subscribers: Vec<usize> =
        (0..TAP_SUBSCRIBERS_MAX).map(|_| tap.subscribe(TapFilter::default()).unwrap()).collect();
    assert_eq!(tap.subscribe(TapFilter::default()), Err(TapFull));
    inlet.refresh(0..1);
    assert!(inlet.wants(0));
    subscribers.iter().for_each(|subscriber| tap.unsubscribe(*subscriber));
    inlet.refresh(0..1);
    assert!(!inlet.wants(0), "nothing is copied after an unsubscribe");
    assert!(tap.subscribe(TapFilter::default()).is_ok());
}

#[derive(Default)]
struct Bell(AtomicU64);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn a_waiting_task_is_woken_once_by_the_next_event() {
    let (tap, mut inlet) = tap();
    tap.subscribe(TapFilter::default()).unwrap();
    inlet.refresh(0..1);
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    let poll = || tap.poll_next(&mut Context::from_waker(&waker)).is_ready();
    assert!(!poll());
    offer(&mut inlet, 0, 0, 0);
    offer(&mut inlet, 0, 1, 0);
    assert_eq!(bell.0.load(Relaxed), 1);
    assert!(poll() && poll() && !poll());
    offer(&mut inlet, 0, 2, 0);
    assert_eq!(bell.0.load(Relaxed), 2);
}

#[test]
fn no_wake_up_is_lost_between_two_threads() {
    let (tap, mut inlet) = tap();
    tap.subscribe(TapFilter::default()).unwrap();
    inlet.refresh(0..1);
    const EVENTS: u64 = 20_000;
    let taken = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for sequence in 0..EVENTS {
                // As many as the memory holds, so that none is missed.
                while sequence - taken.load(Relaxed) > sequence % 64 {
                    std::hint::spin_loop();
                }
                offer(&mut inlet, 0, sequence, 0);
            }
        });
        let waker = Waker::from(Arc::new(Unparks(std::thread::current())));
        while taken.load(Relaxed) < EVENTS {
            match tap.poll_next(&mut Context::from_waker(&waker)) {
                Poll::Ready(event) => assert_eq!(taken.fetch_add(1, Relaxed), event.sequence),
                // Nothing else wakes this thread: after a lost wake-up the test would hang.
                Poll::Pending => std::thread::park(),
            }
        }
    });
    assert_eq!(tap.missed(0), 0);
}

struct Unparks(std::thread::Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn a_subscription_outlives_the_recorder() {
    let (tap, first) = tap();
    tap.subscribe(TapFilter::default()).unwrap();
    drop(first);
    let mut second = tap.attach(1).unwrap().remove(0);
    second.refresh(0..4);
    offer(&mut second, 3, 9, 0);
    assert_eq!(drain(&tap), [(3, 9, 1)]);
}

#[test]
fn several_intakes_share_a_subscriber_and_its_rate() {
    let tap = Arc::new(Tap::new(4 << 20));
    let mut inlets = tap.attach(2).unwrap();
    tap.subscribe(TapFilter { per_second: Some(1.0), ..TapFilter::default() }).unwrap();
    inlets.iter_mut().for_each(|inlet| inlet.refresh(0..4));
    offer(&mut inlets[0], 1, 5, 10);
    offer(&mut inlets[1], 2, 6, 20);
    assert_eq!(drain(&tap), [(1, 5, 1)], "one event per second, not one per second and intake");
    offer(&mut inlets[1], 2, 7, 2_000_000_000);
    assert_eq!(drain(&tap), [(2, 7, 1)]);
}
