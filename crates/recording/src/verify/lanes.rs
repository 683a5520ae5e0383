//! Which segment is read next: one of each volume at a time, and more of a volume that is faster than the
//! thread that checks it.
//!
//! Invariant: each job is given once; a disk with moving heads reads one segment at a time.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Share of pieces for which a reader waited for its disk below which the processor is the limit.
const PROCESSOR: f64 = 0.1;
/// The same, above which the disk is.
const DISK: f64 = 0.5;

/// A job that was given; it ends when this is dropped, also by a panic.
pub(super) struct Job<'a> {
    lanes: &'a Lanes,
    pub(super) number: usize,
    /// Share of its pieces for which the reader waited for the disk.
    pub(super) waited: f64,
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        self.lanes.end(self.number, self.waited);
    }
}

/// Jobs that were not given yet.
pub(super) struct Lanes {
    state: Mutex<State>,
    /// Signalled when a job ends.
    ended: Condvar,
}

struct State {
    /// Volume of each job, by its number.
    volumes: Vec<usize>,
    is_given: Vec<bool>,
    /// All jobs below were given.
    first: usize,
    /// Segments of each volume that are being read, and how many may be.
    reading: Vec<usize>,
    allowed: Vec<usize>,
}

impl Lanes {
    /// Jobs on these volumes, in the order in which they are wanted.
    pub(super) fn new(volumes: Vec<usize>) -> Lanes {
        let count = volumes.iter().max().map_or(0, |highest| highest + 1);
        let (is_given, reading) = (vec![false; volumes.len()], vec![0; count]);
        let state = State { volumes, is_given, first: 0, reading, allowed: vec![1; count] };
        Lanes { state: Mutex::new(state), ended: Condvar::new() }
    }

    /// The first job whose volume may be read by another thread; waits for one. `None` when all are given.
    pub(super) fn next(&self) -> Option<Job<'_>> {
        let mut state = self.lock();
        loop {
            if state.first == state.volumes.len() {
                return None;
            }
            if let Some(number) = state.give() {
                return Some(Job { lanes: self, number, waited: 1.0 });
            }
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A job has ended, whose reader waited for its disk for this share of its pieces.
    fn end(&self, job: usize, waited: f64) {
        let mut state = self.lock();
        let volume = state.volumes[job];
        let others = state.reading[volume].saturating_sub(1);
        state.reading[volume] = others;
        if waited < PROCESSOR {
            state.allowed[volume] = state.allowed[volume].max(others + 2);
        } else if waited > DISK {
            state.allowed[volume] = (state.allowed[volume] - 1).max(1);
        }
        self.ended.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn give(&mut self) -> Option<usize> {
        let is_free = |job: &usize| {
            let volume = self.volumes[*job];
            !self.is_given[*job] && self.reading[volume] < self.allowed[volume]
        };
        let job = (self.first..self.volumes.len()).find(is_free)?;
        self.is_given[job] = true;
        self.reading[self.volumes[job]] += 1;
        while self.is_given.get(self.first) == Some(&true) {
            self.first += 1;
        }
        Some(job)
    }
}

#[cfg(test)]
#[path = "lanes_tests.rs"]
mod tests;
