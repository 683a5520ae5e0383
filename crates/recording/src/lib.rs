//! What lies on disk: segment layout, journal, manifest, reader and verification.
//!
//! A recording on one volume is a directory with a manifest (`keepup.json`), a journal
//! (`journal.jsonl`) and segments (`segment-000000.mcap`, …). `docs/recording-format.md` has the bytes.
//! Invariants: nothing here writes a segment (the recorder does, with [`layout`]'s functions); every
//! length read from a file is checked against the file's size before memory is taken.

pub mod crc;
pub mod error;
mod files;
#[doc(hidden)]
pub mod fixture;
pub mod follow;
pub mod id;
pub mod journal;
pub mod layout;
pub mod manifest;
mod messages;
pub mod reader;
pub mod remove;
#[cfg(test)]
mod testing;
pub mod verify;
pub mod volume;

#[cfg(test)]
mod example_tests;
