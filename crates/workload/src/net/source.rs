//! Source on another machine: `keepup source --serve` and its client.
//!
//! After the handshake of a network test the client sends one request: describe the machine, measure
//! the source alone, or send a plan's events to the client's recorder. The server connects only to
//! the address of the client, and runs one source at a time. While a source runs, the server
//! reports its counters at a fixed interval; the last message has the final counts.
//!
//! Invariants: every wait is bounded; figures of the server are checked before they are used.
//!
//! Modules: `client`, `timeline` (counters on the client's clock). Messages are in `net::wire::source`, the
//! server side is in `net::server::session::source`.
mod client;
mod timeline;

pub(crate) use client::RemoteOrder;
pub use client::RemoteSource;
pub use timeline::{SourceCounts, Timeline};

/// Default port of `keepup source --serve`.
pub const PORT: u16 = 7614;
