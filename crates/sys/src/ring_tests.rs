//! The ring as a queue, its ends, and two threads.
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use proptest::prelude::*;

use super::pair;

/// Counts how often it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_full_ring_returns_the_item() {
    let (mut producer, mut consumer) = pair(3);
    (0..3).for_each(|item| producer.push(item).unwrap());
    assert!(producer.is_full());
    assert_eq!(producer.push(3), Err(3));
    assert_eq!((consumer.len(), consumer.pop()), (3, Some(0)));
    assert!(!producer.is_full());
    producer.push(3).unwrap();
    assert_eq!(std::iter::from_fn(|| consumer.pop()).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(consumer.is_empty() && consumer.pop().is_none());
}

#[test]
fn an_end_knows_that_the_other_is_gone() {
    let (producer, consumer) = pair::<u8>(1);
    assert!(!producer.is_abandoned() && !consumer.is_abandoned());
    drop(consumer);
    assert!(producer.is_abandoned());

    let (mut producer, mut consumer) = pair(1);
    producer.push(7).unwrap();
    drop(producer);
    assert!(consumer.is_abandoned() && !consumer.is_empty());
    assert_eq!(consumer.pop(), Some(7));
}

#[test]
fn what_is_left_is_dropped_once() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let (mut producer, mut consumer) = pair(4);
    for _ in 0..4 {
        assert!(producer.push(Counted(Arc::clone(&dropped))).is_ok());
    }
    drop(consumer.pop());
    assert!(producer.push(Counted(Arc::clone(&dropped))).is_ok());
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
    drop((producer, consumer));
    assert_eq!(dropped.load(Ordering::Relaxed), 5);
}

#[test]
fn two_threads_pass_every_item_in_order() {
    const ITEMS: usize = 20_000;
    let (mut producer, mut consumer) = pair(5);
    let adding = thread::spawn(move || {
        for item in 0..ITEMS {
            let mut waiting = Some(Box::new(item));
            while let Some(item) = waiting.take() {
                waiting = producer.push(item).err();
                if waiting.is_some() {
                    thread::yield_now();
                }
            }
        }
    });
    let mut next = 0;
    while !(consumer.is_abandoned() && consumer.is_empty()) {
        match consumer.pop() {
            Some(item) => {
                assert_eq!(*item, next);
                next += 1;
            }
            None => thread::yield_now(),
        }
    }
    adding.join().unwrap();
    assert_eq!(next, ITEMS);
}

proptest! {
    /// The ring is a bounded queue, whatever the order of the calls.
    #[test]
    fn behaves_like_a_queue(capacity in 1usize..9, adds in prop::collection::vec(any::<bool>(), 0..99)) {
        let (mut producer, mut consumer) = pair(capacity);
        let mut queue = VecDeque::new();
        for (item, is_add) in adds.into_iter().enumerate() {
            if is_add {
                let is_space = queue.len() < capacity;
                prop_assert_eq!(producer.is_full(), !is_space);
                prop_assert_eq!(producer.push(item), if is_space { Ok(()) } else { Err(item) });
                queue.extend(is_space.then_some(item));
            } else {
                prop_assert_eq!(consumer.pop(), queue.pop_front());
            }
            prop_assert_eq!((consumer.len(), consumer.is_empty()), (queue.len(), queue.is_empty()));
        }
    }
}
