//! Qualification of a fleet: the rate search of one host over the rate of all streams together.
//!
//! [`qualify`] drives the search with trials on all recorders. A trial passes if the part of every recorder
//! passes. Decisions are pure: [`combine`] makes one outcome of those of the recorders, [`bottleneck`] names
//! the host that limits the rate. Search, rules of a trial and verdict are those of `keepup_qualify`.
mod bottleneck;
mod combine;
mod found;
mod session;
mod summary;

pub use found::{QualifyEvent, QualifySettings};
pub use session::{Trials, qualify};
pub use summary::{begun, control_warning};
