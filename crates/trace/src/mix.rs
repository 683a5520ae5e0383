//! A fast hash for tables with one look-up per request.
//!
//! The standard hash resists crafted collisions, but takes longer than the rest of a look-up. A trace with
//! crafted keys is only read slowly: tables are bounded.
use std::hash::Hasher;

/// Multiplicative hash of one number; the multiplier is 2^64 divided by the golden ratio.
#[derive(Default)]
pub(super) struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
