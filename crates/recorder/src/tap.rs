//! Copies of events for those who only look: the one way by which the intake lends events to others.
//!
//! The intake copies an event when a seat's filter chooses it and there is memory of the tap's own; it waits
//! for nobody and never says twice that there was none. What a seat missed is counted.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, Ordering::Relaxed, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use keepup_results::live::TapFilter;
use keepup_sys::SysError;
use keepup_sys::pool::{Block, GRAIN_BYTES, Pool};

use crate::counters::StreamCounters;

/// Seats: as many as a word has bits.
pub const TAP_SEATS: usize = 64;
/// Events on their way at a time, at most.
const EVENTS_MAX: usize = 4096;

/// An event on its way.
#[derive(Debug)]
pub struct TapEvent {
    /// Its stream.
    pub stream: Arc<StreamCounters>,
    /// Sequence number within the stream.
    pub sequence: u64,
    /// When it was due, ns since the Unix epoch.
    pub timestamp_ns: u64,
    /// The seats that get it, a bit for each.
    pub seats: u64,
    /// Its payload.
    pub payload: TapPayload,
}

/// A payload in memory of the tap, which goes back when this is dropped.
#[derive(Debug)]
pub struct TapPayload {
    block: Option<Block>,
    bytes: usize,
    back: Arc<Mutex<rtrb::Producer<Block>>>,
}

impl AsRef<[u8]> for TapPayload {
    fn as_ref(&self) -> &[u8] {
        self.block.as_ref().map_or(&[], |block| &block[..self.bytes])
    }
}

impl Drop for TapPayload {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            // There is room for as many blocks as the pool can lend. A recorder that has ended needs none.
            let _ = lock(&self.back).push(block);
        }
    }
}

/// Where seats are taken and events come out; it outlives recorders.
#[derive(Debug)]
pub struct Tap {
    bytes: usize,
    seats: Mutex<Vec<Option<TapFilter>>>,
    /// Rises with every change of the seats.
    version: AtomicU64,
    missed: Vec<AtomicU64>,
    outlet: Mutex<Option<rtrb::Consumer<TapEvent>>>,
    sleeper: Sleeper,
}

/// Who waits for events, and how to wake it. The intake looks at one flag as long as nobody does.
#[derive(Debug, Default)]
struct Sleeper {
    waits: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Sleeper {
    /// To be woken from now on. Whoever waits must look once more after this call.
    fn wait(&self, waker: &Waker) {
        lock(&self.waker).get_or_insert_with(|| waker.clone()).clone_from(waker);
        self.waits.store(true, Relaxed);
        // Pairs with the fence in `wake`: either the flag is seen there, or the event is seen here.
        fence(Ordering::SeqCst);
    }

    fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.waits.load(Relaxed) && self.waits.swap(false, Relaxed) {
            // Whoever holds the lock is about to look.
            let waker = self.waker.try_lock();
            waker.iter().filter_map(|waker| waker.as_ref()).for_each(Waker::wake_by_ref);
        }
    }
}

/// Why there is no seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("all {TAP_SEATS} seats at the tap are taken")]
pub struct NoSeat;

impl Tap {
    /// A tap with `bytes` of memory for copies, which every recorder it is given to takes for itself.
    pub fn new(bytes: usize) -> Self {
        Self {
            bytes,
            seats: Mutex::new(vec![None; TAP_SEATS]),
            version: AtomicU64::new(0),
            missed: (0..TAP_SEATS).map(|_| AtomicU64::new(0)).collect(),
            outlet: Mutex::new(None),
            sleeper: Sleeper::default(),
        }
    }

    /// Takes a seat; it gets events from now on, also those of the next run.
    ///
    /// # Errors
    /// When all are taken.
    pub fn sit(&self, filter: TapFilter) -> Result<usize, NoSeat> {
        let mut seats = lock(&self.seats);
        let seat = seats.iter().position(Option::is_none).ok_or(NoSeat)?;
        seats[seat] = Some(filter);
        self.missed[seat].store(0, Relaxed);
        self.version.fetch_add(1, Relaxed);
        Ok(seat)
    }

    /// Gives a seat back.
    pub fn leave(&self, seat: usize) {
        if let Some(place) = lock(&self.seats).get_mut(seat) {
            *place = None;
        }
        self.version.fetch_add(1, Relaxed);
    }

    /// Events that a seat's filter chose and for which there was no memory.
    pub fn missed(&self, seat: usize) -> u64 {
        self.missed.get(seat).map_or(0, |missed| missed.load(Relaxed))
    }

    /// Memory for copies, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The next event, as soon as there is one. For one task.
    pub fn poll_next(&self, context: &mut Context<'_>) -> Poll<TapEvent> {
        if let Some(event) = self.pop() {
            return Poll::Ready(event);
        }
        self.sleeper.wait(context.waker());
        // One that came before the intake knew is found here.
        self.pop().map_or(Poll::Pending, Poll::Ready)
    }

    fn pop(&self) -> Option<TapEvent> {
        lock(&self.outlet).as_mut()?.pop().ok()
    }

