//! Streams of a recorder by its view, and when it may accept events.
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use keepup_recorder::Assignment;

use crate::message::HostId;
use crate::placement::View;

/// Assignment of one recorder in one run.
#[derive(Debug)]
pub(super) struct FleetAssignment {
    run: u64,
    host: HostId,
    view: RwLock<View>,
    /// Start of the run by the recorder's clock, ns.
    start_ns: AtomicU64,
    /// End of the lease by the recorder's clock, ns.
    lease_until_ns: AtomicU64,
}

impl FleetAssignment {
    /// `host` in run `run`, which has not started.
    pub(super) fn new(run: u64, host: HostId) -> Self {
        Self {
            run,
            host,
            view: RwLock::default(),
            start_ns: AtomicU64::new(u64::MAX),
            lease_until_ns: AtomicU64::new(0),
        }
    }

    pub(super) fn start(&self, at_ns: u64) {
        self.start_ns.store(at_ns, Ordering::Release);
    }

    pub(super) fn lease(&self, until_ns: u64) {
        self.lease_until_ns.store(until_ns, Ordering::Release);
    }

    pub(super) fn move_streams(&self, view: &View) {
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = view.clone();
    }

    /// The view of this run; none before its first one.
    fn view(&self) -> Option<RwLockReadGuard<'_, View>> {
        let view = self.view.read().unwrap_or_else(PoisonError::into_inner);
        (view.run == self.run).then_some(view)
    }
}

impl Assignment for FleetAssignment {
    fn is_open(&self, now_ns: u64) -> bool {
        now_ns >= self.start_ns.load(Ordering::Acquire)
            && now_ns < self.lease_until_ns.load(Ordering::Acquire)
    }

    fn takes(&self, stream: u32) -> bool {
        let owner = self.view().and_then(|view| view.owner(stream));
        owner.is_some_and(|owner| owner.host == self.host)
    }

    fn epoch(&self) -> u64 {
        self.view().map_or(0, |view| view.epoch)
    }

    fn locate(&self, stream: u32) -> Option<SocketAddr> {
        self.view()?.owner(stream).map(|owner| owner.address)
    }
}

#[cfg(test)]
#[path = "assignment_tests.rs"]
mod tests;
