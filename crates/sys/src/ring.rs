//! Bounded ring from one thread to another, without locks and without memory of its own per item.
//!
//! The producer writes an item, then publishes the new tail; the consumer reads the tail, takes the item,
//! then publishes the new head. Each side keeps its own position and the last one it saw of the other, so
//! that a push or a pop reads the other side's cache line only when the ring looks full or empty.
//! `loom_tests` explores every interleaving and every order of memory of the ring and of its end (L. Lamport,
//! "Specifying concurrent program modules", 1983).
use std::fmt;
use std::mem::MaybeUninit;

use crate::sync::{Arc, AtomicBool, AtomicUsize, Ordering, UnsafeCell};

/// A value alone on its cache lines: two of 64 bytes, because x86 fetches them in pairs.
#[repr(align(128))]
struct Apart<T>(T);

/// What both ends share. Positions count items since the start and wrap around.
struct Shared<T> {
    /// A power of two, at least `capacity`.
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
    capacity: usize,
    /// Position of the next item to take; written by the consumer.
    head: Apart<AtomicUsize>,
    /// Position of the next item to add; written by the producer.
    tail: Apart<AtomicUsize>,
    /// Whether one of the ends was dropped.
    is_abandoned: AtomicBool,
}

// SAFETY: an item is written by the producer before it publishes the tail, and read by the consumer after it
// saw that tail; its slot is written again only after the producer saw the head that the consumer published
// after it had taken the item. So no slot is used by both at once, and items only move from one thread to the
// other.
unsafe impl<T: Send> Sync for Shared<T> {}
// SAFETY: as above; the thread that drops the last end owns what is left in the ring.
unsafe impl<T: Send> Send for Shared<T> {}

impl<T> Shared<T> {
    fn slot(&self, position: usize) -> &UnsafeCell<MaybeUninit<T>> {
        &self.slots[position & (self.slots.len() - 1)]
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let (mut head, tail) = (self.head.0.load(Ordering::Relaxed), self.tail.0.load(Ordering::Relaxed));
        while head != tail {
            // SAFETY: both ends are gone, and the items from head to tail were written and not taken.
            self.slot(head).with_mut(|item| unsafe { (*item).assume_init_drop() });
            head = head.wrapping_add(1);
        }
    }
}

/// End that adds items. Dropping it tells the consumer that no more come.
pub struct Producer<T> {
    shared: Arc<Shared<T>>,
    tail: usize,
    /// Head as last seen: the ring has at least the space that follows from it.
    head_seen: usize,
}

/// End that takes items. Dropping it tells the producer that nobody takes them.
pub struct Consumer<T> {
    shared: Arc<Shared<T>>,
    head: usize,
    /// Tail as last seen: the ring has at least the items that follow from it.
    tail_seen: usize,
}

/// Makes a ring for `capacity` items. Memory for all of them is allocated here (for the next power of two).
///
/// # Panics
/// If `capacity` is 0.
pub fn pair<T: Send>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    assert!(capacity > 0, "a ring needs a slot");
    let slots = (0..capacity.next_power_of_two()).map(|_| UnsafeCell::new(MaybeUninit::uninit()));
    let shared = Arc::new(Shared {
        slots: slots.collect(),
        capacity,
        head: Apart(AtomicUsize::new(0)),
        tail: Apart(AtomicUsize::new(0)),
        is_abandoned: AtomicBool::new(false),
    });
    let producer = Producer { shared: Arc::clone(&shared), tail: 0, head_seen: 0 };
    (producer, Consumer { shared, head: 0, tail_seen: 0 })
}

impl<T> Producer<T> {
    /// Adds an item, or returns it if the ring is full.
    pub fn push(&mut self, item: T) -> Result<(), T> {
        if self.tail.wrapping_sub(self.head_seen) == self.shared.capacity {
            self.head_seen = self.shared.head.0.load(Ordering::Acquire);
            if self.tail.wrapping_sub(self.head_seen) == self.shared.capacity {
                return Err(item);
            }
        }
        // SAFETY: the slot is free: the head seen is less than a capacity away, and the consumer published it
        // after it had taken every item before it. The consumer takes the item after it saw the new tail.
        self.shared.slot(self.tail).with_mut(|slot| unsafe {
            (*slot).write(item);
        });
        self.tail = self.tail.wrapping_add(1);
        self.shared.tail.0.store(self.tail, Ordering::Release);
        Ok(())
    }

    /// Whether a push would fail now.
    pub fn is_full(&self) -> bool {
        let used = |head| self.tail.wrapping_sub(head) == self.shared.capacity;
        used(self.head_seen) && used(self.shared.head.0.load(Ordering::Acquire))
    }

    /// Whether the consumer was dropped. Items still in the ring are dropped with this end.
    pub fn is_abandoned(&self) -> bool {
        self.shared.is_abandoned.load(Ordering::Acquire)
    }
}

impl<T> Consumer<T> {
    /// Takes the oldest item.
    pub fn pop(&mut self) -> Option<T> {
        if self.head == self.tail_seen {
            self.tail_seen = self.shared.tail.0.load(Ordering::Acquire);
            if self.head == self.tail_seen {
                return None;
            }
        }
        // SAFETY: the producer wrote the item before it published a tail beyond it, and writes the slot again
        // only after it saw the head published below.
        let item = self.shared.slot(self.head).with_mut(|slot| unsafe { (*slot).assume_init_read() });
        self.head = self.head.wrapping_add(1);
        self.shared.head.0.store(self.head, Ordering::Release);
        Some(item)
    }

    /// Whether there is nothing to take now.
    pub fn is_empty(&self) -> bool {
        self.head == self.tail_seen && self.len() == 0
    }

    /// Items in the ring now.
    pub fn len(&self) -> usize {
        self.shared.tail.0.load(Ordering::Acquire).wrapping_sub(self.head)
    }

    /// Whether the producer was dropped. Every item that it added is seen by a call that follows: ask this
    /// first, then whether the ring is empty.
    pub fn is_abandoned(&self) -> bool {
        self.shared.is_abandoned.load(Ordering::Acquire)
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        self.shared.is_abandoned.store(true, Ordering::Release);
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        self.shared.is_abandoned.store(true, Ordering::Release);
    }
}

impl<T> fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").field("added", &self.tail).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Consumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").field("taken", &self.head).finish_non_exhaustive()
    }
}

#[cfg(not(loom))]
#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;

#[cfg(loom)]
#[cfg(test)]
#[path = "ring_loom_tests.rs"]
mod loom_tests;
