//! What the intakes of a recording share: the place of every stream, and the end.
//!
//! While events flow, intakes only read its flags; they take the lock when a client says hello.
//! Invariants: a stream is at one intake or on its way to one; the first reason to end holds for all; no
//! writer is closed before every intake has handed over its last block.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock, PoisonError};

use keepup_sys::sync::{AtomicBool, AtomicUsize, Mutex, MutexGuard, Ordering};
use keepup_sys::waker::Waker;

use crate::report::Ended;

/// Place of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    At(usize),
    /// On its way to another intake.
    Moving,
}

/// Where a client's streams are to be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route {
    /// The intake that serves the connection.
    pub(super) intake: usize,
    /// Streams at other intakes.
    pub(super) elsewhere: BTreeMap<usize, Vec<u32>>,
}

/// A stream is on its way to another intake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamMoving(pub(super) u32);

/// Places of all streams that were ever declared. Pure.
#[derive(Debug, Default)]
pub(super) struct Places {
    streams: BTreeMap<u32, Place>,
    /// Streams at each intake.
    counts: Vec<usize>,
}

impl Places {
    pub(super) fn new(intakes: usize) -> Self {
        Self { streams: BTreeMap::new(), counts: vec![0; intakes] }
    }

    /// Where a connection with these streams is to be served: where most of them are, or else at the intake
    /// with the fewest streams, `near` when equal. Streams that have no place get it there.
    ///
    /// # Errors
    /// A stream is on its way to another intake; nothing is changed.
    pub(super) fn route(&mut self, streams: &[u32], near: usize) -> Result<Route, StreamMoving> {
        let elsewhere = self.places_of(streams)?;
        let most = elsewhere.iter().max_by_key(|(intake, known)| (known.len(), std::cmp::Reverse(**intake)));
        let fewest = || (0..self.counts.len()).min_by_key(|&at| (self.counts[at], at != near, at));
        let intake = most.map(|(&intake, _)| intake).or_else(fewest).unwrap_or(0);
        Ok(self.settle(streams, intake, elsewhere))
    }

    /// Like [`Places::route`] for further streams of a connection that `intake` serves.
    pub(super) fn route_here(&mut self, streams: &[u32], intake: usize) -> Result<Route, StreamMoving> {
        let elsewhere = self.places_of(streams)?;
        Ok(self.settle(streams, intake, elsewhere))
    }

    /// Streams with a place, by intake.
    fn places_of(&self, streams: &[u32]) -> Result<BTreeMap<usize, Vec<u32>>, StreamMoving> {
        let mut places: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for &id in streams {
            match self.streams.get(&id) {
                Some(Place::At(intake)) => places.entry(*intake).or_default().push(id),
                Some(Place::Moving) => return Err(StreamMoving(id)),
                None => {}
            }
        }
        Ok(places)
    }

    fn settle(&mut self, streams: &[u32], intake: usize, mut places: BTreeMap<usize, Vec<u32>>) -> Route {
        places.remove(&intake);
        for &id in streams {
            self.streams.entry(id).or_insert_with(|| {
                self.counts[intake] += 1;
                Place::At(intake)
            });
        }
        Route { intake, elsewhere: places }
    }

    /// Takes the lowest id from `from` on that no stream has, for a derived stream at `intake`; not those for
    /// which `is_taken` holds.
    pub(super) fn claim(
        &mut self,
        mut from: std::ops::Range<u32>,
        intake: usize,
        is_taken: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let id = from.find(|&id| !self.streams.contains_key(&id) && !is_taken(id))?;
        self.streams.insert(id, Place::At(intake));
        self.counts[intake] += 1;
        Some(id)
    }

    /// Gives up ids at `intake` that were placed there and never became streams.
    pub(super) fn forget(&mut self, ids: &[u32], intake: usize) {
        for id in ids {
            if self.streams.get(id) == Some(&Place::At(intake)) {
                self.streams.remove(id);
                self.counts[intake] -= 1;
            }
        }
    }

    /// A stream leaves its intake.
    pub(super) fn leave(&mut self, id: u32) {
        if let Some(Place::At(intake)) = self.streams.insert(id, Place::Moving) {
            self.counts[intake] -= 1;
        }
    }

