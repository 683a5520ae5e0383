//! The campaign `cargo xtask peers disk`: keepup's disk tests beside the programs that they are like.

mod bonnie;
mod fio;
mod groups;
mod keepup;
mod listing;
mod slope;

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};

use self::groups::Facts;
use super::campaign::Campaign;
use super::group::select;
use super::options::{DiskOptions, Options};
use super::render::Head;

/// How the figures came about; what a reader must know to judge them.
const METHOD: &str = "\
- sweep: each program fills its file, then measures all points in the same process, so that whatever is
  overwritten or read was written before. Rate: bytes of a point over its time; a write ends with a flush
  inside that time. keepup writes a stamp of its own into each page of 4 KiB; fio scrambles its buffers,
  which touches every 512 bytes but no byte is made anew: neither writes data that compresses.
- Own account: CPU as the program counts it. keepup counts its process with io_uring's workers, fio the
  thread of its job alone, bonnie++ its process in whole per cent.
- cpu and growing: a short and a long run of the same program, and the difference of the two: bytes, CPU
  of the process by the kernel's account (wait4), and what the program itself says of the same bytes.
  Starting, filling the file and ending are in both and so in neither figure; what they differ by from run
  to run is (tens of ms), and weighs less in a longer --time. cpu: constant data is written without being
  touched, unique data as in the sweep; growing: the file is new, and the short run is next to nothing.
- testdisk: both through the page cache, each series from one sync to the end of the next. MB are 10^6
  bytes here, not the listing's 2^20. CPU: of the whole process (wait4).
- block: cached is through the page cache with a file that fits into it, so its figures are the cache's;
  direct is past it. bonnie++ 2.00 opens its file past the cache for the block write alone (watched with
  strace), so of the direct pair no other phase can be compared. bonnie++ gives no figure for what it did
  in less than half a second.";

/// What the campaign was told, when every name in it is known; otherwise says which is not.
pub(super) fn check((options, disk): (Options, DiskOptions)) -> Result<(Options, DiskOptions), String> {
    let testdisk = match &disk.testdisk {
        Some(given) => {
            let found =
                given.canonicalize().map_err(|why| format!("--testdisk {}: {why}", given.display()))?;
            Some(found)
        }
        None => None,
    };
    let disk = DiskOptions { testdisk, ..disk };
    select(groups::all(&Facts::most(&disk)), &options.only)?;
    Ok((options, disk))
}

/// Runs the campaign.
pub(super) fn run((options, disk): &(Options, DiskOptions)) -> Result<()> {
    let tools = [&super::fio::TOOL, &bonnie::TOOL];
    let campaign = Campaign::prepare(options, &tools)?;
    let facts = Facts {
        keepup: campaign.program.clone(),
        has_block: keepup::has_test(&campaign.program, "block"),
        huge_bytes: huge_bytes(Path::new("/")),
        disk: disk.clone(),
    };
    let groups = select(groups::all(&facts), &options.only).map_err(|why| anyhow!(why))?;
    let largest_bytes = groups.iter().map(|group| group.work.bytes).max().unwrap_or(0);
    campaign.scratch.check_room(largest_bytes)?;
    let mib = disk.file_bytes >> 20;
    let head = Head {
        title: "The disk tests beside their peers",
        what: format!(
            "{}; a file of {mib} MiB, {} ms for each point of a sweep",
            options.rounds_told(),
            disk.time.as_millis()
        ),
        method: METHOD,
    };
    campaign.run(groups, options, &head)
}

/// Bytes of huge pages that are set aside and free, below this root of the file tree.
fn huge_bytes(root: &Path) -> u64 {
    let path: PathBuf = root.join("proc/meminfo");
    std::fs::read_to_string(path).map_or(0, |text| free_huge_bytes(&text).unwrap_or(0))
}

/// The same from the kernel's text.
fn free_huge_bytes(meminfo: &str) -> Option<u64> {
    let value = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    Some(value("HugePages_Free")? * (value("Hugepagesize")? << 10))
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
