//! Tap: copies of events for live subscribers, the only way events leave an intake except to
//! volumes.
//!
//! The intake copies an event when a subscriber's filter selects it and the tap's own memory has
//! space. It never waits. Events that a subscriber missed are counted.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, Ordering::Relaxed, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use keepup_results::live::TapFilter;
use keepup_sys::SysError;
use keepup_sys::pool::{Block, GRAIN_BYTES, Pool};
use keepup_sys::ring;

use crate::counters::StreamCounters;

/// Most subscribers: one bit each in a `u64`.
pub const TAP_SUBSCRIBERS_MAX: usize = 64;
/// Most events in the queue.
const EVENTS_MAX: usize = 4096;

/// A copied event.
#[derive(Debug)]
pub struct TapEvent {
    /// Its stream.
    pub stream: Arc<StreamCounters>,
    /// Sequence number within the stream.
    pub sequence: u64,
    /// Due time, ns since the Unix epoch.
    pub timestamp_ns: u64,
    /// Subscribers that receive it, one bit each.
    pub subscribers: u64,
    /// Its payload.
    pub payload: TapPayload,
}

/// A payload in memory of the tap, which is returned on drop.
#[derive(Debug)]
pub struct TapPayload {
    block: Option<Block>,
    bytes: usize,
    back: Arc<Mutex<ring::Producer<Block>>>,
}

impl AsRef<[u8]> for TapPayload {
    fn as_ref(&self) -> &[u8] {
        self.block.as_ref().map_or(&[], |block| &block[..self.bytes])
    }
}

impl Drop for TapPayload {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            // The queue has a slot for every block of the pool. A recorder that has ended needs
            // none.
            let _ = lock(&self.back).push(block);
        }
    }
}

/// Subscriptions and the queue of copied events; it outlives recorders.
#[derive(Debug)]
pub struct Tap {
    bytes: usize,
    subscribers: Mutex<Vec<Option<TapFilter>>>,
    /// Rises with every subscription change.
    version: AtomicU64,
    missed: Vec<AtomicU64>,
    /// For each subscriber with a rate limit, the earliest time of its next event, in nanoseconds.
    next_ns: Vec<AtomicU64>,
    outlet: Mutex<Outlet>,
    waiting_task: WaitingTask,
}

/// The queues of all intakes, emptied in turns.
#[derive(Debug, Default)]
struct Outlet {
    queues: Vec<ring::Consumer<TapEvent>>,
    turn: usize,
}

/// The waiting task and its waker. The intake only checks one flag while no task waits.
#[derive(Debug, Default)]
struct WaitingTask {
    waits: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl WaitingTask {
    /// Registers a waker. The caller must poll once more after this call.
    fn wait(&self, waker: &Waker) {
        lock(&self.waker).get_or_insert_with(|| waker.clone()).clone_from(waker);
        self.waits.store(true, Relaxed);
        // Pairs with the fence in `wake`: either the flag is seen there, or the event is seen
        // here.
        fence(Ordering::SeqCst);
    }

    fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.waits.load(Relaxed) && self.waits.swap(false, Relaxed) {
            // If the lock is taken, its holder is about to poll.
            let waker = self.waker.try_lock();
            waker.iter().filter_map(|waker| waker.as_ref()).for_each(Waker::wake_by_ref);
        }
    }
}

/// All subscriptions are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("all {TAP_SUBSCRIBERS_MAX} tap subscriptions are in use")]
pub struct TapFull;

impl Tap {
    /// Creates a tap with `bytes` of memory for copies. Every recorder it is given to allocates
    /// that memory.
    pub fn new(bytes: usize) -> Self {
        Self {
            bytes,
            subscribers: Mutex::new(vec![None; TAP_SUBSCRIBERS_MAX]),
            version: AtomicU64::new(0),
            missed: (0..TAP_SUBSCRIBERS_MAX).map(|_| AtomicU64::new(0)).collect(),
            next_ns: (0..TAP_SUBSCRIBERS_MAX).map(|_| AtomicU64::new(0)).collect(),
            outlet: Mutex::new(Outlet::default()),
            waiting_task: WaitingTask::default(),
        }
    }

    /// Adds a subscriber; it receives events from now on, including those of later runs.
    ///
    /// # Errors
    /// All subscriptions are taken.
    pub fn subscribe(&self, filter: TapFilter) -> Result<usize, TapFull> {
        let mut subscribers = lock(&self.subscribers);
        let subscriber = subscribers.iter().position(Option::is_none).ok_or(TapFull)?;
        subscribers[subscriber] = Some(filter);
        self.missed[subscriber].store(0, Relaxed);
        self.next_ns[subscriber].store(0, Relaxed);
        self.version.fetch_add(1, Relaxed);
        Ok(subscriber)
    }

    /// Removes a subscriber.
    pub fn unsubscribe(&self, subscriber: usize) {
        if let Some(place) = lock(&self.subscribers).get_mut(subscriber) {
            *place = None;
        }
        self.version.fetch_add(1, Relaxed);
    }

    /// Events selected by a subscriber's filter that found no memory.
    pub fn missed(&self, subscriber: usize) -> u64 {
        self.missed.get(subscriber).map_or(0, |missed| missed.load(Relaxed))
    }

    /// Memory for copies, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Next event. For a single task.
    pub fn poll_next(&self, context: &mut Context<'_>) -> Poll<TapEvent> {
        if let Some(event) = self.pop() {
            return Poll::Ready(event);
        }
        self.waiting_task.wait(context.waker());
        // Finds an event that was queued before the waker was registered.
        self.pop().map_or(Poll::Pending, Poll::Ready)
    }

