//! Sectors that say where they belong, and what is to be thought of a page whose sectors say something else.
//!
//! Each sector of 512 bytes has: 8 bytes magic, run, file, offset, generation (8 bytes each, little endian),
//! 468 bytes that follow from these, CRC-32 of all before it. Invariants: pure; the contents of a place
//! follow from its stamp, so every byte that is wrong is known; any bytes at all can be judged.
use keepup_recording::crc::crc32;
use keepup_results::{SoakKind, SoakOrigin};

use crate::data::{SEED, fill_random};

/// The unit that a disk writes whole or not at all, in bytes.
pub const SECTOR_BYTES: usize = 512;
/// The unit that is judged, in bytes.
pub const PAGE_BYTES: usize = 4096;
const MAGIC: [u8; 8] = *b"KUSTAMP1";
const HEAD_BYTES: usize = 40;
const CRC_AT: usize = SECTOR_BYTES - 4;
/// A sector with at most so many wrong bits is the right one, damaged: one that belongs elsewhere differs in
/// about 1800 of its 4096 bits.
const FLIPPED_BITS_MAX: u64 = 64;

/// Where and when contents belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The soak.
    pub run: u64,
    /// Number of the file.
    pub file: u64,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Number of the write, from 1; 0 stands for what was there before the first: zeros.
    pub generation: u64,
}

/// What is wrong with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What it looks like.
    pub kind: SoakKind,
    /// What the first wrong sector says of itself, where that can be believed.
    pub origin: Option<SoakOrigin>,
}

/// What a sector is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sector {
    Good,
    Torn,
    Flipped,
    Blank,
    Stale(Stamp),
    Misplaced(Stamp),
    Foreign(Option<Stamp>),
}

