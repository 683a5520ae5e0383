//! Main memory from /proc/meminfo: total, available and dirty.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::MeasureError;
use crate::text;

/// State of main memory, bytes unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Memory usable by the kernel.
    pub total_bytes: u64,
    /// Available without swapping.
    pub available_bytes: u64,
    /// Page cache.
    pub cached_bytes: u64,
    /// Dirty file data not yet under write-back.
    pub dirty_bytes: u64,
    /// File data under write-back.
    pub writeback_bytes: u64,
    /// Swap space.
    pub swap_bytes: u64,
    /// Default huge page size; 0 without huge pages.
    pub huge_page_bytes: u64,
    /// Reserved huge pages of that size.
    pub huge_pages: u64,
    /// Free huge pages.
    pub huge_pages_free: u64,
}

impl Memory {
    /// Current state. `root` is `/` outside tests. Fails if /proc/meminfo cannot be read or lacks
    /// the total.
    pub fn read(root: &Path) -> Result<Self, MeasureError> {
        let file = "proc/meminfo";
        parse_memory(&text::read(root, file)?)
            .ok_or_else(|| text::malformed(root, file, "it has no MemTotal"))
    }
}

/// Parses /proc/meminfo (proc_meminfo(5)); missing values count as 0, except the total.
pub(crate) fn parse_memory(text: &str) -> Option<Memory> {
    let field = |name: &str| {
        let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let mut words = rest.split_ascii_whitespace();
        let number: u64 = words.next()?.parse().ok()?;
        Some(if words.next() == Some("kB") { number.saturating_mul(1024) } else { number })
    };
    let or_zero = |name| field(name).unwrap_or(0);
    Some(Memory {
        total_bytes: field("MemTotal")?,
        available_bytes: or_zero("MemAvailable"),
        cached_bytes: or_zero("Cached"),
        dirty_bytes: or_zero("Dirty"),
        writeback_bytes: or_zero("Writeback"),
        swap_bytes: or_zero("SwapTotal"),
        huge_page_bytes: or_zero("Hugepagesize"),
        huge_pages: or_zero("HugePages_Total"),
        huge_pages_free: or_zero("HugePages_Free"),
    })
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
