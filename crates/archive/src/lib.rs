//! Copies recordings to an object store or to a BagIt bag, and restores them.
//!
//! An archive of a recording is a directory of objects below `URL/NAME`: the recording's own files, byte for
//! byte ([`inventory`] has the layout), and the inventory with the size and SHA-256 of each file. Invariants:
//! the inventory is written last, so that an archive with an inventory is complete; no object is entered
//! there before the store has confirmed its checksum, or it was read back; what a store returns is checked
//! before it is used; memory is a fixed number of parts of a fixed size.

pub mod archive;
pub mod bag;
mod claim;
mod counters;
mod credentials;
mod download;
mod error;
mod google;
pub mod inventory;
mod local;
mod pace;
mod part_checks;
mod reading;
mod receipt;
pub mod restore;
mod segment_check;
mod state;
mod store;
mod upload;

pub use counters::ArchiveCounters;
pub use error::ArchiveError;
pub use store::{Location, is_store_url};

/// Size of the parts in which files are transferred, bytes. Larger files than 10 000 of them have larger
/// parts. Each byte of a part is read several times: 16 MiB cost more CPU time (docs/adr/0034).
pub const PART_BYTES: u64 = 8 << 20;
/// Most requests in flight.
pub const CONNECTIONS_MAX: usize = 64;
