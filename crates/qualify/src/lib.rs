//! Can this machine keep up with this detector? Trials, rate search, ceilings, bottleneck and verdict.
//!
//! `session` runs it all; what it decides with is pure and beside it: `search` (which rate next), `judge`
//! (did a trial hold), `bottleneck` (what limits, and what would next), `verdict` (what that means for the
//! requirement). `doctor` judges the settings of a host, by rules that are pure too.
pub mod bottleneck;
mod ceilings;
pub mod datagrams;
pub mod doctor;
mod error;
pub mod judge;
pub mod progress;
pub mod search;
mod session;
pub mod settings;
mod summary;
pub mod verdict;

pub use error::QualifyError;
pub use session::{Session, qualify};
