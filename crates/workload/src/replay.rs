//! Recorded and made-up accesses to storage, and what is done with them.
//!
//! A [`Script`] is a trace made ready for a target, a mode says when each request is due, a place is what
//! it goes to, and [`Replay`] makes passes on places in turns; [`compare`] says how places differ.
mod engine;
mod error;
mod index;
mod map;
mod pace;
pub mod personality;
mod place;
mod run;
mod script;
mod target;
#[cfg(test)]
mod testing;
pub mod trace;

pub use error::ReplayError;
pub use index::compare;
pub use map::{EXTENT_BYTES, Policy};
pub use pace::Mode;
pub use place::{Means, Place, check_place};
pub use run::{Manner, PASSES_MIN, Replay};
pub use script::{Choice, RECORDS_MAX, REQUEST_BYTES_MAX, SPACE_BYTES_MAX, Script};
