//! Every interleaving of a hand-over and a wait.
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;

use super::Nudge;

/// A ring that counts what was handed over, and the waiter's file descriptor.
struct Link {
    handed_over: AtomicUsize,
    is_woken: AtomicBool,
    nudge: Nudge,
}

impl Link {
    fn new() -> Arc<Self> {
        let (handed_over, is_woken) = (AtomicUsize::new(0), AtomicBool::new(false));
        Arc::new(Self { handed_over, is_woken, nudge: Nudge::new() })
    }

    fn hand_over(&self) {
        self.handed_over.fetch_add(1, Ordering::Release);
        if self.nudge.is_due() {
            self.is_woken.store(true, Ordering::Release);
        }
    }

    /// Looks for work, asks to be woken, looks again. Returns what was found before it would sleep.
    fn wait(&self) -> usize {
        self.nudge.want(true);
        self.handed_over.load(Ordering::Acquire)
    }
}

/// No thread sleeps with work in the ring and nobody to wake it.
#[test]
fn no_hand_over_is_missed() {
    loom::model(|| {
        let link = Link::new();
        let producers: Vec<_> = (0..2)
            .map(|_| {
                let link = Arc::clone(&link);
                thread::spawn(move || link.hand_over())
            })
            .collect();
        let found = link.wait();
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        let is_woken = link.is_woken.load(Ordering::Acquire);
        assert!(found == 2 || is_woken, "asleep with {} in the ring", 2 - found);
    });
}

/// The exploration finds the fault that the fences prevent.
#[test]
#[should_panic = "asleep"]
fn without_fences_a_hand_over_is_missed() {
    loom::model(|| {
        let (ring, wanted) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (ring_end, wanted_end) = (Arc::clone(&ring), Arc::clone(&wanted));
        let producer = thread::spawn(move || {
            ring_end.store(1, Ordering::Release);
            wanted_end.load(Ordering::Relaxed)
        });
        wanted.store(true, Ordering::Relaxed);
        let found = ring.load(Ordering::Acquire);
        let is_woken = producer.join().unwrap();
        assert!(found == 1 || is_woken, "asleep");
    });
}
