//! Contexts for tests of workloads.
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use keepup_measure::clock::SystemClock;

use crate::Context;
use crate::load::{LoadPlan, Loads};

/// Context with the real clock that discards messages.
pub(crate) fn context() -> Context {
    let stop = Arc::new(AtomicBool::new(false));
    Context { clock: Arc::new(SystemClock), stop, sample: Box::new(|_, _| {}), note: Box::new(|_| {}) }
}

/// The same with the stop flag set.
pub(crate) fn stopped() -> Context {
    Context { stop: Arc::new(AtomicBool::new(true)), ..context() }
}

/// An empty set of background loads.
pub(crate) fn no_loads() -> Loads {
    let Context { clock, stop, .. } = context();
    Loads::start(&LoadPlan::default(), "none", clock, stop, &mut |_| {}).unwrap()
}
