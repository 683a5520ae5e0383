//! Payloads that are equal each time an event is sent: a part of a pool of random bytes that never changes,
//! stamped every 4 KiB as in `fill`. Pure.
use crc32fast::Hasher;

use super::super::event::{Event, PIECE_BYTES};
use super::super::fill::{ALIGN, PAGE_BYTES, POOL_BYTES, stamp};
use super::super::size::mix;

/// Payloads of a connection group.
#[derive(Debug)]
pub(super) struct Payload {
    pool: Vec<u8>,
    salt: u64,
    scratch: Vec<u8>,
}

impl Payload {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(mix(seed));
        let mut pool = vec![0u8; POOL_BYTES];
        rng.fill(&mut pool);
        Self { pool, salt: rng.u64(..), scratch: Vec::with_capacity(PIECE_BYTES) }
    }

    /// Appends up to [`PIECE_BYTES`] of the payload, from byte `from`, which is a multiple of them. Returns
    /// where the next piece starts.
    pub(super) fn append(&self, event: &Event, from: u64, out: &mut Vec<u8>) -> u64 {
        append(&self.pool, self.salt, event, from, out)
    }

    /// Checksum of a whole payload.
    pub(super) fn crc(&mut self, event: &Event) -> u32 {
        let Self { pool, salt, scratch } = self;
        let (mut hasher, mut from) = (Hasher::new(), 0);
        while from < event.bytes {
            scratch.clear();
            from = append(pool, *salt, event, from, scratch);
            hasher.update(scratch);
        }
        hasher.finalize()
    }
}

fn append(pool: &[u8], salt: u64, event: &Event, from: u64, out: &mut Vec<u8>) -> u64 {
    let length = event.bytes.saturating_sub(from).min(PIECE_BYTES as u64) as usize;
    let begin =
        mix(event.sequence ^ salt).wrapping_add(u64::from(event.stream)) as usize % (POOL_BYTES / ALIGN);
    let position = (begin * ALIGN + (from % POOL_BYTES as u64) as usize) % POOL_BYTES;
    let start = out.len();
    let head = length.min(POOL_BYTES - position);
    out.extend_from_slice(&pool[position..position + head]);
    out.extend_from_slice(&pool[..length - head]);
    stamp(&mut out[start..], salt, event, from / PAGE_BYTES as u64);
    from + length as u64
}

#[cfg(test)]
#[path = "payload_tests.rs"]
mod tests;