    /// A stream has arrived.
    pub(super) fn arrive(&mut self, id: u32, intake: usize) {
        self.streams.insert(id, Place::At(intake));
        self.counts[intake] += 1;
    }
}

/// Steps of the end. Each intake takes the next one when all have taken the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It moves no streams and connections any more.
    MovesStopped,
    /// Every block it has sealed is durable, or known to be lost, or will never be returned.
    Settled,
    /// Its losses are in the journals, and its account is complete.
    Accounted,
}

const STEPS: [Step; 3] = [Step::MovesStopped, Step::Settled, Step::Accounted];

/// Stream id, received and durable counts of every stream on the volumes.
pub(super) type Ends = Vec<(u32, keepup_stream::ledger::Count, keepup_stream::ledger::Count)>;

/// State that all intakes of a recording share.
pub(crate) struct Shards {
    wakers: Vec<Waker>,
    places: Mutex<Places>,
    connected: AtomicUsize,
    ended_any: AtomicBool,
    /// Names of clients and streams that must end before the run does.
    expected: Mutex<BTreeSet<String>>,
    /// Streams whose connections were lost before their end.
    awaited: AtomicUsize,
    /// Name of the stream that was lost last.
    last_awaited: Mutex<String>,
    /// Why data of a source could not be recorded.
    failed_source: OnceLock<String>,
    ended: OnceLock<Ended>,
    steps: [AtomicUsize; STEPS.len()],
    /// An intake thread ended by a panic: the others do not wait for it.
    is_deserted: AtomicBool,
    has_dead_writers: AtomicBool,
    /// An intake panicked before its account was complete.
    lacks_account: AtomicBool,
    ends: Mutex<Ends>,
}

impl Shards {
    /// State for one intake per waker, which wakes it.
    pub(crate) fn new(wakers: Vec<Waker>) -> Self {
        Self {
            places: Mutex::new(Places::new(wakers.len())),
            wakers,
            connected: AtomicUsize::new(0),
            ended_any: AtomicBool::new(false),
            expected: Mutex::new(BTreeSet::new()),
            awaited: AtomicUsize::new(0),
            last_awaited: Mutex::new(String::new()),
            failed_source: OnceLock::new(),
            ended: OnceLock::new(),
            steps: std::array::from_fn(|_| AtomicUsize::new(0)),
            is_deserted: AtomicBool::new(false),
            has_dead_writers: AtomicBool::new(false),
            lacks_account: AtomicBool::new(false),
            ends: Mutex::new(Vec::new()),
        }
    }

    /// Number of intakes.
    pub(super) fn count(&self) -> usize {
        self.wakers.len()
    }

