//! What can be measured: one contract, one room per kind.
//!
//! A workload says what it will write before anything is touched, and is then driven through the same steps
//! as every other. Clock, stop switch and the place where its samples go are handed in; nothing here
//! decides what a figure means.
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
pub mod register;
pub mod replay;
mod scratch;
pub mod soak;
mod spent;
#[cfg(test)]
mod testing;

pub use contract::{Context, Footprint, Workload, run};
pub use error::{VolumeTrouble, WorkloadError};
