//! Recordings on disk: segment layout, journal, manifest, reader and verification.
//!
//! A recording on one volume is a directory with a manifest (`keepup.json`), a journal
//! (`journal.jsonl`) and segments (`segment-000000.mcap`, …). `docs/recording-format.md`
//! describes the bytes. Invariants: no code in this crate writes a block (the recorder does, with
//! [`layout`]'s functions); every length read from a file is checked against the file's size
//! before memory is allocated.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may sum"))]

pub mod access;
pub mod account;
pub mod archived;
mod contents;
pub mod crc;
mod duplicates;
pub mod error;
pub mod export;
mod files;
#[doc(hidden)]
pub mod fixture;
pub mod follow;
mod hdf5;
pub mod id;
pub mod in_flight;
pub mod info;
pub mod journal;
pub mod layout;
pub mod line;
pub mod manifest;
pub mod master;
pub mod merged;
mod messages;
mod nxmx;
pub mod presence;
pub mod progress;
mod ranges;
pub mod reader;
pub mod recover;
pub mod remove;
pub mod retention;
pub mod runs;
mod scan;
pub mod seal;
mod sequential;
pub mod set;
#[cfg(test)]
mod testing;
pub mod unborn;
pub mod verify;
pub mod volume;

#[cfg(test)]
mod bad_input_tests;
#[cfg(test)]
mod example_tests;