    /// Places of all streams.
    pub(super) fn places(&self) -> MutexGuard<'_, Places> {
        lock(&self.places)
    }

    /// Counts a new connection.
    pub(super) fn connect(&self) {
        self.connected.fetch_add(1, Ordering::AcqRel);
    }

    /// Counts a closed connection.
    pub(super) fn disconnect(&self) {
        self.connected.fetch_sub(1, Ordering::AcqRel);
    }

    /// Open connections, at all intakes.
    pub(super) fn connected(&self) -> usize {
        self.connected.load(Ordering::Acquire)
    }

    /// Notes that a client has ended in order.
    pub(super) fn note_end(&self) {
        self.ended_any.store(true, Ordering::Release);
    }

    /// Waits for the ends of these clients and streams.
    pub(crate) fn expect(&self, names: &[String]) {
        lock(&self.expected).extend(names.iter().cloned());
    }

    /// Notes the end of a client or stream with this name.
    pub(super) fn note_end_of(&self, name: &str) {
        lock(&self.expected).remove(name);
    }

    /// Clients and streams that are expected and have not ended.
    pub(super) fn expected(&self) -> Vec<String> {
        lock(&self.expected).iter().cloned().collect()
    }

    /// Notes that a stream was lost before its end.
    pub(super) fn await_stream(&self, name: &str) {
        name.clone_into(&mut lock(&self.last_awaited));
        self.awaited.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes that a stream that was lost has a connection again.
    pub(super) fn stream_is_back(&self) {
        self.awaited.fetch_sub(1, Ordering::AcqRel);
    }

    /// Number of streams that were lost before their end, and the name of the last one.
    pub(super) fn awaited(&self) -> (usize, String) {
        (self.awaited.load(Ordering::Acquire), lock(&self.last_awaited).clone())
    }

    /// Notes that data of a source cannot be recorded; the first cause holds.
    pub(super) fn note_failure(&self, why: String) {
        let _ = self.failed_source.set(why);
        self.note_end();
    }

    /// How the run has ended, once sources have ended and no connection is left.
    pub(super) fn end_of_run(&self) -> Option<Ended> {
        let is_over = self.ended_any.load(Ordering::Acquire) && self.connected() == 0;
        is_over.then(|| self.failed_source.get().cloned().map_or(Ended::EndOfRun, Ended::SourceFailed))
    }

    /// Ends the recording on request.
    pub(super) fn stop(&self) {
        self.end(self.failed_source.get().cloned().map_or(Ended::Stopped, Ended::SourceFailed));
    }

    /// Ends the recording; the first reason holds.
    pub(super) fn end(&self, why: Ended) {
        if self.ended.set(why).is_ok() {
            self.wakers.iter().for_each(Waker::wake);
        }
    }

    /// Reason for the end, once there is one.
    pub(crate) fn ended(&self) -> Option<&Ended> {
        self.ended.get()
    }

    /// Takes a step; returns whether this intake was the last one.
    pub(super) fn take_step(&self, step: Step) -> bool {
        self.steps[step as usize].fetch_add(1, Ordering::AcqRel) + 1 == self.count()
    }

    /// Whether every intake has taken this step, or one never will.
    pub(super) fn is_taken(&self, step: Step) -> bool {
        self.steps[step as usize].load(Ordering::Acquire) >= self.count() || self.is_deserted()
    }

    /// Notes that a writer ended without a request.
    pub(super) fn note_dead_writer(&self) {
        self.has_dead_writers.store(true, Ordering::Release);
    }

    pub(super) fn has_dead_writers(&self) -> bool {
        self.has_dead_writers.load(Ordering::Acquire)
    }

    /// Notes that an intake has no account.
    pub(super) fn lack_account(&self) {
        self.lacks_account.store(true, Ordering::Release);
    }

    /// Adds an intake's part of the final account.
    pub(super) fn add_ends(&self, ends: Ends) {
        lock(&self.ends).extend(ends);
    }

    /// The final account, in the order of the ids; empty if a part of it is missing.
    pub(super) fn take_ends(&self) -> Ends {
        let mut ends = std::mem::take(&mut *lock(&self.ends));
        ends.sort_unstable_by_key(|(id, ..)| *id);
        if self.lacks_account.load(Ordering::Acquire) { Vec::new() } else { ends }
    }

    /// Whether an intake thread panicked.
    pub(super) fn is_deserted(&self) -> bool {
        self.is_deserted.load(Ordering::Acquire)
    }

    /// Notes that an intake does not run, and ends the others.
    fn desert(&self) {
        self.is_deserted.store(true, Ordering::Release);
        self.end(Ended::InternalError("internal error: an intake thread ended early".into()));
    }
}

/// An intake's part in a recording. If it is dropped before the intake has ended in order, because a thread
/// panicked or could not be started, the others end too.
pub(crate) struct Membership {
    shards: Option<Arc<Shards>>,
    /// Steps of the end that the intake has taken.
    steps: usize,
}

impl Membership {
    pub(crate) fn new(shards: &Arc<Shards>) -> Self {
        Self { shards: Some(Arc::clone(shards)), steps: 0 }
    }

    /// Takes a step; returns whether this intake was the last one.
    pub(super) fn take(&mut self, step: Step) -> bool {
        self.steps = step as usize + 1;
        self.shards.as_ref().is_some_and(|shards| shards.take_step(step))
    }

    /// The first step that the intake has not taken.
    pub(super) fn next_step(&self) -> Option<Step> {
        STEPS.get(self.steps).copied()
    }

    /// The intake has ended in order.
    pub(super) fn end(&mut self) {
        self.shards = None;
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        if let Some(shards) = self.shards.take() {
            shards.desert();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(not(loom))]
#[cfg(test)]
#[path = "shards_tests.rs"]
mod tests;

#[cfg(loom)]
#[cfg(test)]
#[path = "shards_loom_tests.rs"]
mod loom_tests;
