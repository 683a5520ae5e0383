//! Memory and write-back settings.

use std::path::Path;

use serde::Serialize;

use super::parsed;
use crate::environment::{Reading, chosen, number};
use crate::memory::Memory as State;

/// Settings of memory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Memory {
    /// Memory usable by the kernel, bytes.
    pub total_bytes: Reading<u64>,
    /// Page size, bytes.
    pub page_bytes: u64,
    /// Mode of transparent huge pages.
    pub transparent_huge_pages: Reading<String>,
    /// Huge page size, bytes; 0 without huge pages.
    pub huge_page_bytes: Reading<u64>,
    /// Reserved huge pages.
    pub huge_pages: Reading<u64>,
    /// Free huge pages.
    pub huge_pages_free: Reading<u64>,
    /// Tendency to swap, 0 to 200.
    pub swappiness: Reading<u64>,
    /// Swap in use, bytes.
    pub swap_used_bytes: Reading<u64>,
    /// Whether a node reclaims its page cache before allocating from another node.
    pub zone_reclaim_mode: Reading<u64>,
    /// Whether the kernel migrates pages to the CPUs that use them.
    pub numa_balancing: Reading<u64>,
    /// Dirty data above which writers are throttled, percent; 0 if set in bytes.
    pub dirty_ratio_percent: Reading<u64>,
    /// The same in bytes; 0 if set in percent.
    pub dirty_bytes: Reading<u64>,
    /// Dirty data above which background write-back starts, percent; 0 if set in bytes.
    pub dirty_background_ratio_percent: Reading<u64>,
    /// The same in bytes; 0 if set in percent.
    pub dirty_background_bytes: Reading<u64>,
}

impl Memory {
    pub(super) fn collect(root: &Path) -> Self {
        let state: Reading<State> = State::read(root).into();
        let of = |part: fn(State) -> u64| state.clone().map(part);
        let vm = |name: &str| number(root, Path::new("proc/sys/vm").join(name));
        Self {
            total_bytes: of(|state| state.total_bytes),
            page_bytes: rustix::param::page_size() as u64,
            transparent_huge_pages: chosen(root, "sys/kernel/mm/transparent_hugepage/enabled"),
            huge_page_bytes: of(|state| state.huge_page_bytes),
            huge_pages: of(|state| state.huge_pages),
            huge_pages_free: of(|state| state.huge_pages_free),
            swappiness: vm("swappiness"),
            swap_used_bytes: parsed(root, "proc/swaps", "it has no heading", parse_swaps),
            zone_reclaim_mode: vm("zone_reclaim_mode"),
            numa_balancing: number(root, "proc/sys/kernel/numa_balancing"),
            dirty_ratio_percent: vm("dirty_ratio"),
            dirty_bytes: vm("dirty_bytes"),
            dirty_background_ratio_percent: vm("dirty_background_ratio"),
            dirty_background_bytes: vm("dirty_background_bytes"),
        }
    }
}

/// Bytes in use of all swap areas in /proc/swaps (proc_swaps(5)): fourth column, KiB.
pub(crate) fn parse_swaps(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    lines.next().filter(|heading| heading.starts_with("Filename"))?;
    let used = |line: &str| line.split_ascii_whitespace().rev().nth(1)?.parse::<u64>().ok();
    let lines = lines.filter(|line| !line.trim().is_empty());
    lines.map(used).try_fold(0u64, |sum, kib| Some(sum.saturating_add(kib?.saturating_mul(1024))))
}
