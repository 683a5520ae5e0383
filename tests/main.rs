//! End to end: the real program, real sockets, real files, and relations that must hold between what it says.
//! Tests are grouped by what they look at; `docs/testing.md` says how to run a test, a group or a tier.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]
mod common;
mod disk;
mod net;
mod recorder;
mod registers;
mod results;
mod tiers;
