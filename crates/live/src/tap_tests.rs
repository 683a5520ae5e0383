//! Subscribers' queues: capacity, and missed events.
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use keepup_results::live::TapFilter;

use super::{EventCopy, QUEUE_MAX, TapHub};
use crate::testing::{TestTapSource, card};

fn hub() -> (Arc<TestTapSource>, Arc<TapHub>) {
    let subscribers = Arc::new(TestTapSource::default());
    (Arc::clone(&subscribers), TapHub::new(subscribers))
}

fn copy(stream: u32, sequence: u64, bytes: usize) -> EventCopy {
    EventCopy::new(card(stream, sequence), vec![7u8; bytes])
}

#[tokio::test]
async fn a_copy_goes_to_the_selected_subscribers() {
    let (_, hub) = hub();
    let mut first = hub.subscribe(TapFilter::default()).unwrap();
    let mut second = hub.subscribe(TapFilter::default()).unwrap();
    hub.distribute(0b10, copy(1, 4, 10));
    hub.distribute(0b11, copy(1, 5, 10));
    assert_eq!(first.next().await.unwrap().card.sequence, 5);
    assert_eq!(second.next().await.unwrap().card.sequence, 4);
}

#[tokio::test]
async fn only_a_subscriber_that_does_not_read_misses_events() {
    let (subscribers, hub) = hub();
    let (stuck, mut reading) =
        (hub.subscribe(TapFilter::default()).unwrap(), hub.subscribe(TapFilter::default()).unwrap());
    for sequence in 0..100 {
        hub.distribute(0b11, copy(1, sequence, 10));
        assert_eq!(reading.next().await.unwrap().card.sequence, sequence);
    }
    assert_eq!((stuck.missed(), reading.missed()), (100 - QUEUE_MAX as u64, 0));
    subscribers.missed.store(7, Relaxed);
    assert_eq!(reading.missed(), 7, "events that could not be copied count too");
}

#[tokio::test]
async fn one_subscriber_holds_only_part_of_the_memory() {
    let (_, hub) = hub();
    let mut subscription = hub.subscribe(TapFilter::default()).unwrap();
    // A subscriber may hold 1,000 of 8,000 bytes, but one event of any size.
    hub.distribute(1, copy(1, 0, 5000));
    hub.distribute(1, copy(1, 1, 10));
    assert_eq!(subscription.missed(), 1);
    assert_eq!(subscription.next().await.unwrap().payload.len(), 5000);
    hub.distribute(1, copy(1, 2, 10));
    assert_eq!(subscription.next().await.unwrap().card.sequence, 2);
}

#[tokio::test]
async fn a_subscription_is_freed_on_drop_and_the_next_one_starts_empty() {
    let (subscribers, hub) = hub();
    drop(hub.subscribe(TapFilter::default()).unwrap());
    assert!(subscribers.taken.lock().unwrap().is_empty());
    let mut next = hub.subscribe(TapFilter { streams: vec![3], ..TapFilter::default() }).unwrap();
    hub.distribute(1, copy(5, 0, 10));
    hub.distribute(1, copy(3, 1, 10));
    assert_eq!(next.next().await.unwrap().card.stream, 3);
    let rest: Vec<_> = (1..64).map(|_| hub.subscribe(TapFilter::default()).unwrap()).collect();
    assert_eq!(rest.len(), 63);
    assert!(hub.subscribe(TapFilter::default()).is_err());
}
