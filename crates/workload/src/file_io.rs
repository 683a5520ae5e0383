//! Sequential file I/O with several requests in flight, for disk tests, the volume ceiling and disk loads:
//! settings, transfers to and from one file, and series of files.
//!
//! Invariants: memory of a request in flight is not reused; data differs from page to page unless a pattern
//! asks for duplicates.
pub mod mode;
mod mover;
mod series;

pub(crate) use mover::{Ended, Mover};
pub use mover::{IoDirection, Point};
pub(crate) use series::Series;
