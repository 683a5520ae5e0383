//! Location and classification of wrong bytes by rereading: with direct I/O, through the page
//! cache, and after dropping the cache.
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use keepup_results::{SoakFile, SoakKind, SoakMismatch, SoakOrigin, SoakPlace, SoakRange};
use keepup_sys::file::{Access, forget_cached, open_to_read, read_upto_at};

use crate::error::{SoakError, system};
use crate::stamp::{PAGE_BYTES, Stamp, different_bits, judge};

/// Listed wrong ranges per file; further ones are only counted.
const RANGES_MAX: usize = 16;
/// Reread pieces per file.
const PIECES_MAX: usize = 4;
/// Direct rereads per piece.
const DIRECT_AGAIN: usize = 3;
/// Bytes of a range quoted in the result.
const SHOWN_BYTES: usize = 16;
/// Largest gap between wrong bytes of one range.
const GAP_BYTES: usize = 16;
/// Up to this many wrong bits in a range, or one in sixteen, count as bit flips.
const FLIPPED_BITS: u64 = 4;

/// Outcome of a reread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Right,
    SameWrong,
    OtherWrong,
    Failed(String),
}

/// Mismatch of one file under investigation.
#[derive(Debug)]
pub(crate) struct Finding {
    mismatch: SoakMismatch,
    pieces: usize,
}

/// A piece of a file that differs from what was written.
pub(crate) struct Piece<'a> {
    /// Offset in the file, bytes.
    pub(crate) offset: u64,
    /// Expected content.
    pub(crate) expected: &'a [u8],
    /// Content as read.
    pub(crate) found: &'a [u8],
}

impl Finding {
    pub(crate) fn new(turn: u64, volume: &Path, file: &Path, what: SoakFile, way: String) -> Self {
        let mismatch = SoakMismatch {
            turn,
            volume: volume.display().to_string(),
            file: file.display().to_string(),
            what,
            way,
            ranges: Vec::new(),
            kinds: BTreeMap::new(),
            bytes: 0,
            bits: 0,
            place: None,
            rereads: Vec::new(),
            kept: None,
        };
        Self { mismatch, pieces: 0 }
    }

    /// Counts ranges and lists the first ones.
    pub(crate) fn add(&mut self, ranges: Vec<SoakRange>, piece: Option<&Piece<'_>>) {
        for range in ranges {
            *self.mismatch.kinds.entry(range.kind).or_default() += 1;
            if self.mismatch.ranges.len() < RANGES_MAX {
                self.mismatch.ranges.push(range);
            }
        }
        if let Some(Piece { expected, found, .. }) = piece {
            self.mismatch.bytes += expected.iter().zip(*found).filter(|(a, b)| a != b).count() as u64;
            self.mismatch.bits += different_bits(expected, found);
        }
    }

    /// Rereads the piece in every mode, with `buffer` for direct I/O.
    pub(crate) fn read_again(&mut self, path: &Path, piece: &Piece<'_>, buffer: &mut [u8]) {
        self.pieces += 1;
        if self.pieces > PIECES_MAX {
            return;
        }
        let mut look = |access, drops| look(path, piece, buffer, access, drops);
        let direct: Vec<Seen> =
            std::iter::repeat_with(|| look(Access::Direct, false)).take(DIRECT_AGAIN).collect();
        let cached = look(Access::Buffered, false);
        let dropped = look(Access::Buffered, true);
        // A file's location is that of its most persistent damage.
        self.mismatch.place = self.mismatch.place.max(fault_location(&direct, &cached, &dropped));
        if self.mismatch.rereads.is_empty() {
            let labelled = |way: &str, seen: &Seen| format!("{way}: {}", seen.text());
            self.mismatch.rereads = direct.iter().map(|seen| labelled("direct", seen)).collect();
            self.mismatch.rereads.push(labelled("through the cache", &cached));
            self.mismatch.rereads.push(labelled("after dropping the cache", &dropped));
        }
    }

    /// Adds a mismatch of the file length.
    pub(crate) fn add_length(&mut self, expected: u64, found: u64) {
        let (offset, bytes) = (expected.min(found), expected.abs_diff(found));
        let none = String::new;
        let (kind, bits) = (SoakKind::Length, 0);
        let range = SoakRange {
            offset,
            bytes,
            bits,
            kind,
            expected: none(),
            found: none(),
            xor: none(),
            origin: None,
        };
        self.add(vec![range], None);
        self.mismatch.bytes += bytes;
    }

    /// Whether the damage may be persistent, so that the file should be kept.
    pub(crate) fn is_lasting(&self) -> bool {
        !matches!(self.mismatch.place, Some(SoakPlace::Path | SoakPlace::Cache))
    }

    pub(crate) fn end(mut self, kept: Option<&Path>) -> SoakMismatch {
        self.mismatch.kept = kept.map(|path| path.display().to_string());
        self.mismatch
    }
}

impl Seen {
    fn text(&self) -> &str {
        match self {
            Self::Right => "right",
            Self::SameWrong => "the same wrong bytes",
            Self::OtherWrong => "other wrong bytes",
            Self::Failed(why) => why,
        }
    }
}

fn look(path: &Path, piece: &Piece<'_>, buffer: &mut [u8], access: Access, drops: bool) -> Seen {
    let wanted = piece.expected.len();
    let mut read = || -> Result<usize, SoakError> {
        let file = open_to_read(path, access)?;
        if drops {
            forget_cached(&file, path)?;
        }
        let whole = wanted.next_multiple_of(PAGE_BYTES).min(buffer.len());
        let action = format!("read {}", path.display());
        read_upto_at(&file, &mut buffer[..whole], wanted, piece.offset).map_err(system(&action))
    };
    match read() {
        Err(why) => Seen::Failed(why.to_string()),
        Ok(read) if read < wanted => Seen::OtherWrong,
        Ok(_) if buffer[..wanted] == *piece.expected => Seen::Right,
        Ok(_) if buffer[..wanted] == *piece.found => Seen::SameWrong,
        Ok(_) => Seen::OtherWrong,
    }
}

