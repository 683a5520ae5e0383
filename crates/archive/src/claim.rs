//! The place of a recording in a store: the manifest object says which recording has the name.
//!
//! Invariant: a removal is permitted only after the manifest was found to be that of the recording.
use keepup_recording::id::Id;
use keepup_recording::manifest::{MANIFEST_FILE, Manifest};
use serde::Deserialize;

use crate::error::ArchiveError;
use crate::inventory::MANIFEST_BYTES_MAX;
use crate::store::Store;

/// Takes the place of the archive for this recording.
pub(crate) fn claim(store: &Store, manifest: &Manifest) -> Result<(), ArchiveError> {
    match owner(store)? {
        Some(found) => check(store, &found, manifest.recording),
        None => {
            let text = serde_json::to_vec_pretty(manifest).unwrap_or_default();
            store.create(MANIFEST_FILE, text.into())?;
            // Another recording of this name may have begun at the same time.
            check_owner(store, manifest.recording)
        }
    }
}

/// Makes sure that the archive is still that of `recording`.
///
/// # Errors
/// Another recording has taken its place, the manifest is gone or damaged, or the store does not answer.
pub(crate) fn check_owner(store: &Store, recording: Id) -> Result<(), ArchiveError> {
    check(store, &owner(store)?.unwrap_or_default(), recording)
}

/// The field of a manifest that says whose it is.
#[derive(Deserialize)]
struct Owner {
    recording: String,
}

/// Text of the `recording` field of the manifest; `None` without a manifest.
fn owner(store: &Store) -> Result<Option<String>, ArchiveError> {
    let Some(text) = store.get(MANIFEST_FILE, MANIFEST_BYTES_MAX)? else { return Ok(None) };
    let found = text.and_then(|text| serde_json::from_slice(&text).map_err(|error| error.to_string()));
    let fault =
        |what| ArchiveError::NotAManifest { url: format!("{}/{MANIFEST_FILE}", store.location), what };
    found.map(|Owner { recording }| Some(recording)).map_err(fault)
}

fn check(store: &Store, found: &str, recording: Id) -> Result<(), ArchiveError> {
    if found == recording.to_string() {
        return Ok(());
    }
    Err(ArchiveError::Taken { url: store.location.to_string() })
}

#[cfg(test)]
#[path = "claim_tests.rs"]
mod tests;