    fn pop(&self) -> Option<TapEvent> {
        let mut outlet = lock(&self.outlet);
        let Outlet { queues, turn } = &mut *outlet;
        (0..queues.len()).find_map(|_| {
            *turn = (*turn + 1) % queues.len();
            queues[*turn].pop()
        })
    }

    /// Intake side of the tap, for each of the `intakes` of a recorder, with an equal part of the memory.
    /// Drops events still queued by an earlier recorder.
    pub(crate) fn attach(self: &Arc<Self>, intakes: usize) -> Result<Vec<TapInlet>, SysError> {
        let (mut inlets, mut queues) = (Vec::new(), Vec::new());
        for _ in 0..intakes {
            let pool = Pool::new(self.bytes / intakes)?;
            let (events, queue) = ring::pair(EVENTS_MAX);
            let (back, returned) = ring::pair(pool.bytes() / GRAIN_BYTES);
            queues.push(queue);
            inlets.push(TapInlet {
                tap: Arc::clone(self),
                pool,
                events,
                returned,
                back: Arc::new(Mutex::new(back)),
                seen: u64::MAX,
                subscribers: Vec::with_capacity(TAP_SUBSCRIBERS_MAX),
                wanted: Vec::new(),
            });
        }
        *lock(&self.outlet) = Outlet { queues, turn: 0 };
        Ok(inlets)
    }
}

/// The intake's view of a subscriber.
#[derive(Debug)]
struct Subscriber {
    number: usize,
    filter: TapFilter,
    interval_ns: u64,
}

/// Intake side of the tap.
#[derive(Debug)]
pub(crate) struct TapInlet {
    tap: Arc<Tap>,
    pool: Pool,
    events: ring::Producer<TapEvent>,
    returned: ring::Consumer<Block>,
    back: Arc<Mutex<ring::Producer<Block>>>,
    /// Version of the subscriptions known here.
    seen: u64,
    subscribers: Vec<Subscriber>,
    /// Whether a subscriber wants events of the stream in this slot.
    wanted: Vec<bool>,
}

impl TapInlet {
    /// Updates the known subscribers and streams; `streams` has the stream of each slot. Never
    /// waits: if the lock is taken, the next call updates them.
    pub(crate) fn refresh(&mut self, streams: impl ExactSizeIterator<Item = u32>) {
        let version = self.tap.version.load(Relaxed);
        if version == self.seen && streams.len() == self.wanted.len() {
            return;
        }
        let Ok(subscribers) = self.tap.subscribers.try_lock() else { return };
        let taken = subscribers.iter().enumerate().filter_map(|(at, filter)| Some((at, filter.as_ref()?)));
        self.subscribers = taken
            .map(|(number, filter)| {
                let rate = filter.per_second.filter(|rate| *rate > 0.0);
                Subscriber {
                    number,
                    filter: filter.clone(),
                    interval_ns: rate.map_or(0, |rate| (1e9 / rate) as u64),
                }
            })
            .collect();
        self.seen = version;
        let wants = |id: u32| self.subscribers.iter().any(|subscriber| subscriber.filter.is_of(id));
        self.wanted = streams.map(wants).collect();
    }

    /// Whether a subscriber may want events of the stream in this slot.
    pub(crate) fn wants(&self, slot: usize) -> bool {
        self.wanted.get(slot).copied().unwrap_or(false)
    }

    /// Copies an event for the subscribers whose filters select it.
    pub(crate) fn offer(
        &mut self,
        stream: &Arc<StreamCounters>,
        (sequence, timestamp_ns): (u64, u64),
        payload: &[u8],
        now_ns: u64,
    ) {
        let mut subscribers = 0u64;
        for subscriber in &self.subscribers {
            let next_ns = &self.tap.next_ns[subscriber.number];
            if subscriber.chooses(stream.info.id, sequence, now_ns, next_ns) {
                subscribers |= 1 << subscriber.number;
            }
        }
        if subscribers == 0 {
            return;
        }
        while let Some(block) = self.returned.pop() {
            self.pool.give_back(block);
        }
        let is_full = self.events.is_full();
        let Some(mut block) = (!is_full).then(|| self.pool.take(payload.len())).flatten() else {
            return self.note_missed(subscribers);
        };
        block[..payload.len()].copy_from_slice(payload);
        let payload = TapPayload { block: Some(block), bytes: payload.len(), back: Arc::clone(&self.back) };
        let event = TapEvent { stream: Arc::clone(stream), sequence, timestamp_ns, subscribers, payload };
        // There was space a moment ago, and this thread is the only producer.
        if self.events.push(event).is_err() {
            self.note_missed(subscribers);
        }
        self.tap.waiting_task.wake();
    }

    fn note_missed(&self, subscribers: u64) {
        for (at, missed) in self.tap.missed.iter().enumerate() {
            if subscribers & (1 << at) != 0 {
                missed.fetch_add(1, Relaxed);
            }
        }
    }
}

impl Subscriber {
    /// Whether its filter selects an event. `next_ns` is shared by all intakes.
    fn chooses(&self, stream: u32, sequence: u64, now_ns: u64, next_ns: &AtomicU64) -> bool {
        if !self.filter.is_of(stream) || !sequence.is_multiple_of(self.filter.every.max(1)) {
            return false;
        }
        if self.interval_ns == 0 {
            return true;
        }
        let due_ns = next_ns.load(Relaxed);
        if now_ns < due_ns {
            return false;
        }
        // Keeps the fixed interval, unless it fell behind.
        let on_beat_ns = due_ns.saturating_add(self.interval_ns);
        let after_ns = if on_beat_ns > now_ns { on_beat_ns } else { now_ns.saturating_add(self.interval_ns) };
        // If this fails, another intake has just taken the turn.
        next_ns.compare_exchange(due_ns, after_ns, Relaxed, Relaxed).is_ok()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "tap_tests.rs"]
mod tests;
