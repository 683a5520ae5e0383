//! Measurements of a machine, and the background loads beside them: one trait, one module per kind.
//!
//! A [`Workload`] states its resource usage before it touches anything ([`Footprint`]), and [`run`] drives
//! each through the same fixed sequence of steps. Clock, stop flag and the sink for samples are passed in
//! ([`Context`]).
//!
//! Invariants: what will be written is known before anything is touched; clean-up runs after an error too.
//! Absent: judging the results (`keepup-qualify`), trace formats (`keepup-trace`), registers
//! (`keepup-registers`).
//!
//! | what | where |
//! |---|---|
//! | one trial of the recording path | [`record`] |
//! | upper limits of disk, network, memory and source | [`ceiling`] |
//! | disk tests, one file per test | [`disk`] |
//! | network tests: client, server, flows, datagram ledger | [`net`] |
//! | bit-error test | [`soak`] |
//! | replay of traces | [`replay`] |
//! | background loads, each in its own process | [`load`] |
//! | checks of volumes before anything is written | [`preflight`] |
//! | settings of the host, as the doctor reads them | [`doctor`] |
//! | wear of the volumes' disks | [`wear`] |
//! | a profile as source and recorder settings | [`detector`] |
pub mod ceiling;
mod contract;
mod data;
pub mod detector;
pub mod disk;
pub mod doctor;
mod error;
pub mod load;
pub mod net;
pub mod preflight;
pub mod record;
pub mod replay;
mod scratch;
pub mod soak;
mod spent;
#[cfg(test)]
mod testing;
pub mod wear;

pub use contract::{Context, Footprint, Workload, run};
pub use error::{VolumeTrouble, WorkloadError};
