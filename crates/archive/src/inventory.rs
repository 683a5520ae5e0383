//! Inventory of an archive: its files with sizes and checksums. Also the layout of an archive.
//!
//! The files of the first volume lie directly below the archive's address, those of volume *n* below
//! `volume-n/`. Invariant: only names that a recording has are accepted, so no name leads out of a directory.
use std::collections::BTreeSet;

pub use keepup_recording::archived::ArchivedFile;
use keepup_recording::id::Id;
use keepup_recording::journal::JOURNAL_FILE;
use keepup_recording::layout::segment_file_name;
use keepup_recording::manifest::MANIFEST_FILE;
use keepup_recording::reader::nested_volume;
use keepup_recording::retention::REMOVED_FILE;
use serde::{Deserialize, Serialize};

/// Object with the inventory, below the archive's address.
pub const INVENTORY_FILE: &str = "keepup-archive.json";
/// Directory of the receipts, below the archive's address: one object for each segment that may be removed
/// from its volume once it is archived.
pub(crate) const RECEIPTS: &str = "receipts";
/// Version of the format.
pub const INVENTORY_VERSION: u32 = 1;
/// Longest inventory that is read, bytes: about 300 000 files.
pub(crate) const INVENTORY_BYTES_MAX: u64 = 64 << 20;
/// Longest manifest of a recording, in bytes.
pub(crate) const MANIFEST_BYTES_MAX: u64 = 1 << 20;
/// Most volumes of an archive.
const VOLUMES_MAX: u32 = 4096;

/// Content of an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inventory {
    /// Version of this format.
    pub version: u32,
    /// Name of the recording.
    pub name: String,
    /// Identity of the recording.
    pub recording: Id,
    /// Run number, where runs are numbered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    /// Time at which the archive was complete, ns since the Unix epoch.
    pub archived_unix_ns: u64,
    /// Version of the keepup that wrote it.
    pub tool_version: String,
    /// All files.
    pub files: Vec<ArchivedFile>,
}

impl Inventory {
    /// Reads and checks an inventory.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let found: Self = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        found.check()?;
        Ok(found)
    }

    fn check(&self) -> Result<(), String> {
        if self.version != INVENTORY_VERSION {
            return Err(format!(
                "it has version {}, and this keepup reads {INVENTORY_VERSION}",
                self.version
            ));
        }
        let (mut paths, mut volumes) = (BTreeSet::new(), BTreeSet::new());
        for file in &self.files {
            let Some((volume, name)) = split_path(&file.path) else {
                return Err(format!("{:?} is not the path of a file of a recording", file.path));
            };
            let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
            if file.sha256.len() != 64 || !file.sha256.bytes().all(is_hex) {
                return Err(format!("the SHA-256 of {} is not 64 hex digits", file.path));
            } else if !paths.insert(&file.path) {
                return Err(format!("{} is listed twice", file.path));
            } else if name == MANIFEST_FILE {
                volumes.insert(volume);
            }
        }
        if self.files.iter().try_fold(0, |sum: u64, file| sum.checked_add(file.bytes)).is_none() {
            return Err("the sum of all lengths overflows".to_owned());
        }
        let is_known =
            |file: &ArchivedFile| split_path(&file.path).is_some_and(|(v, _)| volumes.contains(&v));
        if !volumes.contains(&0) || !self.files.iter().all(is_known) {
            return Err(format!("a volume has no {MANIFEST_FILE}"));
        }
        Ok(())
    }

    /// Length of all files, bytes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).fold(0, u64::saturating_add)
    }
}

/// Volume and name of a path within an archive; `None` if it is not that of a file of a recording.
pub(crate) fn split_path(path: &str) -> Option<(u32, &str)> {
    let (volume, name) = match path.split_once('/') {
        None => (0, path),
        Some((folder, name)) => {
            let volume = folder.strip_prefix("volume-")?.parse().ok()?;
            let is_ours = (1..VOLUMES_MAX).contains(&volume) && nested_volume(volume) == folder;
            (is_ours.then_some(volume)?, name)
        }
    };
    let is_segment = || {
        let digits = name.strip_prefix("segment-")?.strip_suffix(".mcap")?;
        Some(segment_file_name(digits.parse().ok()?) == name)
    };
    let is_ours = [MANIFEST_FILE, JOURNAL_FILE, REMOVED_FILE].contains(&name) || is_segment() == Some(true);
    is_ours.then_some((volume, name))
}

/// Lower-case hex digits of `bytes`.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
#[path = "inventory_tests.rs"]
mod tests;
