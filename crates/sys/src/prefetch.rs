//! Asks the processor for memory before it is used.

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// Asks for the cache lines of `bytes` bytes from `start` on, to be written soon. Changes no memory, for any
/// address; without effect on processors other than x86-64.
#[inline]
pub fn prefetch<T>(start: *const T, bytes: usize) {
    for offset in (0..bytes).step_by(LINE_BYTES) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
            // SAFETY: the instruction reads and writes nothing, and never faults.
            unsafe { _mm_prefetch::<_MM_HINT_ET0>(start.cast::<i8>().wrapping_add(offset)) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (start, offset);
    }
}
