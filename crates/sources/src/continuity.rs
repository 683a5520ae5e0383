//! Order and identity of the numbered images of a stream: which is next, which waits for earlier ones, and
//! which has arrived before.
//!
//! An image that arrives early is held until those before it have arrived, too many are held, or nothing
//! arrives for a while. Invariant: the memory of held and of known images is bounded.
use std::collections::{BTreeMap, VecDeque};

/// Most images that wait for earlier ones.
const HELD_MAX: usize = 64;
/// Most bytes of images that wait for earlier ones.
const HELD_BYTES_MAX: usize = 64 << 20;
/// Longest wait for an earlier image, ns.
const WAIT_NS: u64 = 2_000_000_000;
/// Most images whose content is known: the last ones that were handed out.
const KNOWN_MAX: usize = 1 << 16;

/// Place of an image in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It continues the stream.
    Next,
    /// Images before it have not arrived.
    Early,
    /// An image with its number is held.
    Held,
    /// An image with its number and this digest was handed out.
    Known(u64),
    /// Later images were handed out. This one was not, or it was too long ago.
    Late,
}

/// Order of a stream of images, each held with a `T`.
#[derive(Debug)]
pub(crate) struct Continuity<T> {
    /// Number of the image that continues the stream.
    next: u64,
    held: BTreeMap<u64, (usize, T)>,
    held_bytes: usize,
    /// Number and digest of images that were handed out, in ascending order.
    known: VecDeque<(u64, u64)>,
    /// Whether all that is held is due.
    is_released: bool,
    /// Since when the next image continues the stream although images before it are missing: the number
    /// behind everything that had arrived.
    lost_at: Option<u64>,
    /// Since when images wait, monotonic ns.
    waiting_since_ns: Option<u64>,
}

impl<T> Continuity<T> {
    /// A stream whose first image has the number 0.
    pub(crate) fn new() -> Self {
        Self {
            next: 0,
            held: BTreeMap::new(),
            held_bytes: 0,
            known: VecDeque::new(),
            is_released: false,
            lost_at: None,
            waiting_since_ns: None,
        }
    }

    /// Number of the image that continues the stream.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Number behind everything that was handed out or is held.
    pub(crate) fn end(&self) -> u64 {
        self.held.last_key_value().map_or(self.next, |(last, _)| last.saturating_add(1)).max(self.next)
    }

    /// Whether it is still known if an image with this number was handed out.
    pub(crate) fn remembers(&self, number: u64) -> bool {
        self.known.front().is_some_and(|(first, _)| *first <= number)
    }

    /// Place of an image that has arrived.
    pub(crate) fn place(&self, number: u64) -> Place {
        if self.held.contains_key(&number) {
            return Place::Held;
        }
        if number == self.next || (number > self.next && self.is_after_loss() && self.held.is_empty()) {
            return Place::Next;
        }
        if number > self.next {
            return Place::Early;
        }
        let known = self.known.binary_search_by_key(&number, |(number, _)| *number);
        known.ok().and_then(|at| self.known.get(at)).map_or(Place::Late, |(_, digest)| Place::Known(*digest))
    }

    /// Holds an image of `bytes`.
    pub(crate) fn hold(&mut self, number: u64, bytes: usize, image: T) {
        self.held_bytes = self.held_bytes.saturating_add(bytes);
        self.held.insert(number, (bytes, image));
    }

    /// An image that is held.
    pub(crate) fn held(&self, number: u64) -> Option<&T> {
        self.held.get(&number).map(|(_, image)| image)
    }

    /// Whether the first image that is held is due.
    pub(crate) fn has_due(&self) -> bool {
        let is_crowded = self.held.len() > HELD_MAX || self.held_bytes > HELD_BYTES_MAX;
        let first = self.held.first_key_value();
        first.is_some_and(|(number, _)| self.is_released || is_crowded || *number == self.next)
    }

    /// Takes the first image that is held, if it is due.
    pub(crate) fn take_due(&mut self) -> Option<(u64, T)> {
        if !self.has_due() {
            return None;
        }
        let (number, (bytes, image)) = self.held.pop_first()?;
        self.held_bytes = self.held_bytes.saturating_sub(bytes);
        Some((number, image))
    }

    /// An image was handed out.
    pub(crate) fn handed_out(&mut self, number: u64, digest: u64) {
        (self.next, self.waiting_since_ns) = (number.saturating_add(1), None);
        self.lost_at = self.lost_at.filter(|lost_at| number < *lost_at);
        self.is_released &= !self.held.is_empty();
        if self.known.len() == KNOWN_MAX {
            self.known.pop_front();
        }
        self.known.push_back((number, digest));
    }

    /// Images before the next one are lost: it does not wait for them.
    pub(crate) fn after_loss(&mut self) {
        self.lost_at = Some(self.end());
    }

    /// Whether no image has been handed out that arrived after a loss.
    pub(crate) fn is_after_loss(&self) -> bool {
        self.lost_at.is_some()
    }

    /// All that is held is due.
    pub(crate) fn release(&mut self) {
        self.is_released = !self.held.is_empty();
    }

    /// Releases what has waited for too long at `now_ns`, monotonic ns.
    pub(crate) fn tick(&mut self, now_ns: u64) {
        if self.held.is_empty() {
            self.waiting_since_ns = None;
        } else if now_ns.saturating_sub(*self.waiting_since_ns.get_or_insert(now_ns)) >= WAIT_NS {
            self.release();
        }
    }
}

/// Adds a part of an image to its digest: the part's index, checksum and length. The order of the parts makes
/// no difference.
pub(crate) fn mix(digest: u64, part: usize, crc: u32, bytes: usize) -> u64 {
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    let content = (u64::from(crc) << 32) ^ bytes as u64;
    digest.wrapping_add(content.wrapping_mul(ODD).rotate_left((part % 64) as u32 * 11))
}

#[cfg(test)]
#[path = "continuity_tests.rs"]
mod tests;
