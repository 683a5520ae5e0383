//! Stored results and recordings: found below directories, listed, and opened by id, name or path.
//!
//! [`DirectoryCatalog`] serves `keepup serve` and the live page through [`keepup_live::Catalog`];
//! [`open_result`], [`newest_qualification`] and [`find_recording`] find a single one, and [`report_page`]
//! draws a result's page.
//!
//! `scan.rs` finds directories by their marker files, `entry.rs` reads what a list says of one, `cache.rs`
//! keeps entries until their files change, and `directories.rs` puts these together under a limit of time.
//! `find.rs` has the lookups, `report.rs` the page of a result with the history in its event log.
//!
//! Invariants: links are not followed and nothing is written; work per scan is bounded; no lock that other
//! requests wait for is held while a disk is read.

mod cache;
mod directories;
mod entry;
mod event_card;
mod find;
mod report;
mod scan;

pub use directories::DirectoryCatalog;
pub use event_card::event_card;
pub use find::{LAST, find_recording, newest_qualification, open_result};
pub use report::report_page;