/// Location of wrong bytes, from the outcome of the rereads; unknown if no reread bypassed the
/// cache.
pub(crate) fn fault_location(direct: &[Seen], cached: &Seen, dropped: &Seen) -> Option<SoakPlace> {
    let past: Vec<&Seen> =
        direct.iter().chain([dropped]).filter(|seen| !matches!(seen, Seen::Failed(_))).collect();
    let all = |wanted: Seen| past.iter().all(|seen| **seen == wanted);
    Some(match &past[..] {
        [] => return None,
        _ if all(Seen::SameWrong) => SoakPlace::Medium,
        _ if all(Seen::Right) && matches!(cached, Seen::SameWrong | Seen::OtherWrong) => SoakPlace::Cache,
        _ if past.contains(&&Seen::Right) => SoakPlace::Path,
        _ => SoakPlace::Unsteady,
    })
}

/// Ranges of differing bytes, with small gaps merged.
fn runs(expected: &[u8], found: &[u8]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let differ = expected.iter().zip(found).enumerate().filter(|(_, (a, b))| a != b);
    for (at, _) in differ {
        match runs.last_mut() {
            Some(last) if at < last.end + GAP_BYTES => last.end = at + 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}

/// Result entry of one wrong range.
fn describe_range(
    piece: &Piece<'_>,
    within: Range<usize>,
    kind: SoakKind,
    origin: Option<SoakOrigin>,
) -> SoakRange {
    let (expected, found) = (&piece.expected[within.clone()], &piece.found[within.clone()]);
    let hex = |bytes: &mut dyn Iterator<Item = u8>| -> String {
        bytes.take(SHOWN_BYTES).map(|byte| format!("{byte:02x}")).collect()
    };
    SoakRange {
        offset: piece.offset + within.start as u64,
        bytes: within.len() as u64,
        bits: different_bits(expected, found),
        kind,
        expected: hex(&mut expected.iter().copied()),
        found: hex(&mut found.iter().copied()),
        xor: hex(&mut expected.iter().zip(found).map(|(a, b)| a ^ b)),
        origin,
    }
}

/// Wrong ranges of a piece without stamps.
pub(crate) fn plain_ranges(piece: &Piece<'_>) -> Vec<SoakRange> {
    let each = runs(piece.expected, piece.found).into_iter().map(|run| {
        let (expected, found) = (&piece.expected[run.clone()], &piece.found[run.clone()]);
        let bits = different_bits(expected, found);
        let kind = match () {
            () if bits <= FLIPPED_BITS || bits * 16 <= 8 * run.len() as u64 => SoakKind::Flipped,
            () if found.iter().all(|byte| *byte == 0) => SoakKind::Blank,
            () => SoakKind::Foreign,
        };
        describe_range(piece, run, kind, None)
    });
    each.collect()
}

/// Wrong ranges of stamped pages that belong to `stamp`: bit flips as byte ranges, other kinds page
/// by page, with consecutive pages of consecutive origin merged.
pub(crate) fn stamped_ranges(piece: &Piece<'_>, stamp: Stamp, previous: u64) -> Vec<SoakRange> {
    let mut found: Vec<(Range<usize>, SoakKind, Option<SoakOrigin>)> = Vec::new();
    for at in (0..piece.found.len()).step_by(PAGE_BYTES) {
        let end = (at + PAGE_BYTES).min(piece.found.len());
        let here = Stamp { offset: stamp.offset + at as u64, ..stamp };
        let Some(verdict) = judge(&piece.found[at..end], here, previous) else { continue };
        let wrong = runs(&piece.expected[at..end], &piece.found[at..end]);
        let shifted = wrong.into_iter().map(|run| run.start + at..run.end + at);
        if verdict.kind == SoakKind::Flipped {
            found.extend(shifted.map(|run| (run, verdict.kind, None)));
            continue;
        }
        let span = shifted.reduce(|all, run| all.start..run.end).unwrap_or(at..end);
        match found.last_mut() {
            Some((last, kind, origin))
                if *kind == verdict.kind && follows(last, at, *origin, verdict.origin) =>
            {
                last.end = span.end;
            }
            _ => found.push((span, verdict.kind, verdict.origin)),
        }
    }
    found.into_iter().map(|(within, kind, origin)| describe_range(piece, within, kind, origin)).collect()
}

/// Whether a bad page at `at` continues the range `last`.
fn follows(last: &Range<usize>, at: usize, before: Option<SoakOrigin>, origin: Option<SoakOrigin>) -> bool {
    // The last wrong byte of a page may be before its last byte.
    let first_page = last.start / PAGE_BYTES * PAGE_BYTES;
    let is_next = last.end.next_multiple_of(PAGE_BYTES) == at;
    is_next
        && match (before, origin) {
            (Some(before), Some(now)) => {
                let is_same = |a: SoakOrigin, b: SoakOrigin| {
                    (a.is_ours, a.file, a.generation) == (b.is_ours, b.file, b.generation)
                };
                // The first wrong sector of a page may be after its first.
                let wanted = before.offset + (at - first_page) as u64;
                is_same(before, now) && wanted.abs_diff(now.offset) < PAGE_BYTES as u64
            }
            (before, origin) => before == origin,
        }
}

#[cfg(test)]
#[path = "locate_tests.rs"]
mod tests;
