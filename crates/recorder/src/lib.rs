//! The pipeline from socket to durable segment, run control and drains.
//!
//! Each intake thread owns its connections, its streams and its part of the block pool. One writer
//! thread per volume owns that volume's segments. One keeper thread per volume prepares and finishes
//! segments and writes the journal. They share only rings of blocks, counters, and which intake owns a
//! stream: every piece of state has one owner.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may sum"))]

pub mod after_seal;
mod assignment;
mod capture_feed;
pub mod config;
mod control;
pub mod counters;
mod directory;
mod document;
pub mod drain;
mod error;
mod free_space;
mod intake;
mod keeper;
mod link;
mod packet_socket;
mod placement;
pub mod reduce;
pub mod report;
pub mod run;
mod series;
mod switches;
pub mod tap;
mod threads;
mod volume;
pub mod watch;
mod writer;

pub use assignment::Assignment;
pub use config::{RecorderConfig, Target};
pub use control::{Recorder, Stopper};
pub use document::DocumentSender;
pub use error::RecorderError;
pub use placement::PlacementKind;
pub use series::SeriesConnections;
pub use threads::catch_panic;
