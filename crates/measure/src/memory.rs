//! Main memory from /proc/meminfo: what is there, what is free, and what still waits to be written.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::MeasureError;
use crate::text;

/// The state of main memory, in bytes unless the name says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Usable by the kernel.
    pub total_bytes: u64,
    /// Can be had without swapping.
    pub available_bytes: u64,
    /// File data in memory.
    pub cached_bytes: u64,
    /// File data changed in memory and not yet on its way to a disk.
    pub dirty_bytes: u64,
    /// File data on its way to a disk.
    pub writeback_bytes: u64,
    /// Swap space.
    pub swap_bytes: u64,
    /// Size of one huge page of the default size; 0 without huge pages.
    pub huge_page_bytes: u64,
    /// Huge pages of that size set aside.
    pub huge_pages: u64,
    /// How many of them are free.
    pub huge_pages_free: u64,
}

impl Memory {
    /// The state now. `root` is `/` in earnest. Fails when /proc/meminfo cannot be read or lacks the total.
    pub fn read(root: &Path) -> Result<Self, MeasureError> {
        let file = "proc/meminfo";
        parse_memory(&text::read(root, file)?)
            .ok_or_else(|| text::malformed(root, file, "it has no MemTotal"))
    }
}

/// The text of /proc/meminfo (proc_meminfo(5)); what a kernel does not list counts as 0, except the total.
pub fn parse_memory(text: &str) -> Option<Memory> {
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
