//! Bounded queue of received messages: only the latest of each kind and sender.
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Kind and sender of a message.
pub(super) type Key = (u8, u32);

/// Queue from the threads of a transport to the receiving thread.
#[derive(Debug)]
pub(super) struct Inbox<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    waiting: VecDeque<(Key, T)>,
    is_woken: bool,
}

impl<T> Default for Inbox<T> {
    fn default() -> Self {
        let state = State { waiting: VecDeque::new(), is_woken: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }
}

impl<T> Inbox<T> {
    /// Appends a message and removes an older one with the same key, so that a host that sends too fast does
    /// not delay others.
    pub(super) fn push(&self, key: Key, message: T) {
        let mut state = self.lock();
        state.waiting.retain(|(other, _)| *other != key);
        state.waiting.push_back((key, message));
        self.changed.notify_one();
    }

    /// Makes the current or the next `pop` return.
    pub(super) fn wake(&self) {
        self.lock().is_woken = true;
        self.changed.notify_one();
    }

    /// The oldest message; none after `timeout` or [`Inbox::wake`].
    pub(super) fn pop(&self, timeout: Duration) -> Option<T> {
        let wait = |state: &mut State<T>| state.waiting.is_empty() && !state.is_woken;
        let waited = self.changed.wait_timeout_while(self.lock(), timeout, wait);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_woken = false;
        state.waiting.pop_front().map(|(_, message)| message)
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "inbox_tests.rs"]
mod tests;