impl Stamp {
    /// Writes what belongs here into `sector`, of [`SECTOR_BYTES`].
    fn fill_sector(self, sector: &mut [u8]) {
        if self.generation == 0 {
            return sector.fill(0);
        }
        let fields = [self.run, self.file, self.offset, self.generation];
        sector[..8].copy_from_slice(&MAGIC);
        for (at, field) in (8..).step_by(8).zip(fields) {
            sector[at..at + 8].copy_from_slice(&field.to_le_bytes());
        }
        let seed = fields.into_iter().fold(SEED, mix);
        fill_random(&mut sector[HEAD_BYTES..CRC_AT], seed | 1);
        let crc = crc32(&sector[..CRC_AT]);
        sector[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
    }

    /// Writes what belongs from here on into `bytes`, whole sectors.
    pub fn fill(self, bytes: &mut [u8]) {
        for (at, sector) in bytes.chunks_exact_mut(SECTOR_BYTES).enumerate() {
            self.at_sector(at).fill_sector(sector);
        }
    }

    /// What a sector says of itself; nothing unless its checksum is right.
    pub fn read(sector: &[u8]) -> Option<Self> {
        let sector = sector.get(..SECTOR_BYTES)?;
        let crc = crc32(&sector[..CRC_AT]).to_le_bytes();
        if sector[..8] != MAGIC || sector[CRC_AT..] != crc {
            return None;
        }
        let mut fields =
            sector[8..HEAD_BYTES].as_chunks::<8>().0.iter().map(|field| u64::from_le_bytes(*field));
        let mut next = || fields.next();
        Some(Self { run: next()?, file: next()?, offset: next()?, generation: next()? })
    }

    fn at_sector(self, number: usize) -> Self {
        Self { offset: self.offset + (number * SECTOR_BYTES) as u64, ..self }
    }

    fn origin(self, expected: Self) -> SoakOrigin {
        let is_ours = self.run == expected.run;
        SoakOrigin { is_ours, file: self.file, offset: self.offset, generation: self.generation }
    }
}

/// Another state for the generator, far from the last.
pub(super) fn mix(state: u64, value: u64) -> u64 {
    // splitmix64's finaliser.
    let mut z = state.wrapping_add(value).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Bits in which `a` and `b` differ.
pub(super) fn different_bits(a: &[u8], b: &[u8]) -> u64 {
    a.iter().zip(b).map(|(a, b)| u64::from((a ^ b).count_ones())).sum()
}

/// Judges a page that should hold what `expected` says, and that held what belongs to generation `previous`
/// before (0: nothing but zeros). Nothing for a page that is right.
pub fn judge(page: &[u8], expected: Stamp, previous: u64) -> Option<Verdict> {
    let sectors: Vec<Sector> = page
        .chunks_exact(SECTOR_BYTES)
        .enumerate()
        .map(|(at, sector)| judge_sector(sector, expected.at_sector(at), previous))
        .collect();
    let worst = sectors.iter().copied().max_by_key(|sector| rank(*sector))?;
    if worst == Sector::Good {
        return None;
    }
    let origin = match worst {
        Sector::Stale(stamp) | Sector::Misplaced(stamp) | Sector::Foreign(Some(stamp)) => {
            // The first of the page, not the last of several.
            let first = sectors.iter().find_map(|sector| match (sector, worst) {
                (Sector::Stale(first), Sector::Stale(_)) => Some(*first),
                (Sector::Misplaced(first), Sector::Misplaced(_)) => Some(*first),
                _ => None,
            });
            Some(first.unwrap_or(stamp).origin(expected))
        }
        _ => None,
    };
    let kind = match worst {
        Sector::Stale(_) | Sector::Blank if is_mixture(&sectors, previous) => SoakKind::Torn,
        Sector::Torn | Sector::Good => SoakKind::Torn,
        Sector::Flipped => SoakKind::Flipped,
        Sector::Blank => SoakKind::Blank,
        Sector::Stale(_) => SoakKind::Stale,
        Sector::Misplaced(_) => SoakKind::Misplaced,
        Sector::Foreign(_) => SoakKind::Foreign,
    };
    Some(Verdict { kind, origin })
}

/// Which kind of bad sector names the page, when there are several.
fn rank(sector: Sector) -> u8 {
    match sector {
        Sector::Good => 0,
        Sector::Flipped => 1,
        Sector::Blank => 2,
        Sector::Stale(_) => 3,
        Sector::Torn => 4,
        Sector::Foreign(_) => 5,
        Sector::Misplaced(_) => 6,
    }
}

/// Whether the page has parts of several writes of its own place and nothing else.
fn is_mixture(sectors: &[Sector], previous: u64) -> bool {
    let generations: Option<std::collections::BTreeSet<u64>> = sectors
        .iter()
        .map(|sector| match sector {
            // A tear in a sector's last bytes looks like a few flips.
            Sector::Good | Sector::Flipped => Some(u64::MAX),
            Sector::Stale(stamp) => Some(stamp.generation),
            // Zeros are what was there before the first write.
            Sector::Blank if previous == 0 => Some(0),
            _ => None,
        })
        .collect();
    generations.is_some_and(|generations| generations.len() > 1)
}

fn judge_sector(sector: &[u8], expected: Stamp, previous: u64) -> Sector {
    let mut right = [0; SECTOR_BYTES];
    expected.fill_sector(&mut right);
    if sector == right {
        return Sector::Good;
    }
    if let Some(stamp) = Stamp::read(sector) {
        let is_here = (stamp.file, stamp.offset) == (expected.file, expected.offset);
        return match stamp.run == expected.run {
            true if is_here && stamp.generation < expected.generation => Sector::Stale(stamp),
            true if !is_here => Sector::Misplaced(stamp),
            _ => Sector::Foreign(Some(stamp)),
        };
    }
    if sector.iter().all(|byte| *byte == 0) {
        return Sector::Blank;
    }
    if different_bits(sector, &right) <= FLIPPED_BITS_MAX {
        return Sector::Flipped;
    }
    let mut older = [0; SECTOR_BYTES];
    Stamp { generation: previous, ..expected }.fill_sector(&mut older);
    match is_joined(sector, &right, &older) || is_joined(sector, &older, &right) {
        true => Sector::Torn,
        false => Sector::Foreign(None),
    }
}

/// Whether `sector` begins as `front` and goes on as `back`.
fn is_joined(sector: &[u8], front: &[u8], back: &[u8]) -> bool {
    let same = sector.iter().zip(front).take_while(|(a, b)| a == b).count();
    same > 0 && sector[same..] == back[same..]
}

#[cfg(test)]
#[path = "stamp_tests.rs"]
mod tests;
