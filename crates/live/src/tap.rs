//! Copies of events on their way to who asked for them. Each seat has a short queue of its own; what does not
//! fit is missed by that seat alone, and counted.
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use keepup_results::live::TapFilter;
use tokio::sync::mpsc;

use crate::event::EventCopy;

/// Events that wait for one seat, at most.
const QUEUE_MAX: usize = 16;
/// Copies that are handed out before others have their turn: fewer than a queue takes.
const TURN_MAX: u64 = QUEUE_MAX as u64 / 2;
/// Seats: a bit of a word for each.
const SEATS: usize = 64;

/// Where copies come from. Its calls return at once.
pub trait TapSource: Send + Sync {
    /// Takes a seat, below 64; events come with its bit from now on.
    ///
    /// # Errors
    /// When all seats are taken.
    fn sit(&self, filter: &TapFilter) -> Result<usize, String>;
    /// Gives a seat back.
    fn leave(&self, seat: usize);
    /// Events that a seat wished for and that could not be copied.
    fn missed(&self, seat: usize) -> u64;
    /// Memory that copies may take, in bytes.
    fn bytes(&self) -> usize;
    /// The next copy as soon as there is one, and the seats that get it, a bit for each.
    fn poll_next(&self, context: &mut Context<'_>) -> Poll<(u64, EventCopy)>;
}

/// Who sits where.
pub(crate) struct TapDesk {
    source: Arc<dyn TapSource>,
    seats: Mutex<Vec<Option<Arc<Queue>>>>,
}

struct Queue {
    filter: TapFilter,
    sender: mpsc::Sender<Arc<EventCopy>>,
    missed: AtomicU64,
    waiting_bytes: AtomicUsize,
}

/// A seat that was taken; it is given back when this is dropped.
pub(crate) struct Seat {
    desk: Arc<TapDesk>,
    number: usize,
    queue: Arc<Queue>,
    receiver: mpsc::Receiver<Arc<EventCopy>>,
}

impl TapDesk {
    pub(crate) fn new(source: Arc<dyn TapSource>) -> Arc<Self> {
        Arc::new(Self { source, seats: Mutex::new(vec![None; SEATS]) })
    }

    /// Takes a seat.
    pub(crate) fn sit(self: &Arc<Self>, filter: TapFilter) -> Result<Seat, String> {
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        let number = self.source.sit(&filter)?;
        let (missed, waiting_bytes) = (AtomicU64::new(0), AtomicUsize::new(0));
        let queue = Arc::new(Queue { filter, sender, missed, waiting_bytes });
        if let Some(place) = lock(&self.seats).get_mut(number) {
            *place = Some(Arc::clone(&queue));
        }
        Ok(Seat { desk: Arc::clone(self), number, queue, receiver })
    }

    /// Hands copies to the seats, as they come, for ever.
    pub(crate) async fn serve(&self) {
        for taken in 1u64.. {
            let (seats, copy) = poll_fn(|context| self.source.poll_next(context)).await;
            self.hand_out(seats, copy);
            if taken.is_multiple_of(TURN_MAX) {
                // Whoever has a seat sends what waits for it before its queue is full.
                tokio::task::yield_now().await;
            }
        }
    }

    /// Hands a copy to the seats whose bits are set. Waits for nobody.
    pub(crate) fn hand_out(&self, seats: u64, copy: EventCopy) {
        let copy = Arc::new(copy);
        // One seat may hold an eighth of the memory, so that others get something while it does not read.
        let share = self.source.bytes() / 8;
        for (at, queue) in lock(&self.seats).iter().enumerate() {
            let Some(queue) = queue.as_ref().filter(|_| seats & (1 << at) != 0) else { continue };
            // An event for who sat here before.
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

impl Seat {
    /// The next copy; nothing when there will never be one.
    pub(crate) async fn next(&mut self) -> Option<Arc<EventCopy>> {
        let copy = self.receiver.recv().await?;
        self.queue.waiting_bytes.fetch_sub(copy.payload.len(), Relaxed);
        Some(copy)
    }

    /// Events that it wished for and did not get.
    pub(crate) fn missed(&self) -> u64 {
        self.queue.missed.load(Relaxed) + self.desk.source.missed(self.number)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(place) = lock(&self.desk.seats).get_mut(self.number) {
            *place = None;
        }
        self.desk.source.leave(self.number);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "tap_tests.rs"]
mod tests;
