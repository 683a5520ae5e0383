//! Disk tests: what the papers' programs measured, each a file of its own.
//!
//! Invariants: a phase's time and CPU are read at the same two moments; files are made below a scratch
//! directory and removed whatever happens; a test that was cut short keeps the phases that it finished.
pub mod block;
pub mod cache;
pub mod concurrent;
pub mod fio;
mod lanes;
pub mod mode;
pub(crate) mod mover;
mod on_volumes;
mod phase;
mod repeat;
pub mod scale;
pub(crate) mod series;
pub mod steady;
pub mod sweep;
pub mod testdisk;
pub mod throttle;

pub use lanes::Pace;
pub use mover::{Kind, Point};
pub use on_volumes::{Cost, DiskTest, Found, OnVolumes, Place};
pub use repeat::{Repeated, alternate};
