//! The pipeline from socket to durable segment, run control and drains.
//!
//! One intake thread owns every connection, every stream and the block pool; one writer thread per volume
//! owns that volume's segments; one keeper thread per volume prepares and finishes segments and writes the
//! journal. They share nothing but rings of blocks and counters: events in, actions out, one owner of each
//! piece of state.

pub mod config;
mod control;
pub mod counters;
pub mod drain;
mod error;
mod intake;
mod keeper;
mod link;
mod placement;
pub mod reduce;
pub mod report;
mod room;
pub mod run;
mod switches;
pub mod tap;
mod threads;
mod volume;
pub mod watch;
mod writer;

pub use config::{RecorderConfig, Target};
pub use control::{Recorder, Stopper};
pub use error::RecorderError;
pub use placement::PlacementKind;
