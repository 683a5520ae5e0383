//! Stamping turn: rewrites every page of a file in place with the next generation's stamps,
//! flushes, reads it back in a different order bypassing the page cache, and classifies it.
//!
//! Because the file is reused, a lost write shows the previous generation, a misplaced write shows
//! another position's stamp, and a torn write shows both.
use std::path::PathBuf;

use keepup_results::SoakFile;

use crate::error::SoakError;
use crate::locate::{Finding, Piece, stamped_ranges};
use crate::piece::{PIECE_BYTES, piece_bytes};
use crate::stamp::{Stamp, mix};
use crate::turn::{Blocks, Part, Turn};

/// The stamped file of a volume.
#[derive(Debug)]
pub(crate) struct Stamped {
    pub(crate) volume: PathBuf,
    pub(crate) path: PathBuf,
    /// Size, in whole pages.
    pub(crate) bytes: u64,
    /// Number of the soak.
    pub(crate) run: u64,
    /// Number of the file.
    pub(crate) number: u64,
    /// Current generation; 0 before the first.
    pub(crate) generation: u64,
}

/// Writes and checks one generation; false if interrupted.
pub(crate) fn stamp_once(
    file: &mut Stamped,
    blocks: &mut Blocks,
    turn: &mut Turn<'_>,
) -> Result<bool, SoakError> {
    let previous = file.generation;
    let stamp = Stamp { run: file.run, file: file.number, offset: 0, generation: turn.number };
    let open = turn.open_to_write(&file.path)?;
    for offset in (0..file.bytes).step_by(PIECE_BYTES) {
        if turn.should_stop() {
            return Ok(false);
        }
        let bytes = piece_bytes(file.bytes, offset);
        turn.timed(Part::Source, bytes, || {
            Stamp { offset, ..stamp }.fill(&mut blocks.expected[..bytes]);
        });
        turn.write_piece((&open, &file.path), &mut blocks.expected, bytes, offset)?;
    }
    turn.end_writing(open, &file.path, file.bytes)?;
    file.generation = stamp.generation;
    read_generation(file, stamp, previous, blocks, turn)
}

fn read_generation(
    file: &mut Stamped,
    stamp: Stamp,
    previous: u64,
    blocks: &mut Blocks,
    turn: &mut Turn<'_>,
) -> Result<bool, SoakError> {
    let mut finding = None;
    let outcome = read_pieces(file, (stamp, previous), blocks, turn, &mut finding);
    if let Some(finding) = finding {
        let place = finding.is_lasting().then(|| turn.path_for_damaged(&file.volume)).flatten();
        let kept = place.filter(|place| std::fs::rename(&file.path, place).is_ok());
        turn.note(finding.end(kept.as_deref()))?;
        if kept.is_some() {
            file.make()?;
        }
    }
    outcome
}

fn read_pieces(
    file: &Stamped,
    (stamp, previous): (Stamp, u64),
    blocks: &mut Blocks,
    turn: &mut Turn<'_>,
    finding: &mut Option<Finding>,
) -> Result<bool, SoakError> {
    let open = turn.open_to_read(&file.path)?;
    for offset in shuffled(file.bytes, mix(stamp.run, stamp.generation)) {
        if turn.should_stop() {
            return Ok(false);
        }
        let bytes = piece_bytes(file.bytes, offset);
        turn.read_piece((&open, &file.path), &mut blocks.found, bytes, offset, true)?;
        let here = Stamp { offset, ..stamp };
        let (expected, found) = (&mut blocks.expected[..bytes], &blocks.found[..bytes]);
        let is_right = turn.timed(Part::Compare, bytes, || {
            here.fill(expected);
            *expected == *found
        });
        if !is_right {
            let piece = Piece { offset, expected, found };
            let finding = finding.get_or_insert_with(|| {
                let way = turn.mode.to_string();
                Finding::new(turn.number, &file.volume, &file.path, SoakFile::Stamped, way)
            });
            finding.add(stamped_ranges(&piece, here, previous), Some(&piece));
            finding.read_again(&file.path, &piece, &mut blocks.again);
        }
    }
    turn.totals.files += 1;
    Ok(true)
}

impl Stamped {
    /// Creates the file without a generation.
    pub(crate) fn make(&mut self) -> Result<(), SoakError> {
        self.generation = 0;
        keepup_sys::file::create_preallocated(&self.path, self.bytes)?;
        Ok(())
    }
}

/// Offsets of all pieces of a file of `bytes`, in an order determined by `seed`.
fn shuffled(bytes: u64, seed: u64) -> Vec<u64> {
    let mut offsets: Vec<u64> = (0..bytes).step_by(PIECE_BYTES).collect();
    let mut state = seed;
    // Fisher-Yates shuffle.
    for last in (1..offsets.len()).rev() {
        state = mix(state, last as u64);
        offsets.swap(last, (state % (last as u64 + 1)) as usize);
    }
    offsets
}

#[cfg(test)]
#[path = "stamped_tests.rs"]
mod tests;
