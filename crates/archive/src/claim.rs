//! The place of a recording in a store: the manifest object says which recording has the name.
//!
//! Invariant: a removal is permitted only after the manifest was found to be that of the recording.
use keepup_recording::id::Id;
use keepup_recording::manifest::{MANIFEST_FILE, Manifest};

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
/// Another recording has taken its place, the manifest is gone, or the store does not answer.
pub(crate) fn check_owner(store: &Store, recording: Id) -> Result<(), ArchiveError> {
    check(store, &owner(store)?.unwrap_or_default(), recording)
}

/// Text of the `recording` field of the manifest, empty if it has none; `None` without a manifest.
fn owner(store: &Store) -> Result<Option<String>, ArchiveError> {
    let Some(text) = store.get(MANIFEST_FILE, MANIFEST_BYTES_MAX)? else { return Ok(None) };
    let found: Option<serde_json::Value> = text.ok().and_then(|text| serde_json::from_slice(&text).ok());
    Ok(Some(found.and_then(|found| Some(found["recording"].as_str()?.to_owned())).unwrap_or_default()))
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
