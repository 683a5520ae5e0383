//! Distribution of event copies to subscribers. Each has its own short queue; what does not fit
//! is missed by that subscriber alone, and counted.
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use keepup_results::live::TapFilter;
use tokio::sync::mpsc;

use crate::event::EventCopy;

/// Most events waiting for one subscriber.
const QUEUE_MAX: usize = 16;
/// Copies handed out before yielding: fewer than a queue holds.
const TURN_MAX: u64 = QUEUE_MAX as u64 / 2;
/// Most subscribers: one bit each in a `u64`.
pub(crate) const SUBSCRIBERS_MAX: usize = 64;

/// Source of event copies. Its calls never block.
pub trait TapSource: Send + Sync {
    /// Adds a subscriber and returns its number, below 64; its bit is set in later copies.
    ///
    /// # Errors
    /// All subscriptions are taken.
    fn subscribe(&self, filter: &TapFilter) -> Result<usize, String>;
    /// Removes a subscriber.
    fn unsubscribe(&self, subscription: usize);
    /// Events selected by a subscriber that could not be copied.
    fn missed(&self, subscription: usize) -> u64;
    /// Memory for copies, in bytes.
    fn bytes(&self) -> usize;
    /// Next copy, and the subscribers that receive it, one bit each.
    fn poll_next(&self, context: &mut Context<'_>) -> Poll<(u64, EventCopy)>;
}

/// Queues of all subscribers.
pub(crate) struct TapHub {
    source: Arc<dyn TapSource>,
    subscribers: Mutex<Vec<Option<Arc<Queue>>>>,
}

struct Queue {
    filter: TapFilter,
    sender: mpsc::Sender<Arc<EventCopy>>,
    missed: AtomicU64,
    waiting_bytes: AtomicUsize,
}

/// A subscription; ended on drop.
pub(crate) struct Subscription {
    hub: Arc<TapHub>,
    number: usize,
    queue: Arc<Queue>,
    receiver: mpsc::Receiver<Arc<EventCopy>>,
}

impl TapHub {
    pub(crate) fn new(source: Arc<dyn TapSource>) -> Arc<Self> {
        Arc::new(Self { source, subscribers: Mutex::new(vec![None; SUBSCRIBERS_MAX]) })
    }

    /// Opens a subscription.
    pub(crate) fn subscribe(self: &Arc<Self>, filter: TapFilter) -> Result<Subscription, String> {
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        let number = self.source.subscribe(&filter)?;
        let (missed, waiting_bytes) = (AtomicU64::new(0), AtomicUsize::new(0));
        let queue = Arc::new(Queue { filter, sender, missed, waiting_bytes });
        if let Some(place) = lock(&self.subscribers).get_mut(number) {
            *place = Some(Arc::clone(&queue));
        }
        Ok(Subscription { hub: Arc::clone(self), number, queue, receiver })
    }

    /// Distributes copies forever.
    pub(crate) async fn serve(&self) {
        for taken in 1u64.. {
            let (subscribers, copy) = poll_fn(|context| self.source.poll_next(context)).await;
            self.distribute(subscribers, copy);
            if taken.is_multiple_of(TURN_MAX) {
                // Lets subscribers send before their queues are full.
                tokio::task::yield_now().await;
            }
        }
    }

    /// Puts a copy into the queues of the subscribers with set bits. Never waits.
    pub(crate) fn distribute(&self, subscribers: u64, copy: EventCopy) {
        let copy = Arc::new(copy);
        // A subscriber may hold an eighth of the memory, so that others are served while it does
        // not read.
        let share = self.source.bytes() / 8;
        for (at, queue) in lock(&self.subscribers).iter().enumerate() {
            let Some(queue) = queue.as_ref().filter(|_| subscribers & (1 << at) != 0) else { continue };
            // An event for an earlier subscriber of this number.
            if !queue.filter.is_of(copy.card.stream) {
                continue;
            }
            let waiting = queue.waiting_bytes.load(Relaxed);
            let fits = waiting == 0 || waiting + copy.payload.len() <= share;
            queue.waiting_bytes.fetch_add(copy.payload.len(), Relaxed);
            if !fits || queue.sender.try_send(Arc::clone(&copy)).is_err() {
                queue.waiting_bytes.fetch_sub(copy.payload.len(), Relaxed);
                queue.missed.fetch_add(1, Relaxed);
            }
        }
    }
}

impl Subscription {
    /// Next copy; `None` after the end.
    pub(crate) async fn next(&mut self) -> Option<Arc<EventCopy>> {
        let copy = self.receiver.recv().await?;
        self.queue.waiting_bytes.fetch_sub(copy.payload.len(), Relaxed);
        Some(copy)
    }

    /// Events that it selected and missed.
    pub(crate) fn missed(&self) -> u64 {
        self.queue.missed.load(Relaxed) + self.hub.source.missed(self.number)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(place) = lock(&self.hub.subscribers).get_mut(self.number) {
            *place = None;
        }
        self.hub.source.unsubscribe(self.number);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "tap_tests.rs"]
mod tests;
