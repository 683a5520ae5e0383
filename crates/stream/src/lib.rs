//! Event identity, the wire protocol, the source simulator and the ledger.
//!
//! Invariants: `wire`, `ledger` and, of the simulator, the schedule, the sizes and the front-end buffer are
//! pure (no clock, no socket); lengths from a peer are compared with a limit before memory is taken.

pub mod client;
pub mod ledger;
pub mod source;
pub mod wire;

#[cfg(test)]
mod example_tests;
#[cfg(test)]
mod receiver;
