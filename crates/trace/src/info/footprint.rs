//! Distinct bytes accessed: a bitmap of pages, in regions allocated on first access.
//!
//! Invariant: at most [`REGIONS_MAX`] regions, 34 MB. When another one is needed, the page size doubles,
//! and a page counts if one of its halves did. The result is an upper bound, in pages of a known size.
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use keepup_measure::sum::Sums;

use crate::mix::Mixer;

/// Initial page size, bytes.
const PAGE_BYTES: u64 = 4096;
/// Pages of a region.
const REGION_PAGES: u64 = 4096;
const WORDS: usize = (REGION_PAGES / 64) as usize;
const REGIONS_MAX: usize = 65_536;

/// Position of the device in a key, above the region number: 2^63 bytes have at most 2^39 regions.
const DEVICE_SHIFT: u32 = 48;
const DEVICE: u64 = u64::MAX << DEVICE_SHIFT;

type Region = [u64; WORDS];

/// The pages of all devices.
pub(super) struct Footprint {
    page_shift: u32,
    regions_max: usize,
    /// Index in `regions` by [`key`].
    places: HashMap<u64, usize, BuildHasherDefault<Mixer>>,
    regions: Vec<Region>,
    last: Option<(u64, usize)>,
}

impl Footprint {
    pub(super) fn new() -> Self {
        Self::of(REGIONS_MAX)
    }

    /// Creates a footprint with at most `regions_max` regions, at least one per device.
    pub(super) fn of(regions_max: usize) -> Self {
        let page_shift = PAGE_BYTES.trailing_zeros();
        Self { page_shift, regions_max, places: HashMap::default(), regions: Vec::new(), last: None }
    }

    /// Marks bytes `start` to `end` as accessed.
    #[inline]
    pub(super) fn mark(&mut self, device: u16, start: u64, end: u64) {
        let mut at = start;
        while at < end {
            let page = at >> self.page_shift;
            let (number, first) = (page / REGION_PAGES, page % REGION_PAGES);
            let last = ((end - 1) >> self.page_shift) - number * REGION_PAGES;
            let Some(place) = self.place(key(device, number)) else {
                // The page size has changed: compute the region again.
                self.grow();
                continue;
            };
            set(&mut self.regions[place], first as usize, last.min(REGION_PAGES - 1) as usize);
            let next = (number + 1) * REGION_PAGES;
            // An overflow is beyond the last region.
            at = next.checked_mul(1 << self.page_shift).unwrap_or(end);
        }
    }

    /// Index of a region, which is allocated if necessary; `None` at the limit.
    #[inline]
    fn place(&mut self, key: u64) -> Option<usize> {
        if let Some((_, place)) = self.last.filter(|(last, _)| *last == key) {
            return Some(place);
        }
        let place = match self.places.get(&key) {
            Some(place) => *place,
            None if self.regions.len() >= self.regions_max => return None,
            None => {
                self.regions.push([0; WORDS]);
                self.places.insert(key, self.regions.len() - 1);
                self.regions.len() - 1
            }
        };
        self.last = Some((key, place));
        Some(place)
    }

    /// Doubles the page size.
    #[cold]
    fn grow(&mut self) {
        self.last = None;
        self.page_shift += 1;
        let places = std::mem::take(&mut self.places);
        let old = std::mem::take(&mut self.regions);
        for (key, place) in places {
            let into = *self.places.entry((key & DEVICE) | ((key & !DEVICE) / 2)).or_insert_with(|| {
                self.regions.push([0; WORDS]);
                self.regions.len() - 1
            });
            let half = (key % 2) as usize * (WORDS / 2);
            for (word, pair) in old[place].as_chunks::<2>().0.iter().enumerate() {
                self.regions[into][half + word] |= halved(pair[0]) | halved(pair[1]) << 32;
            }
        }
    }

    /// Page size, bytes.
    pub(super) fn page_bytes(&self) -> u64 {
        1 << self.page_shift
    }

    /// Accessed pages of each of `devices` devices.
    pub(super) fn pages(&self, devices: usize) -> Vec<u64> {
        let mut pages = vec![0; devices];
        for (key, place) in &self.places {
            if let Some(count) = pages.get_mut((key >> DEVICE_SHIFT) as usize) {
                *count += self.regions[*place]
                    .iter()
                    .map(|word| u64::from(word.count_ones()))
                    .saturating_sum::<u64>();
            }
        }
        pages
    }
}

/// Key of a region.
#[inline]
fn key(device: u16, number: u64) -> u64 {
    u64::from(device) << DEVICE_SHIFT | number
}

/// Sets bits `first` to `last`.
#[inline]
fn set(region: &mut Region, first: usize, last: usize) {
    let (low, high) = (u64::MAX << (first % 64), u64::MAX >> (63 - last % 64));
    let (start, end) = (first / 64, last / 64);
    if start == end {
        region[start] |= low & high;
        return;
    }
    region[start] |= low;
    region[start + 1..end].fill(u64::MAX);
    region[end] |= high;
}

/// Combines each pair of bits with OR, into the lower half.
fn halved(word: u64) -> u64 {
    let mut bits = (word | word >> 1) & 0x5555_5555_5555_5555;
    for (shift, mask) in [
        (1, 0x3333_3333_3333_3333),
        (2, 0x0f0f_0f0f_0f0f_0f0f),
        (4, 0x00ff_00ff_00ff_00ff),
        (8, 0x0000_ffff_0000_ffff),
        (16, 0x0000_0000_ffff_ffff),
    ] {
        bits = (bits | bits >> shift) & mask;
    }
    bits
}

#[cfg(test)]
#[path = "footprint_tests.rs"]
mod tests;
