//! Incompressible data: cheap to generate, different on every page.

/// Fills memory with pseudo-random bytes; returns the next generator state.
pub fn fill_random(bytes: &mut [u8], mut state: u64) -> u64 {
    for word in bytes.chunks_mut(8) {
        // xorshift64*: cheap and incompressible.
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let random = state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes();
        word.copy_from_slice(&random[..word.len()]);
    }
    state
}

/// Initial state; any nonzero value works.
pub const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
