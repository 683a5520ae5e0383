//! Replay of block traces: requests of a trace issued to a target at their times, and targets compared.
//!
//! A [`Script`] is a trace prepared for a target, a [`Mode`] sets the due times, and a
//! [`TargetSpec`] names the target. [`Replay`] runs passes on targets in turns; [`compare`]
//! compares targets.
mod backend;
mod engine;
mod error;
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
pub use script::{RECORDS_MAX, REQUEST_BYTES_MAX, SPACE_BYTES_MAX, Script, ScriptOptions};
pub use target_spec::{IoOptions, TargetSpec, check_target};
