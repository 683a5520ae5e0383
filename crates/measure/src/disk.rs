//! Block devices: the device of a path, and its activity (/proc/diskstats).

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::MeasureError;
use crate::mounts::Mount;
use crate::raid::Raid;
use crate::text;

/// Sector size of /proc/diskstats and sysfs, independent of the disk's.
pub(crate) const SECTOR_BYTES: u64 = 512;
/// Maximum stacking depth of device mapper and md; stops at loops in simulated trees.
const STACK_DEPTH_MAX: u32 = 8;

/// The block device of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Kernel name: a partition (`sda1`), a whole disk, or a stacked device (`dm-0`, `md0`).
    pub name: String,
    /// The underlying whole disks, sorted; the device itself if it is one.
    pub disks: Vec<String>,
}

/// Counters of a block device since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskCounters {
    /// Reads completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Total time of reads, ms.
    pub read_ms: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Total time of writes, ms.
    pub write_ms: u64,
    /// Requests in flight now (not cumulative).
    pub in_flight: u64,
    /// Time with at least one request in flight, ms.
    pub busy_ms: u64,
    /// Flushes completed; 0 on kernels before 5.5.
    pub flushes: u64,
    /// Total time of flushes, ms; 0 on kernels before 5.5.
    pub flush_ms: u64,
}

/// Activity of a block device between two readings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskUsage {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Requests in flight at the later reading.
    pub in_flight: u64,
    /// Time with at least one request in flight, percent. A device that serves requests in parallel
    /// can be at 100 % without being saturated.
    pub busy_percent: f64,
    /// Mean time of a completed write, ms; unknown without one.
    pub write_ms_mean: Option<f64>,
    /// Mean time of a completed flush, ms; unknown without one.
    pub flush_ms_mean: Option<f64>,
}

impl Device {
    /// The device of `path`, by the path's device number, or by the mount source for file systems
    /// that hide it (btrfs). `root` is `/` outside tests. Fails if `path` does not exist or is not
    /// on a block device.
    pub fn under(root: &Path, path: &Path) -> Result<Self, MeasureError> {
        let read_error = |why| MeasureError::Read { path: path.to_owned(), why };
        let dev = fs::metadata(path).map_err(read_error)?.dev();
        let (major, minor) = (rustix::fs::major(dev), rustix::fs::minor(dev));
        // Major number 0 marks virtual devices.
        let name = if major == 0 {
            mounted_device(root, path)?
        } else {
            let link = root.join(format!("sys/dev/block/{major}:{minor}"));
            text::link_name(link).map_err(|why| no_device(path, why.to_string()))?
        };
        let mut disks = Vec::new();
        // A file system may span several devices; the mount names one of them.
        for device in std::iter::once(name.clone()).chain(Raid::on(root, &name).devices) {
            collect_disks(root, &device, STACK_DEPTH_MAX, &mut disks);
        }
        disks.sort();
        disks.dedup();
        Ok(Self { name, disks })
    }
}

impl DiskCounters {
    /// The counters of the device called `name` now. `root` is `/` outside tests.
    /// Fails when /proc/diskstats cannot be read or does not list it.
    pub fn read(root: &Path, name: &str) -> Result<Self, MeasureError> {
        let file = "proc/diskstats";
        let all = parse_diskstats(&text::read(root, file)?);
        all.get(name).copied().ok_or_else(|| text::malformed(root, file, "it does not list the device"))
    }

    /// Activity since `earlier`, `elapsed_ns` ago.
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
            // The kernel counts in ticks, which may slightly exceed the interval.
            busy_percent: busy_percent.min(100.0),
            write_ms_mean: mean(self.write_ms, earlier.write_ms, self.writes, earlier.writes),
            flush_ms_mean: mean(self.flush_ms, earlier.flush_ms, self.flushes, earlier.flushes),
        }
    }
}

/// Parses /proc/diskstats (Documentation/admin-guide/iostats) by sysfs device name; malformed lines
/// are skipped.
pub(crate) fn parse_diskstats(text: &str) -> BTreeMap<String, DiskCounters> {
    text.lines().filter_map(parse_disk).collect()
}

fn parse_disk(line: &str) -> Option<(String, DiskCounters)> {
    let mut fields = line.split_ascii_whitespace().skip(2);
    // Slashes in device names are exclamation marks in sysfs.
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
    // Device mapper names are links to kernel names.
    let name = text::link_name(root.join("dev").join(node)).map_err(|_| none())?;
    if class_directory(root, &name).exists() { Ok(name) } else { Err(none()) }
}

fn class_directory(root: &Path, name: &str) -> PathBuf {
    root.join("sys/class/block").join(name)
}

/// Adds the whole disks below device `name`.
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
        // A partition's directory is inside its disk's.
        disks.push(disk);
    } else {
        disks.push(name.to_owned());
    }
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
