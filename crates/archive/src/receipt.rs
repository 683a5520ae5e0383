//! Receipts: what the archive has of a segment that may be removed from its volume, stored in the archive.
//!
//! The state file of a copy can be lost together with its disk. Without it, and without the segment, nothing
//! would say that the archive has the segment. Invariants: a receipt is written after the store has confirmed
//! the segment, and before the state file allows its removal; a receipt counts only as long as its object is
//! the one that it describes.
use keepup_recording::archived::ArchivedFile;
use keepup_recording::id::Id;
use serde::{Deserialize, Serialize};

use crate::error::ArchiveError;
use crate::inventory::RECEIPTS;
use crate::state::KnownFile;
use crate::store::Store;

/// Longest receipt, bytes.
const BYTES_MAX: u64 = 16 << 10;

/// What the archive has of a segment.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Receipt {
    recording: Id,
    file: ArchivedFile,
    etag: Option<String>,
    /// Whether every block of the segment was intact as it was read.
    intact: Option<bool>,
}

impl Receipt {
    pub(crate) fn of(recording: Id, known: &KnownFile) -> Self {
        let KnownFile { file, etag, intact } = known.clone();
        Self { recording, file, etag, intact }
    }

    /// Writes the receipt.
    pub(crate) fn write(&self, store: &Store) -> Result<(), ArchiveError> {
        let path = receipt_path(&self.file.path);
        let fault = |what: String| ArchiveError::Mismatch {
            doing: "write",
            object: format!("{}/{path}", store.location),
            what,
        };
        let text = serde_json::to_vec_pretty(self).map_err(|error| fault(error.to_string()))?;
        store.put_confirmed(&path, &text)?.map_err(fault)
    }

    /// Reads the receipt of the segment `path` of a recording; `None` if there is none.
    pub(crate) fn read(store: &Store, recording: Id, path: &str) -> Result<Option<KnownFile>, ArchiveError> {
        let Some(Ok(text)) = store.get(&receipt_path(path), BYTES_MAX)? else { return Ok(None) };
        let Ok(receipt) = serde_json::from_slice::<Self>(&text) else { return Ok(None) };
        let Self { recording: of, file, etag, intact } = receipt;
        let is_own = of == recording && file.path == path;
        Ok(is_own.then_some(KnownFile { file, etag, intact }))
    }
}

fn receipt_path(path: &str) -> String {
    format!("{RECEIPTS}/{path}.json")
}
