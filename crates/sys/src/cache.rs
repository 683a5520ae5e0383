//! Page cache residency of a file.
use std::os::fd::{AsRawFd, OwnedFd};

/// cachestat(2), the same number on every architecture; since Linux 6.5.
const SYS_CACHESTAT: libc::c_long = 451;

/// Range for cachestat: `struct cachestat_range` of linux/mman.h.
#[repr(C)]
struct Range {
    offset: u64,
    /// 0 means up to the end.
    bytes: u64,
}

/// Result of cachestat, in pages: `struct cachestat` of linux/mman.h.
#[repr(C)]
#[derive(Default)]
struct Pages {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Bytes of `file` in the page cache, according to the kernel; does not touch them. `None` if the
/// kernel (before 6.5) or a sandbox does not support it.
pub fn cached_bytes(file: &OwnedFd) -> Option<u64> {
    let range = Range { offset: 0, bytes: 0 };
    let mut pages = Pages::default();
    // SAFETY: both pointers are to local values with the kernel's layout that outlive the call;
    // the kernel reads the first and writes the second.
    let answer = unsafe {
        libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut pages, 0 as libc::c_uint)
    };
    (answer == 0).then(|| pages.cached.saturating_mul(rustix::param::page_size() as u64))
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
