//! What a machine would do that is not there to be measured: parts, machines made of them, and how fast data
//! goes through.
//!
//! Invariants: pure, no I/O, no clock, and randomness from a seed that is passed in; every number that is not
//! computed has a source.

mod engine_error;
pub mod mva;
pub mod simulate;
mod solve;
mod system;
pub mod vary;

pub use engine_error::EngineError;
pub use solve::{Gain, Limit, LimitKind, Solution, gains, solve};
pub use system::{Currency, Flow, Resource, System, Use, Window};
