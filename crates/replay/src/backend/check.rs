//! Read-back check: every written block is stamped, a log keeps the stamps, and the end of a pass compares.
use std::collections::HashMap;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::Path;

use keepup_results::ReplayCheck;
use keepup_sys::file::read_exact_at;
use keepup_workload::WorkloadError;

use crate::error::ReplayError;

/// How much is read back at once, bytes.
const READ_BYTES: usize = 1 << 20;
/// Marks a block whose last write is ambiguous: several writes were in flight at the same time.
const ANY: u64 = u64::MAX;

/// What each block of a write begins with; the rest is random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Number of the block on the target.
    pub(super) block: u64,
    /// Number of the write.
    pub(super) write: u64,
}

impl Stamp {
    /// Writes it to the front of a block; as much of it as fits.
    pub(super) fn put(self, piece: &mut [u8]) {
        for (word, place) in [self.block, self.write].iter().zip(piece.chunks_exact_mut(8)) {
            place.copy_from_slice(&word.to_le_bytes());
        }
    }

    fn of(piece: &[u8]) -> Self {
        let mut words = piece.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_le_bytes));
        Self { block: words.next().unwrap_or(0), write: words.next().unwrap_or(0) }
    }
}

/// Which write each block was last part of.
#[derive(Debug, Default)]
pub(super) struct WriteLog {
    last: HashMap<u64, u64>,
    /// Writes under way, by their tokens.
    under_way: HashMap<usize, Range<u64>>,
}

impl WriteLog {
    /// Write number `write` of `blocks` begins.
    pub(super) fn begun(&mut self, token: usize, blocks: Range<u64>, write: u64) {
        for block in blocks.clone() {
            let is_shared = self.under_way.values().any(|other| other.contains(&block));
            self.last.insert(block, if is_shared { ANY } else { write });
        }
        self.under_way.insert(token, blocks);
    }

    /// The discard of `blocks` begins: what they hold is not checked until they are written again.
    pub(super) fn discarded(&mut self, token: usize, blocks: Range<u64>) {
        if blocks.end - blocks.start > self.last.len() as u64 {
            self.last.retain(|block, _| !blocks.contains(block));
        } else {
            for block in blocks.clone() {
                self.last.remove(&block);
            }
        }
        self.under_way.insert(token, blocks);
    }

    /// A request has ended.
    pub(super) fn ended(&mut self, token: usize) {
        self.under_way.remove(&token);
    }
}

/// Reads all blocks of `unit` bytes that `log` knows of the `addresses` of `file`, which is opened past the
/// page cache where writes went past it, and adds them to `found`.
///
/// # Errors
/// When they cannot be read.
pub(super) fn check(
    (file, path): (&OwnedFd, &Path),
    addresses: Range<u64>,
    log: &WriteLog,
    unit: usize,
    found: &mut ReplayCheck,
) -> Result<(), ReplayError> {
    let known = log.last.iter().map(|(block, write)| (*block, *write));
    let mut blocks: Vec<_> = known.filter(|(block, _)| addresses.contains(&(block * unit as u64))).collect();
    blocks.sort_unstable();
    found.ambiguous += blocks.iter().filter(|(_, write)| *write == ANY).count() as u64;
    blocks.retain(|(_, write)| *write != ANY);
    let mut pool = keepup_sys::pool::Pool::new(2 * READ_BYTES)?;
    let mut memory = pool.take(READ_BYTES).ok_or_else(|| WorkloadError::System {
        action: "take memory to read back".into(),
        source: std::io::ErrorKind::OutOfMemory.into(),
    })?;
    for run in blocks.chunk_by(|a, b| a.0 + 1 == b.0) {
        for part in run.chunks(READ_BYTES / unit) {
            let bytes = part.len() * unit;
            let offset = part[0].0 * unit as u64 - addresses.start;
            read_exact_at(file, &mut memory[..bytes], offset).map_err(|source| WorkloadError::System {
                action: format!("read {} back", path.display()),
                source,
            })?;
            for ((block, write), piece) in part.iter().zip(memory[..bytes].chunks(unit)) {
                found.blocks += 1;
                let (wanted, is) = (Stamp { block: *block, write: *write }, Stamp::of(piece));
                if wanted != is {
                    found.wrong += 1;
                    found.first_wrong.get_or_insert_with(|| {
                        format!(
                            "{} at {}: written last by write {write}, and holds block {} of write {}",
                            path.display(),
                            block * unit as u64 - addresses.start,
                            is.block,
                            is.write
                        )
                    });
                }
            }
        }
    }
    pool.give_back(memory);
    Ok(())
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
