//! Qualification of a machine for a detector: trials, rate search, ceilings, bottleneck and
//! verdict.
//!
//! `session` drives the qualification; decisions are pure functions: `search` (next rate),
//! `search_request` (its plan), `judge` (outcome of a trial), `bottleneck` (nominated stages and
//! next limit), `counter` (tests of the nominees), `run_space` (space for a run), `wear` (worn
//! disks, rated endurance), `run_time` (announced time), `verdict` (answer for the requirement).
//! `doctor` judges host settings, also with pure rules.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may sum"))]
pub mod bottleneck;
pub mod counter;
pub mod datagrams;
pub mod doctor;
mod error;
pub mod judge;
pub mod progress;
pub mod run_space;
pub mod run_time;
pub mod search;
pub mod search_request;
mod session;
pub mod settings;
mod summary;
mod trial_run;
pub mod verdict;
pub mod wear;

pub use error::QualifyError;
pub use session::{Session, qualify};
