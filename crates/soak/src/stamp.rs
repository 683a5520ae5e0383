//! Self-describing sectors, and classification of pages with wrong sectors.
//!
//! Layout of a 512-byte sector: magic (8 bytes), run, file, offset, generation (8 bytes each,
//! little endian), 468 bytes derived from these, CRC-32 of all before. Invariants: pure; the
//! content follows from the stamp, so every wrong byte is known; any input can be judged.
use keepup_measure::sum::Sums;
use keepup_recording::crc::crc32;
use keepup_results::{SoakKind, SoakOrigin};
use keepup_workload::random_data::{SEED, fill_random};

/// Atomic write unit of a disk, bytes.
pub const SECTOR_BYTES: usize = 512;
/// Unit of classification, bytes.
pub const PAGE_BYTES: usize = 4096;
const MAGIC: [u8; 8] = *b"KUSTAMP1";
const HEAD_BYTES: usize = 40;
const CRC_AT: usize = SECTOR_BYTES - 4;
/// Maximum number of wrong bits for a damaged but correctly placed sector; a misplaced one differs
/// in about 1800 of its 4096 bits.
const FLIPPED_BITS_MAX: u64 = 64;

/// Position and generation of a sector's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Number of the soak.
    pub run: u64,
    /// Number of the file.
    pub file: u64,
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Number of the write, from 1; 0 means the initial zeros.
    pub generation: u64,
}

/// Finding about a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Classification.
    pub kind: SoakKind,
    /// Stamp of the first wrong sector, if valid.
    pub origin: Option<SoakOrigin>,
}

/// Classification of a sector.
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
    /// Writes the content of this stamp to `sector`, of [`SECTOR_BYTES`].
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

    /// Writes the content from this stamp on to `bytes`, whole sectors.
    pub fn fill(self, bytes: &mut [u8]) {
        for (at, sector) in bytes.chunks_exact_mut(SECTOR_BYTES).enumerate() {
            self.at_sector(at).fill_sector(sector);
        }
    }

    /// Stamp of a sector; none unless its checksum is correct.
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

/// Mixes a value into a generator state.
pub(crate) fn mix(state: u64, value: u64) -> u64 {
    // Finalizer of splitmix64.
    let mut z = state.wrapping_add(value).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Number of differing bits.
pub(crate) fn different_bits(a: &[u8], b: &[u8]) -> u64 {
    a.iter().zip(b).map(|(a, b)| u64::from((a ^ b).count_ones())).saturating_sum()
}

/// Classifies a page that should have the content of `expected` and had that of generation `previous`
/// before (0: zeros). None for a correct page.
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
            // First wrong sector of the page.
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

/// Precedence of sector classes for the classification of a page.
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

/// Whether the page consists only of parts of several writes to its own position.
fn is_mixture(sectors: &[Sector], previous: u64) -> bool {
    let generations: Option<std::collections::BTreeSet<u64>> = sectors
        .iter()
        .map(|sector| match sector {
            // A tear in the last bytes of a sector looks like a few bit flips.
            Sector::Good | Sector::Flipped => Some(u64::MAX),
            Sector::Stale(stamp) => Some(stamp.generation),
            // Zeros are the content before the first write.
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

/// Whether `sector` starts as `front` and ends as `back`.
fn is_joined(sector: &[u8], front: &[u8], back: &[u8]) -> bool {
    let same = sector.iter().zip(front).take_while(|(a, b)| a == b).count();
    same > 0 && sector[same..] == back[same..]
}

#[cfg(test)]
#[path = "stamp_tests.rs"]
mod tests;
