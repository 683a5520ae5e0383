//! End-to-end tests: the real program with real sockets and files, checked by relations within its output.
//! `docs/testing.md` describes how to run a test, a group or a tier.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]
#![expect(clippy::disallowed_methods, reason = "tests may sum")]
mod archive;
mod common;
mod disk;
#[cfg(feature = "fleet")]
mod fleet;
mod net;
mod recorder;
mod registers;
mod results;
mod tiers;
