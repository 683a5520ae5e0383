//! What tests of workloads hand in.
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use keepup_measure::clock::SystemClock;

use crate::Context;
use crate::load::{LoadPlan, Loads};

/// The real clock, and nobody who listens.
pub(crate) fn context() -> Context {
    let stop = Arc::new(AtomicBool::new(false));
    Context { clock: Arc::new(SystemClock), stop, sample: Box::new(|_, _| {}), note: Box::new(|_| {}) }
}

/// The same, after the user has asked for an end.
pub(crate) fn stopped() -> Context {
    Context { stop: Arc::new(AtomicBool::new(true)), ..context() }
}

/// Nothing beside what is measured.
pub(crate) fn no_loads() -> Loads {
    let Context { clock, stop, .. } = context();
    Loads::start(&LoadPlan::default(), "none", clock, stop, &mut |_| {}).unwrap()
}
