//! Event identity, the wire protocol, the source simulator and the ledger.
//!
//! Invariants: `wire`, `ledger` and the simulator's schedule, sizes and front-end buffer are pure
//! (no clock, no socket); lengths from a peer are checked against a limit before memory is
//! allocated.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may sum"))]

pub mod bslz4;
pub mod client;
pub mod detector_map;
pub mod file_index;
pub mod ledger;
pub mod pvaccess;
pub mod rejected;
pub mod source;
mod time;
pub mod wire;
pub mod zmtp;

#[cfg(test)]
mod example_tests;
#[cfg(test)]
mod receiver;
