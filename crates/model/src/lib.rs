//! Capacity model: predicts the throughput of machines, built from parts, that cannot be measured.
//!
//! Invariants: pure, no I/O, no clock, randomness only from a given seed; every number that is not
//! computed has a source.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may sum"))]

mod calibrate;
mod catalogue;
mod cells;
mod engine_error;
mod error;
pub mod formulas;
mod machine;
pub mod mva;
pub mod papers;
mod part;
mod predict;
mod ranged;
mod scatter;
pub mod simulate;
mod solve;
mod system;
mod unit;
pub mod vary;

pub use calibrate::{MeasuredRate, Recorders, calibrate};
pub use catalogue::{catalogue, part};
pub use cells::predicted_papers;
pub use engine_error::EngineError;
pub use error::ModelError;
pub use formulas::store::{Direction, Layout};
pub use machine::{
    Assembly, BesideSpec, Fitting, Machine, PathSpec, ResourceSpec, StageSpec, WindowSpec, machine,
    machine_names,
};
pub use part::{Capability, Formula, Part, Want};
pub use predict::{Ask, SAMPLES, Sweep, SweepError, assumptions, predict};
pub use ranged::{Ranged, Source};
pub use solve::{Gain, Limit, LimitKind, Solution, gains, solve};
pub use system::{Currency, Flow, Resource, System, Use, Window};
pub use unit::{Dimension, Quantity, Unit};