    /// The intake's end, for one recorder. What a recorder before it had on its way is dropped.
    pub(crate) fn attach(self: &Arc<Self>) -> Result<TapInlet, SysError> {
        let pool = Pool::new(self.bytes)?;
        let (events, outlet) = rtrb::RingBuffer::new(EVENTS_MAX);
        let (back, returned) = rtrb::RingBuffer::new(pool.bytes() / GRAIN_BYTES);
        *lock(&self.outlet) = Some(outlet);
        Ok(TapInlet {
            tap: Arc::clone(self),
            pool,
            events,
            returned,
            back: Arc::new(Mutex::new(back)),
            seen: u64::MAX,
            seats: Vec::with_capacity(TAP_SEATS),
            wanted: Vec::new(),
        })
    }
}

/// A seat as the intake knows it.
#[derive(Debug)]
struct Seat {
    number: usize,
    filter: TapFilter,
    interval_ns: u64,
    next_ns: u64,
}

/// The intake's end of the tap.
#[derive(Debug)]
pub(crate) struct TapInlet {
    tap: Arc<Tap>,
    pool: Pool,
    events: rtrb::Producer<TapEvent>,
    returned: rtrb::Consumer<Block>,
    back: Arc<Mutex<rtrb::Producer<Block>>>,
    /// The version of the seats that is known here.
    seen: u64,
    seats: Vec<Seat>,
    /// Whether a seat wants events of the stream in this slot.
    wanted: Vec<bool>,
}

impl TapInlet {
    /// Learns of seats that were taken or left, and of new streams; `streams` has the number of each slot's.
    /// Waits for nobody: what cannot be learned now is learned at the next call.
    pub(crate) fn look(&mut self, streams: impl ExactSizeIterator<Item = u32>) {
        let version = self.tap.version.load(Relaxed);
        if version == self.seen && streams.len() == self.wanted.len() {
            return;
        }
        let Ok(seats) = self.tap.seats.try_lock() else { return };
        let before = std::mem::take(&mut self.seats);
        let taken = seats.iter().enumerate().filter_map(|(at, filter)| Some((at, filter.as_ref()?)));
        self.seats = taken
            .map(|(number, filter)| {
                let known = before.iter().find(|seat| seat.number == number && seat.filter == *filter);
                let rate = filter.per_second.filter(|rate| *rate > 0.0);
                Seat {
                    number,
                    filter: filter.clone(),
                    interval_ns: rate.map_or(0, |rate| (1e9 / rate) as u64),
                    next_ns: known.map_or(0, |seat| seat.next_ns),
                }
            })
            .collect();
        self.seen = version;
        let wants = |id: u32| self.seats.iter().any(|seat| seat.filter.is_of(id));
        self.wanted = streams.map(wants).collect();
    }

    /// Whether somebody may want events of the stream in this slot.
    pub(crate) fn wants(&self, slot: usize) -> bool {
        self.wanted.get(slot).copied().unwrap_or(false)
    }

    /// Copies an event for the seats whose filters choose it.
    pub(crate) fn offer(
        &mut self,
        stream: &Arc<StreamCounters>,
        (sequence, timestamp_ns): (u64, u64),
        payload: &[u8],
        now_ns: u64,
    ) {
        let mut seats = 0u64;
        for seat in &mut self.seats {
            if seat.chooses(stream.info.id, sequence, now_ns) {
                seats |= 1 << seat.number;
            }
        }
        if seats == 0 {
            return;
        }
        while let Ok(block) = self.returned.pop() {
            self.pool.give_back(block);
        }
        let is_full = self.events.is_full();
        let Some(mut block) = (!is_full).then(|| self.pool.take(payload.len())).flatten() else {
            return self.note_missed(seats);
        };
        block[..payload.len()].copy_from_slice(payload);
        let payload = TapPayload { block: Some(block), bytes: payload.len(), back: Arc::clone(&self.back) };
        let event = TapEvent { stream: Arc::clone(stream), sequence, timestamp_ns, seats, payload };
        // There was room a moment ago, and nobody else fills it.
        if self.events.push(event).is_err() {
            self.note_missed(seats);
        }
        self.tap.sleeper.wake();
    }

    fn note_missed(&self, seats: u64) {
        for (at, missed) in self.tap.missed.iter().enumerate() {
            if seats & (1 << at) != 0 {
                missed.fetch_add(1, Relaxed);
            }
        }
    }
}

impl Seat {
    fn chooses(&mut self, stream: u32, sequence: u64, now_ns: u64) -> bool {
        if !self.filter.is_of(stream) || !sequence.is_multiple_of(self.filter.every.max(1)) {
            return false;
        }
        if self.interval_ns == 0 {
            return true;
        }
        if now_ns < self.next_ns {
            return false;
        }
        // Kept on its beat, unless it fell behind.
        let on_beat_ns = self.next_ns.saturating_add(self.interval_ns);
        self.next_ns = if on_beat_ns > now_ns { on_beat_ns } else { now_ns.saturating_add(self.interval_ns) };
        true
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "tap_tests.rs"]
mod tests;
