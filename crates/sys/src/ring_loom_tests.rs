//! Every interleaving of the two ends of a ring. Loom's cells fail the test if both use a slot at once.
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;

use super::pair;
use crate::waker::Nudge;

/// Items arrive in order, also those that go round the ring; the consumer takes all before it sees the end.
#[test]
fn every_item_arrives_before_the_end() {
    loom::model(|| {
        let (mut producer, mut consumer) = pair(2);
        let adding = thread::spawn(move || {
            // The third item goes into the slot of the first, if that is free.
            (0..3).map(|item| producer.push(Box::new(item)).is_ok()).take_while(|is_added| *is_added).count()
        });
        let mut taken = Vec::new();
        taken.extend(consumer.pop());
        taken.extend(consumer.pop());
        let is_over = consumer.is_abandoned();
        taken.extend(std::iter::from_fn(|| consumer.pop()));
        let added_at_end = is_over.then_some(taken.len());
        let added = adding.join().unwrap();
        taken.extend(std::iter::from_fn(|| consumer.pop()));
        assert!(taken.iter().map(|item| **item).eq(0..added), "{taken:?} of {added}");
        assert!(added_at_end.is_none_or(|at_end| at_end == added), "the end was seen before an item");
    });
}

/// Whichever end is dropped last drops what is left, once.
#[test]
fn what_is_left_is_dropped_by_the_last_end() {
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    loom::model(|| {
        let dropped = Arc::new(AtomicUsize::new(0));
        let (mut producer, mut consumer) = pair(2);
        let counter = Arc::clone(&dropped);
        let adding = thread::spawn(move || {
            (0..2).for_each(|_| assert!(producer.push(Counted(Arc::clone(&counter))).is_ok()));
        });
        drop(consumer.pop());
        drop(consumer);
        adding.join().unwrap();
        assert_eq!(dropped.load(Ordering::Relaxed), 2);
    });
}

/// A consumer that asks to be woken, looks into the ring once more and then sleeps, is woken if an item
/// comes.
#[test]
fn no_thread_sleeps_beside_an_item() {
    loom::model(|| {
        let (mut producer, mut consumer) = pair(1);
        let shared = Arc::new((Nudge::new(), AtomicBool::new(false)));
        let (nudge, is_woken) = (&shared.0, &shared.1);
        let producing = Arc::clone(&shared);
        let adding = thread::spawn(move || {
            producer.push(()).unwrap();
            if producing.0.is_due() {
                producing.1.store(true, Ordering::Release);
            }
            producer
        });
        nudge.want(true);
        let is_found = !consumer.is_empty();
        let _producer = adding.join().unwrap();
        assert!(is_found || is_woken.load(Ordering::Acquire), "asleep beside an item");
        assert_eq!(consumer.pop(), Some(()));
    });
}

/// The consumer learns that no more items come although it sleeps between looking and being woken.
#[test]
fn an_end_that_wakes_is_seen() {
    loom::model(|| {
        let (producer, consumer) = pair::<()>(1);
        let shared = Arc::new((Nudge::new(), AtomicBool::new(false)));
        let producing = Arc::clone(&shared);
        let ending = thread::spawn(move || {
            drop(producer);
            if producing.0.is_due() {
                producing.1.store(true, Ordering::Release);
            }
        });
        shared.0.want(true);
        let is_seen = consumer.is_abandoned();
        ending.join().unwrap();
        assert!(is_seen || shared.1.load(Ordering::Acquire), "asleep after the end");
    });
}
