//! Clocks, histograms, samplers of CPU, disks and network, the environment record, statistics, sums.
//!
//! Invariants: no unsafe code; every parser is a pure function of the kernel's text and never
//! panics; every reader takes the root of the file tree (`/` outside tests) so that tests can
//! simulate a machine.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may sum"))]

pub mod clock;
pub mod cpu;
pub mod disk;
pub mod environment;
pub mod error;
pub mod errors;
pub mod heat;
pub mod histogram;
mod interrupts;
pub mod memory;
pub mod mounts;
pub mod net;
pub mod pressure;
mod raid;
pub mod sampler;
pub mod settings;
pub mod space;
pub mod stats;
pub mod sum;

mod text;

pub use error::MeasureError;
pub use interrupts::storage_interrupts;
