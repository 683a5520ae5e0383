//! Event payloads: slices of a pool of random bytes, stamped every 4 KiB so that all pages are
//! distinct.
//!
//! The pool fits a core's second-level cache, so that stamping, checksum and the kernel's copy
//! read from there. A stamp is 16 bytes, a one-to-one function of stream, sequence and page that
//! looks random: stamps that remain in the pool do not make it compressible. Compressed images come from
//! `images` instead. Invariants: slices of one batch do not overlap; no allocation after `new`.

use std::io::IoSlice;
use std::ops::Range;

use crc32fast::Hasher;

use super::event::{Event, PIECE_BYTES};
use super::images::Images;
use super::link::Framing;
use super::size::mix;
use crate::client::SLICES_MAX;
use crate::wire::{HEADER_BYTES, crc32};

/// Most events in one system call: each is a header and a payload.
pub(super) const BATCH_EVENTS_MAX: usize = SLICES_MAX / 2;
/// Most slices of a batch: the last event may have a trailer.
pub(super) const BATCH_SLICES_MAX: usize = 2 * BATCH_EVENTS_MAX + 1;
/// Most bytes of one system call with several events.
const BATCH_BYTES_MAX: u64 = 256 << 10;
/// Size of the random pool: fits the second-level cache of a common core.
pub(super) const POOL_BYTES: usize = 512 << 10;
/// The start of each pass through the pool varies below this, in steps of [`ALIGN`].
const JITTER_BYTES: usize = PAGE_BYTES;
pub(super) const PAGE_BYTES: usize = 4096;
/// Payloads start on cache lines.
pub(super) const ALIGN: usize = 64;
/// Pieces that fit the pool without overlap.
const PIECES_IN_POOL: usize = (POOL_BYTES - JITTER_BYTES) / PIECE_BYTES;
/// Largest event of random bytes with its payload in one slice.
const WHOLE_BYTES_MAX: u64 = (POOL_BYTES - JITTER_BYTES) as u64;

/// Builder of batches of events.
#[derive(Debug)]
pub(super) struct Fill {
    pool: Vec<u8>,
    /// Start of the next payload.
    cursor: usize,
    rng: fastrand::Rng,
    salt: u64,
    /// Header and trailer of each event.
    headers: Vec<u8>,
    /// End of each header. The trailer behind it is sent together with the next header.
    header_ends: Vec<usize>,
    payloads: Vec<Range<usize>>,
    batch_bytes: u64,
    /// Payloads of all events, if they are compressed images.
    images: Option<Images>,
}

impl Fill {
    pub(super) fn new(seed: u64, images: Option<Images>) -> Fill {
        let mut rng = fastrand::Rng::with_seed(mix(seed));
        let mut pool = vec![0u8; POOL_BYTES];
        rng.fill(&mut pool);
        Fill {
            pool,
            cursor: 0,
            salt: rng.u64(..),
            rng,
            headers: Vec::with_capacity(BATCH_EVENTS_MAX * HEADER_BYTES),
            header_ends: Vec::with_capacity(BATCH_EVENTS_MAX),
            payloads: Vec::with_capacity(BATCH_EVENTS_MAX),
            batch_bytes: 0,
            images,
        }
    }

    /// Whether the event is sent in pieces, not in a batch.
    pub(super) fn is_large(&self, event: &Event) -> bool {
        self.images.is_some() || event.bytes > WHOLE_BYTES_MAX
    }

    /// Starts a batch with a first event of `first_bytes`, which is not large.
    pub(super) fn begin(&mut self, first_bytes: u64) {
        self.headers.clear();
        self.header_ends.clear();
        self.payloads.clear();
        self.batch_bytes = 0;
        if first_bytes.max(BATCH_BYTES_MAX) > (self.pool.len() - self.cursor) as u64 {
            self.new_lap();
        }
    }

    /// Whether the batch has space for one more event; the first always fits.
    pub(super) fn fits(&self, bytes: u64) -> bool {
        let in_pool = bytes <= (self.pool.len() - self.cursor) as u64;
        let in_batch = self.payloads.len() < BATCH_EVENTS_MAX && self.batch_bytes + bytes <= BATCH_BYTES_MAX;
        in_pool && (in_batch || self.payloads.is_empty())
    }

