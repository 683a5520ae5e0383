//! Measurements of a machine, and the background loads beside them: one trait, one module per kind.
//!
//! A [`Workload`] states its resource usage before it touches anything ([`Footprint`]), and [`run`] drives
//! each through the same fixed sequence of steps. Clock, stop flag and the sink for samples are passed in
//! ([`Context`]).
//!
//! Invariants: what will be written is known before anything is touched; clean-up runs after an error too.
//! Absent: judging the results (`keepup-qualify`), the bit-error test (`keepup-soak`), replay of traces
//! (`keepup-replay`), registers (`keepup-registers`).
//!
//! | what | where |
//! |---|---|
//! | one trial of the recording path | [`record`] |
//! | upper limits of disk, network, memory and source | [`ceiling`] |
//! | disk tests, one file per test | [`disk`] |
//! | requests to files, for disk tests, loads and ceilings | `file_io.rs`, `file_io/` |
//! | network tests: client, server, flows, datagram ledger | [`net`] |
//! | background loads, each in its own process | [`load`] |
//! | checks of volumes before anything is written | [`preflight`] |
//! | temporary directories on volumes | [`scratch`] |
//! | what killed measurements left on a volume | [`leftover`] |
//! | incompressible data | [`random_data`] |
//! | elapsed time and CPU time of an interval | [`spent`] |
//! | settings of the host, as the doctor reads them | [`doctor`] |
//! | wear of the volumes' disks | [`wear`] |
//! | a profile as source and recorder settings | [`detector`] |

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may sum"))]
pub mod ceiling;
mod contract;
pub mod detector;
pub mod disk;
pub mod doctor;
mod error;
mod file_io;
pub mod file_store;
pub mod leftover;
pub mod load;
pub mod net;
pub mod preflight;
pub mod random_data;
pub mod record;
pub mod scratch;
pub mod spent;
#[cfg(test)]
mod testing;
pub mod wear;

pub use contract::{Context, Footprint, Workload, run};
pub use error::{VolumeTrouble, WorkloadError};
