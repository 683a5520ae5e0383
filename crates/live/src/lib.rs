//! HTTP server of a recorder: a page, an API for programs, metrics, and copies of events for
//! monitoring programs.
//!
//! It has its own thread and only receives published state; it queries nothing from the recorder.
//! State is serialized once for all clients, so that many of them cost little more than one. A
//! client that does not read misses updates, and is disconnected after a while.
//!
//! Invariants: every change needs the token; the memory that a client can occupy is bounded;
//! publishing never waits.

mod answers;
mod board;
mod catalog;
mod commands;
mod error;
mod event;
mod exposition;
mod guard;
mod metrics;
#[cfg(test)]
mod packaging_tests;
mod page;
mod parts;
mod places;
mod response;
mod routes;
mod server;
mod tap;
mod tap_query;
#[cfg(test)]
mod testing;

pub use answers::AnswerLimits;
pub use board::{Board, Scene};
pub use catalog::{Admit, Catalog, Listing, ResultEntry, Tone};
pub use commands::{CommandQueue, PendingCommand};
pub use error::LiveError;
pub use event::{EVENT_BYTES_MAX, EVENT_HEADER, EventCard, EventCopy};
pub use guard::Access;
pub use parts::Parts;
pub use server::Live;
pub use tap::TapSource;
pub use tap_query::TapQuery;