    /// Adds an event that fits.
    pub(super) fn add(&mut self, event: &Event, timestamp_ns: u64, framing: &dyn Framing) {
        let bytes = event.bytes.saturating_sub(framing.bytes_in_header());
        let payload = self.cursor..self.cursor + bytes as usize;
        self.cursor = payload.end.next_multiple_of(ALIGN).min(self.pool.len());
        stamp(&mut self.pool[payload.clone()], self.salt, event, 0);
        let crc = if framing.has_checksum() { crc32(&self.pool[payload.clone()]) } else { 0 };
        framing.put_header(event, timestamp_ns, crc, &mut self.headers);
        self.header_ends.push(self.headers.len());
        framing.put_trailer(event, timestamp_ns, &mut self.headers);
        self.payloads.push(payload);
        self.batch_bytes += event.occupied_bytes();
    }

    /// Writes the batch to `out` as slices for the kernel; returns their number.
    pub(super) fn slices<'a>(&'a self, out: &mut [IoSlice<'a>; BATCH_SLICES_MAX]) -> usize {
        let parts = self.header_ends.iter().zip(&self.payloads);
        let mut start = 0;
        for ((&end, payload), pair) in parts.zip(out.chunks_exact_mut(2)) {
            pair[0] = IoSlice::new(&self.headers[start..end]);
            pair[1] = IoSlice::new(&self.pool[payload.clone()]);
            start = end;
        }
        let count = 2 * self.payloads.len();
        if start == self.headers.len() {
            return count;
        }
        out[count] = IoSlice::new(&self.headers[start..]);
        count + 1
    }

    /// Starts an event that is sent in pieces. Returns its header with the first bytes of its payload, and
    /// the number of these. The checksum comes first on the wire, so with one the pieces are stamped twice:
    /// for the checksum and for sending.
    pub(super) fn begin_large(
        &mut self,
        event: &Event,
        timestamp_ns: u64,
        framing: &dyn Framing,
    ) -> (Vec<u8>, u64) {
        self.new_lap();
        let first = self.images.as_ref().map_or(Vec::new(), |images| images.header().to_vec());
        let first_bytes = first.len() as u64;
        let mut hasher = Hasher::new();
        if framing.has_checksum() {
            hasher.update(&first);
            let mut from = first_bytes;
            while from < event.bytes {
                let piece = self.piece(event, from);
                hasher.update(piece);
                from += piece.len() as u64;
            }
        }
        let mut header = Vec::new();
        framing.put_header(event, timestamp_ns, hasher.finalize(), &mut header);
        header.extend_from_slice(&first);
        (header, first_bytes)
    }

    /// Piece of the large event started last that starts at byte `from`, where the one before it ended; valid
    /// until the next call.
    pub(super) fn piece(&mut self, event: &Event, from: u64) -> &[u8] {
        let Self { pool, cursor, salt, images, .. } = self;
        if let Some(images) = images {
            return images.piece(event, from);
        }
        let length = (event.bytes - from).min(PIECE_BYTES as u64) as usize;
        let start = *cursor + from as usize / PIECE_BYTES % PIECES_IN_POOL * PIECE_BYTES;
        let payload = &mut pool[start..start + length];
        stamp(payload, *salt, event, from / PAGE_BYTES as u64);
        payload
    }

    fn new_lap(&mut self) {
        self.cursor = self.rng.usize(..JITTER_BYTES / ALIGN) * ALIGN;
    }
}

/// Stamps each page of `payload`, which starts with page `first_page` of the event.
pub(super) fn stamp(payload: &mut [u8], salt: u64, event: &Event, first_page: u64) {
    let event_word = mix(event.sequence ^ salt);
    let stream_word = u64::from(event.stream) << 32;
    for (page, bytes) in (first_page..).zip(payload.chunks_mut(PAGE_BYTES)) {
        let first = mix(event_word ^ stream_word ^ page);
        let second = mix(event.sequence ^ first);
        let mut stamp = [0u8; 16];
        stamp[..8].copy_from_slice(&first.to_le_bytes());
        stamp[8..].copy_from_slice(&second.to_le_bytes());
        let length = bytes.len().min(stamp.len());
        bytes[..length].copy_from_slice(&stamp[..length]);
    }
}

#[cfg(test)]
#[path = "fill_tests.rs"]
mod tests;
