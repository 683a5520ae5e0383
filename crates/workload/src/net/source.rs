//! Source on another machine: `keepup source --serve` and its client.
//!
//! After the handshake of a network test the client sends one request: describe the machine, measure
//! the source alone, send a plan's events to the client's recorder, or open a port at which the source waits
//! for the recorder. The server connects only to the address of the client and accepts only that, and runs
//! one source at a time. While a source runs, the server reports its counters at a fixed interval; the last
//! message has the final counts.
//!
//! Invariants: every wait is bounded; figures of the server are checked before they are used.
//!
//! Modules: `client`, `waiting` (a source that waits), `timeline` (counters on the client's clock). Messages
//! are in `net::wire::source`, the server side is in `net::server::session::source`.
mod client;
mod timeline;
mod waiting;

pub use client::RemoteSource;
pub(crate) use client::{RemoteOrder, RemoteRun};
pub use timeline::{SourceCounts, Timeline};
pub(crate) use waiting::RemoteWaiting;

/// Default port of `keepup source --serve`.
pub const PORT: u16 = 7614;
