//! Replay of block traces: requests of a trace issued to a target at their times, and targets compared.
//!
//! A [`Script`] is a trace prepared for a target, a [`Mode`] sets the due times, and a [`TargetSpec`] names
//! the target. [`Replay`] is a `Workload` that runs passes on targets in turns; [`compare`] compares targets.
//!
//! Invariants: a request is never issued before its time; every change of a trace is counted; a device is
//! never written; a pass that lost its times is reported and not compared. Trace formats are in
//! `keepup-trace`.
//!
//! | what | where |
//! |---|---|
//! | selection and times of requests | [`Script`] in `script.rs` |
//! | extents of the target that requests use | `extents.rs` |
//! | mapping of addresses to a target | [`Policy`] in `map.rs` |
//! | due times, one file per [`Mode`] | `pace.rs`, `pace/` |
//! | one pass: requests in flight, counts, times | `engine.rs`, `engine/` |
//! | targets: file, device, memory, simulated disk; check of written data | [`TargetSpec`], `backend/` |
//! | passes in turns, and whether times were kept | [`Replay`] in `run.rs` |
//! | index of targets against a baseline | [`compare`] in `index.rs` |
mod backend;
mod engine;
mod error;
mod extents;
mod index;
mod map;
mod pace;
mod run;
mod script;
mod target_spec;
#[cfg(test)]
mod testing;

pub use error::ReplayError;
pub use index::compare;
pub use map::{EXTENT_BYTES, Policy};
pub use pace::Mode;
pub use run::{PASSES_MIN, Replay, ReplayOptions};
pub use script::{RECORDS_IN_MEMORY, REQUEST_BYTES_MAX, SPACE_BYTES_MAX, Script, ScriptOptions};
pub use target_spec::{IoOptions, TargetSpec, check_target};
