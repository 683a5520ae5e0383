//! Disks: which block device holds a path, and what it has been doing (/proc/diskstats).

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::MeasureError;
use crate::mounts::Mount;
use crate::raid::Raid;
use crate::text;

/// /proc/diskstats and sysfs count in sectors of this size, whatever the disk's own is.
pub(crate) const SECTOR_BYTES: u64 = 512;
/// Device mapper and md may be stacked; a loop in a made-up tree must end.
const STACK_DEPTH_MAX: u32 = 8;

/// A block device that holds a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// The kernel's name: a partition (`sda1`), a whole disk, or one put together from others (`dm-0`,
    /// `md0`).
    pub name: String,
    /// The whole disks below it, sorted; itself if it is one.
    pub disks: Vec<String>,
}

/// What a block device has done since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskCounters {
    /// Reads completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Time reads took, summed, in ms.
    pub read_ms: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Time writes took, summed, in ms.
    pub write_ms: u64,
    /// Requests under way now (not a sum).
    pub in_flight: u64,
    /// Time with at least one request under way, in ms.
    pub busy_ms: u64,
    /// Flushes completed; 0 on kernels before 5.5.
    pub flushes: u64,
    /// Time flushes took, summed, in ms; 0 on kernels before 5.5.
    pub flush_ms: u64,
}

/// What a block device did between two readings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskUsage {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Requests under way at the later reading.
    pub in_flight: u64,
    /// Time with at least one request under way, in per cent. A device that serves many requests at once
    /// can be at 100 % and still have room.
    pub busy_percent: f64,
    /// Mean time a completed write took, in ms; unknown if there was none.
    pub write_ms_mean: Option<f64>,
    /// Mean time a completed flush took, in ms; unknown if there was none.
    pub flush_ms_mean: Option<f64>,
}

impl Device {
    /// The device that holds `path`, by the path's device number; for file systems that hide it (btrfs) by
    /// the source of the mount. `root` is `/` in earnest. Fails when `path` does not exist or lies on no
    /// block device.
    pub fn under(root: &Path, path: &Path) -> Result<Self, MeasureError> {
        let read_error = |why| MeasureError::Read { path: path.to_owned(), why };
        let dev = fs::metadata(path).map_err(read_error)?.dev();
        let (major, minor) = (rustix::fs::major(dev), rustix::fs::minor(dev));
        // Major 0 marks devices that do not exist as such.
        let name = if major == 0 {
            mounted_device(root, path)?
        } else {
            let link = root.join(format!("sys/dev/block/{major}:{minor}"));
            text::link_name(link).map_err(|why| no_device(path, why.to_string()))?
        };
        let mut disks = Vec::new();
        // A file system may lie on several devices, of which the mount names one.
        for device in std::iter::once(name.clone()).chain(Raid::on(root, &name).devices) {
            collect_disks(root, &device, STACK_DEPTH_MAX, &mut disks);
        }
        disks.sort();
        disks.dedup();
        Ok(Self { name, disks })
    }
}

impl DiskCounters {
    /// The counters of the device called `name` now. `root` is `/` in earnest.
    /// Fails when /proc/diskstats cannot be read or does not list it.
    pub fn read(root: &Path, name: &str) -> Result<Self, MeasureError> {
        let file = "proc/diskstats";
        let all = parse_diskstats(&text::read(root, file)?);
        all.get(name).copied().ok_or_else(|| text::malformed(root, file, "it does not list the device"))
    }

    /// What was done since `earlier`, `elapsed_ns` ago.
    pub fn since(&self, earlier: &Self, elapsed_ns: u64) -> DiskUsage {
        let busy_ms = self.busy_ms.saturating_sub(earlier.busy_ms);
        let busy_percent = if elapsed_ns == 0 { 0.0 } else { busy_ms as f64 * 1e8 / elapsed_ns as f64 };
        let mean = |ms: u64, ms_before: u64, count: u64, count_before: u64| {
            let count = count.saturating_sub(count_before);
            (count > 0).then(|| ms.saturating_sub(ms_before) as f64 / count as f64)
        };
        DiskUsage {
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
            in_flight: self.in_flight,
            // The kernel counts in steps of a tick, which may put a little more into the interval than it
            // holds.
            busy_percent: busy_percent.min(100.0),
            write_ms_mean: mean(self.write_ms, earlier.write_ms, self.writes, earlier.writes),
            flush_ms_mean: mean(self.flush_ms, earlier.flush_ms, self.flushes, earlier.flushes),
        }
    }
}

/// The text of /proc/diskstats (Documentation/admin-guide/iostats), by the name sysfs uses for a device;
/// lines of another form are skipped.
pub fn parse_diskstats(text: &str) -> BTreeMap<String, DiskCounters> {
    text.lines().filter_map(parse_disk).collect()
}

fn parse_disk(line: &str) -> Option<(String, DiskCounters)> {
    let mut fields = line.split_ascii_whitespace().skip(2);
    // Where a device's name has a slash, sysfs has an exclamation mark.
    let name = fields.next()?.replace('/', "!");
    let counts: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
    let [reads, _, read_sectors, read_ms, writes, _, written_sectors, write_ms, in_flight, busy_ms, ..] =
        counts[..]
    else {
        return None;
    };
    let counters = DiskCounters {
        reads,
        read_bytes: read_sectors.saturating_mul(SECTOR_BYTES),
        read_ms,
        writes,
        written_bytes: written_sectors.saturating_mul(SECTOR_BYTES),
        write_ms,
        in_flight,
        busy_ms,
        flushes: counts.get(15).copied().unwrap_or(0),
        flush_ms: counts.get(16).copied().unwrap_or(0),
    };
    Some((name, counters))
}

fn no_device(path: &Path, why: String) -> MeasureError {
    MeasureError::NoDevice { path: path.to_owned(), why }
}

fn mounted_device(root: &Path, path: &Path) -> Result<String, MeasureError> {
    let mount = Mount::of(root, path)?;
    let none =
        || no_device(path, format!("its file system ({}, {}) is on none", mount.fs_type, mount.source));
    let node = mount.source.strip_prefix("/dev/").ok_or_else(none)?;
    // Device mapper names are links to the kernel's names.
    let name = text::link_name(root.join("dev").join(node)).map_err(|_| none())?;
    if class_directory(root, &name).exists() { Ok(name) } else { Err(none()) }
}

fn class_directory(root: &Path, name: &str) -> PathBuf {
    root.join("sys/class/block").join(name)
}

/// Adds the whole disks below the device called `name`.
fn collect_disks(root: &Path, name: &str, depth: u32, disks: &mut Vec<String>) {
    let directory = class_directory(root, name);
    let parts = text::names(&directory, "slaves").unwrap_or_default();
    if !parts.is_empty() && depth > 0 {
        for part in parts {
            collect_disks(root, &part, depth - 1, disks);
        }
    } else if directory.join("partition").exists()
        && let Ok(disk) = text::link_name(directory.join(".."))
    {
        // A partition's directory lies inside its disk's.
        disks.push(disk);
    } else {
        disks.push(name.to_owned());
    }
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
