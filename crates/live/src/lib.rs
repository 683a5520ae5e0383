//! The window on a recorder: a page, an interface for programs, metrics, and the copies of events that
//! monitoring programs ask for.
//!
//! It has a thread of its own and is told things; it asks nothing of the recorder. What it shows is written
//! down once for all who look, so that many of them cost little more than one. Whoever does not read is left
//! behind, and after a while cut off.
//!
//! Invariants: nothing that changes anything goes without the token; what a client can make this process
//! remember is bounded; nothing here is waited for by whoever publishes.

mod answers;
mod board;
mod error;
mod event;
mod exposition;
mod guard;
mod metrics;
mod orders;
#[cfg(test)]
#[path = "packaging_tests.rs"]
mod packaging_tests;
mod page;
mod routes;
mod server;
mod shelf;
mod tap;
mod tap_query;
#[cfg(test)]
mod testing;
mod thin;

pub use answers::AnswerLimits;
pub use board::{Board, Scene};
pub use error::LiveError;
pub use event::{EVENT_BYTES_MAX, EVENT_HEADER, EventCard, EventCopy};
pub use guard::{Access, Token};
pub use orders::{Asked, Orders};
pub use server::{Live, Parts};
pub use shelf::{
    Admit, Entries, Listing, RecordingEntry, RecordingState, ResultEntry, Shelf, Tone, Unreadable,
};
pub use tap::TapSource;
pub use tap_query::TapQuery;
