//! Copy turn: each reference is copied, flushed, read back bypassing the page cache, compared by
//! digest and removed.
//!
//! Source: script `biterrs` in the appendix of the CSL upgrade report, which copies three files,
//! compares the MD5 sum of each copy with that of its source, and repeats this 4000 times. A
//! checksum per piece locates errors while the wrong bytes are still in memory.
use std::os::fd::OwnedFd;
use std::path::Path;

use keepup_results::SoakFile;
use keepup_sys::file::{Access, open_to_read, read_upto_at};

use crate::error::{SoakError, system};
use crate::locate::{Finding, Piece, plain_ranges};
use crate::piece::{PIECE_BYTES, piece_bytes};
use crate::plan::DigestKind;
use crate::reference::Reference;
use crate::turn::{Blocks, Part, Turn};

/// Destination of a copy turn.
pub(crate) struct Target<'a> {
    pub(crate) volume: &'a Path,
    pub(crate) copy: &'a Path,
    pub(crate) digest: DigestKind,
}

/// Copies one reference and reads the copy back; false if interrupted. The copy is removed, or
/// renamed if it is to be kept.
pub(crate) fn copy_once(
    reference: &Reference,
    target: &Target<'_>,
    blocks: &mut Blocks,
    turn: &mut Turn<'_>,
) -> Result<bool, SoakError> {
    let outcome = match write_copy(reference, target, blocks, turn) {
        Ok(true) => read_copy(reference, target, blocks, turn),
        other => other,
    };
    match std::fs::remove_file(target.copy) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound && outcome.is_ok() => {
            Err(system(&format!("remove {}", target.copy.display()))(e))
        }
        _ => outcome,
    }
}

fn write_copy(
    reference: &Reference,
    target: &Target<'_>,
    blocks: &mut Blocks,
    turn: &mut Turn<'_>,
) -> Result<bool, SoakError> {
    let copy = turn.open_to_write(target.copy)?;
    let mut finding = None;
    let outcome = write_pieces(reference, (&copy, target), blocks, turn, &mut finding);
    if let Some(finding) = finding {
        turn.note(finding.end(None))?;
    }
    if outcome? {
        turn.end_writing(copy, target.copy, reference.bytes)?;
        return Ok(true);
    }
    Ok(false)
}

fn write_pieces(
    reference: &Reference,
    (copy, target): (&OwnedFd, &Target<'_>),
    blocks: &mut Blocks,
    turn: &mut Turn<'_>,
    finding: &mut Option<Finding>,
) -> Result<bool, SoakError> {
    let source = turn.timed(Part::Source, 0, || open_to_read(&reference.path, Access::Buffered))?;
    let action = format!("read the reference {}", reference.path.display());
    for offset in (0..reference.bytes).step_by(PIECE_BYTES) {
        if turn.should_stop() {
            return Ok(false);
        }
        let bytes = piece_bytes(reference.bytes, offset);
        let block = &mut blocks.expected;
        let is_right = turn.timed(Part::Source, bytes, || -> Result<bool, SoakError> {
            let read = read_upto_at(&source, &mut block[..bytes], bytes, offset).map_err(system(&action))?;
            block[read..bytes].fill(0);
            Ok(reference.is_piece(offset, &block[..bytes]))
        })?;
        if !is_right {
            let finding = finding.get_or_insert_with(|| {
                let way = "through the cache".to_owned();
                Finding::new(turn.number, target.volume, &reference.path, SoakFile::Reference, way)
            });
            // The copy is written from correct bytes, so that one fault is not counted twice.
            blocks.found[..bytes].copy_from_slice(&blocks.expected[..bytes]);
            if !reference.restore(offset, &mut blocks.expected[..bytes]) {
                let what = format!("its content at offset {offset} has changed permanently");
                return Err(SoakError::Reference { path: reference.path.clone(), what });
            }
            let piece = Piece { offset, expected: &blocks.expected[..bytes], found: &blocks.found[..bytes] };
            finding.add(plain_ranges(&piece), Some(&piece));
            finding.read_again(&reference.path, &piece, &mut blocks.again);
        }
        turn.write_piece((copy, target.copy), &mut blocks.expected, bytes, offset)?;
    }
    Ok(true)
}

fn read_copy(
    reference: &Reference,
    target: &Target<'_>,
    blocks: &mut Blocks,
    turn: &mut Turn<'_>,
) -> Result<bool, SoakError> {
    let mut finding = None;
    let outcome = read_pieces(reference, target, blocks, turn, &mut finding);
    if let Some(finding) = finding {
        let place = finding.is_lasting().then(|| turn.path_for_damaged(target.volume)).flatten();
        let kept = place.filter(|place| std::fs::rename(target.copy, place).is_ok());
        turn.note(finding.end(kept.as_deref()))?;
    }
    outcome
}

fn read_pieces(
    reference: &Reference,
    target: &Target<'_>,
    blocks: &mut Blocks,
    turn: &mut Turn<'_>,
    finding: &mut Option<Finding>,
) -> Result<bool, SoakError> {
    let copy = turn.open_to_read(target.copy)?;
    let number = turn.number;
    let way = turn.mode.to_string();
    let new = || Finding::new(number, target.volume, target.copy, SoakFile::Copy, way.clone());
    let looked = std::fs::metadata(target.copy);
    let length = looked.map_err(system(&format!("look at {}", target.copy.display())))?.len();
    if length != reference.bytes {
        finding.get_or_insert_with(new).add_length(reference.bytes, length);
    }
    let mut hasher = target.digest.hasher();
    for offset in (0..reference.bytes).step_by(PIECE_BYTES) {
        if turn.should_stop() {
            return Ok(false);
        }
        let bytes = piece_bytes(reference.bytes, offset);
        turn.read_piece((&copy, target.copy), &mut blocks.found, bytes, offset, false)?;
        let found = &blocks.found[..bytes];
        let is_right = turn.timed(Part::Compare, bytes, || {
            hasher.update(found);
            reference.is_piece(offset, found)
        });
        if !is_right && reference.restore(offset, &mut blocks.expected[..bytes]) {
            let piece = Piece { offset, expected: &blocks.expected[..bytes], found };
            let finding = finding.get_or_insert_with(new);
            finding.add(plain_ranges(&piece), Some(&piece));
            finding.read_again(target.copy, &piece, &mut blocks.again);
        }
    }
    turn.totals.files += 1;
    let digest = turn.timed(Part::Compare, 0, || hasher.end());
    if digest != reference.digest {
        // Also when no piece could be identified as wrong.
        finding.get_or_insert_with(new);
    }
    Ok(true)
}
