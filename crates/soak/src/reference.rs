//! Reference file: its path, digest, and a checksum per piece for early detection of wrong bytes.
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use keepup_recording::crc::crc32;
use keepup_sys::file::{Access, forget_cached, open_to_read, read_upto_at, sync_data, write_all_at};
use keepup_workload::random_data::fill_random;

use crate::error::{SoakError, system};
use crate::piece::{PIECE_BYTES, piece_bytes};
use crate::plan::DigestKind;
use crate::stamp::mix;

/// A file to copy.
#[derive(Debug)]
pub(crate) struct Reference {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) digest: String,
    crcs: Vec<u32>,
    /// Seed of a generated file; none for a user's file.
    seed: Option<u64>,
}

/// Checksums of a reference.
struct Sums {
    digest: String,
    crcs: Vec<u32>,
}

/// Callback that reads or generates the piece at an offset.
type PieceAt<'a> = dyn FnMut(u64, &mut [u8]) -> Result<(), SoakError> + 'a;

/// Computes the checksums of a file of `bytes`; `piece` fills the front of `block`.
fn sums(bytes: u64, kind: DigestKind, block: &mut [u8], piece: &mut PieceAt<'_>) -> Result<Sums, SoakError> {
    let (mut hasher, mut crcs) = (kind.hasher(), Vec::new());
    for offset in (0..bytes).step_by(PIECE_BYTES) {
        let content = &mut block[..piece_bytes(bytes, offset)];
        piece(offset, content)?;
        hasher.update(content);
        crcs.push(crc32(content));
    }
    Ok(Sums { digest: hasher.end(), crcs })
}

/// Generates the content at `offset`, a multiple of a piece.
fn make(seed: u64, offset: u64, content: &mut [u8]) {
    fill_random(content, mix(seed, offset) | 1);
}

impl Reference {
    /// Generates a reference of `bytes` at `path` without repeated pages.
    pub(crate) fn make(
        path: PathBuf,
        bytes: u64,
        seed: u64,
        kind: DigestKind,
        block: &mut [u8],
    ) -> Result<Self, SoakError> {
        let action = format!("write the reference {}", path.display());
        let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(system(&action))?;
        let file = file.into();
        let Sums { digest, crcs } = sums(bytes, kind, block, &mut |offset, content| {
            make(seed, offset, content);
            write_all_at(&file, content, offset).map_err(system(&action))
        })?;
        sync_data(&file, &path)?;
        Ok(Self { path, bytes, digest, crcs, seed: Some(seed) })
    }

    /// Uses a user's file as it is now, read past the page cache if the kernel drops it.
    pub(crate) fn take(path: &Path, kind: DigestKind, block: &mut [u8]) -> Result<Self, SoakError> {
        let wrong = |what: &str| SoakError::Reference { path: path.into(), what: what.into() };
        let found = std::fs::metadata(path).map_err(|e| wrong(&e.to_string()))?;
        if !found.is_file() || found.len() == 0 {
            return Err(wrong("it is empty or not a regular file"));
        }
        let (file, bytes) = (open_to_read(path, Access::Buffered)?, found.len());
        forget_cached(&file, path)?;
        let action = format!("read the reference {}", path.display());
        let Sums { digest, crcs } = sums(bytes, kind, block, &mut |offset, content| {
            let wanted = content.len();
            let read = read_upto_at(&file, content, wanted, offset).map_err(system(&action))?;
            if read == wanted { Ok(()) } else { Err(wrong("it was truncated while it was read")) }
        })?;
        Ok(Self { path: path.into(), bytes, digest, crcs, seed: None })
    }

    /// Whether `content` is the piece at `offset`.
    pub(crate) fn is_piece(&self, offset: u64, content: &[u8]) -> bool {
        self.crcs.get((offset / PIECE_BYTES as u64) as usize) == Some(&crc32(content))
    }

    /// Restores the correct piece at `offset` into `content`; false if it is lost.
    pub(crate) fn restore(&self, offset: u64, content: &mut [u8]) -> bool {
        if let Some(seed) = self.seed {
            make(seed, offset, content);
            return true;
        }
        // The wrong bytes may be only in the page cache.
        (0..2).any(|turn| {
            let mut read = || -> Result<usize, SoakError> {
                let file = open_to_read(&self.path, Access::Buffered)?;
                if turn > 0 {
                    forget_cached(&file, &self.path)?;
                }
                let wanted = content.len();
                read_upto_at(&file, content, wanted, offset).map_err(system("read the reference again"))
            };
            read().is_ok_and(|read| read == content.len()) && self.is_piece(offset, content)
        })
    }
}

#[cfg(test)]
#[path = "reference_tests.rs"]
mod tests;
