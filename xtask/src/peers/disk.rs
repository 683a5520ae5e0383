//! `cargo xtask peers disk`: compares the disk tests with similar programs.

mod bonnie;
mod fio;
mod groups;
mod keepup;
mod listing;
mod slope;

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};

use self::groups::Inputs;
use super::campaign::Campaign;
use super::group::select;
use super::options::{DiskOptions, Options};
use super::render::Head;

/// Method.
const METHOD: &str = "\
- sweep: each program fills its file, then measures all points in the same process, so that overwritten and
  read data exists. Rate: bytes of a point over its time, including a final flush for writes. keepup stamps
  each 4 KiB page, fio scrambles its buffers every 512 bytes: neither writes compressible data.
- Reported CPU: as counted by the program. keepup counts its process with io_uring workers, fio only the
  thread of its job, bonnie++ its process in whole per cent.
- cpu and growing: difference of a long and a short run of the same program: bytes, CPU of the process
  (wait4), and CPU reported by the program. Start, filling and end cancel out except for their variation
  (tens of ms), which matters less with a longer --time. cpu: constant data is written without touching it,
  unique data as in the sweep. growing: the file is new, and the short run writes almost nothing.
- testdisk: both through the page cache, each series from one sync to the end of the next. MB are 10^6
  bytes, unlike in the listing (2^20). CPU: of the whole process (wait4).
- block: cached uses the page cache with a file that fits into it; direct bypasses it. bonnie++ 2.00 opens
  its file with O_DIRECT only for the block write (according to strace), so no other direct phase is
  comparable. bonnie++ prints no figure for phases shorter than half a second.";

/// Formats a size.
fn label(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.into_iter().find(|(shift, _)| bytes >> shift > 0 && bytes.is_multiple_of(1 << shift));
    unit.map_or_else(|| format!("{bytes} B"), |(shift, unit)| format!("{} {unit}", bytes >> shift))
}

/// Checks the names in `--only`.
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
    select(groups::all(&Inputs::most(&disk)), &options.only)?;
    Ok((options, disk))
}

/// Runs the campaign.
pub(super) fn run((options, disk): &(Options, DiskOptions)) -> Result<()> {
    let tools = [&super::fio::TOOL, &bonnie::TOOL];
    let campaign = Campaign::prepare(options, &tools)?;
    let facts = Inputs {
        keepup: campaign.program.clone(),
        has_block: keepup::has_test(&campaign.program, "block"),
        huge_bytes: huge_bytes(Path::new("/")),
        disk: disk.clone(),
    };
    let groups = select(groups::all(&facts), &options.only).map_err(|why| anyhow!(why))?;
    let largest_bytes = groups.iter().map(|group| group.work.bytes).max().unwrap_or(0);
    campaign.scratch.check_free_space(largest_bytes)?;
    let mib = disk.file_bytes >> 20;
    let head = Head {
        title: "The disk tests compared with their peers",
        what: format!(
            "{}; a file of {mib} MiB, {} ms per point of a sweep",
            options.rounds_text(),
            disk.time.as_millis()
        ),
        method: METHOD,
    };
    campaign.run(groups, options, &head)
}

/// Bytes of free reserved huge pages, from /proc below `root`.
fn huge_bytes(root: &Path) -> u64 {
    let path: PathBuf = root.join("proc/meminfo");
    std::fs::read_to_string(path).map_or(0, |text| free_huge_bytes(&text).unwrap_or(0))
}

/// Parses /proc/meminfo.
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
