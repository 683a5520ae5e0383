//! Disk tests, one module each, after the programs of the papers.
//!
//! Invariants: a phase's time and CPU time are read at the same two moments; files are below a
//! scratch directory and always removed; an interrupted test keeps its completed phases.
pub mod block;
pub mod cache;
pub mod concurrent;
pub mod fio;
mod lanes;
mod on_volumes;
mod phase;
mod repeat;
pub mod scale;
pub mod steady;
pub mod sweep;
pub mod testdisk;
pub mod throttle;

pub use lanes::Pace;
pub use on_volumes::{Cost, DiskMeasured, DiskTest, OnVolumes, TestDirectories};
pub use repeat::{Repeated, alternate};

pub use crate::file_io::{IoDirection, Point, mode};
