//! Free space of a directory's file system, and whether it is memory-backed.

use std::path::{Path, PathBuf};

use rustix::fs::{statfs, statvfs};
use serde::{Deserialize, Serialize};

use crate::disk::Device;
use crate::error::MeasureError;
use crate::text;

/// Maximum depth of loop devices on files on loop devices.
const LOOP_DEPTH_MAX: u32 = 4;

/// Space of a file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Space {
    /// Type, as in `ext4`; the magic number in hexadecimal if unknown.
    pub fs_type: String,
    /// Size, bytes.
    pub total_bytes: u64,
    /// Used, bytes.
    pub used_bytes: u64,
    /// Free for this process, bytes (without blocks reserved for root).
    pub free_bytes: u64,
    /// Free inodes; unknown where the file system does not limit them.
    pub free_inodes: Option<u64>,
}

impl Space {
    /// Space of the file system of `path`. Fails if `path` is not accessible.
    pub fn of(path: &Path) -> Result<Self, MeasureError> {
        let stat = statvfs(path).map_err(|why| unreadable(path, why))?;
        Ok(Self {
            fs_type: fs_type_of(path)?,
            total_bytes: stat.f_blocks.saturating_mul(stat.f_frsize),
            used_bytes: stat.f_blocks.saturating_sub(stat.f_bfree).saturating_mul(stat.f_frsize),
            free_bytes: stat.f_bavail.saturating_mul(stat.f_frsize),
            free_inodes: (stat.f_files > 0).then_some(stat.f_favail),
        })
    }

    /// Fill level in percent as shown by `df` (the reserve for root counts neither as used nor as
    /// free); 0 for a file system without a size.
    pub fn fill_percent(&self) -> f64 {
        let fillable_bytes = self.used_bytes.saturating_add(self.free_bytes);
        if fillable_bytes == 0 { 0.0 } else { 100.0 * self.used_bytes as f64 / fillable_bytes as f64 }
    }
}

/// Whether data written to `path` stays in main memory: on tmpfs, ramfs or hugetlbfs, on a memory
/// disk (ram, zram), or on a loop device with a file in memory. `root` is `/` outside tests. Fails
/// if `path` is not accessible; a path without a block device (network file system) is not in
/// memory.
pub fn is_memory_backed(root: &Path, path: &Path) -> Result<bool, MeasureError> {
    memory_backed(root, path, LOOP_DEPTH_MAX)
}

fn memory_backed(root: &Path, path: &Path, depth: u32) -> Result<bool, MeasureError> {
    if matches!(fs_type_of(path)?.as_str(), "tmpfs" | "ramfs" | "hugetlbfs") {
        return Ok(true);
    }
    let Ok(device) = Device::under(root, path) else { return Ok(false) };
    Ok(device.disks.iter().any(|disk| {
        is_memory_disk(disk)
            || depth > 0
                && loop_file(root, disk)
                    .is_some_and(|file| memory_backed(root, &file, depth - 1).unwrap_or(false))
    }))
}

/// `ram0`, `zram1`: block devices in main memory.
fn is_memory_disk(disk: &str) -> bool {
    let number = disk.strip_prefix("zram").or_else(|| disk.strip_prefix("ram"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Backing file of a loop device.
fn loop_file(root: &Path, disk: &str) -> Option<PathBuf> {
    let file = text::read_trimmed(root, Path::new("sys/block").join(disk).join("loop/backing_file")).ok()?;
    Some(PathBuf::from(file))
}

fn fs_type_of(path: &Path) -> Result<String, MeasureError> {
    let stat = statfs(path).map_err(|why| unreadable(path, why))?;
    // The field's type depends on the CPU; the numbers have 32 bits.
    Ok(fs_type_name(stat.f_type as u32))
}

fn unreadable(path: &Path, why: rustix::io::Errno) -> MeasureError {
    MeasureError::Read { path: path.to_owned(), why: why.into() }
}

/// Type of a magic number (statfs(2), linux/magic.h and the file systems' sources).
fn fs_type_name(magic: u32) -> String {
    let name = match magic {
        0xef53 => "ext4",
        0x5846_5342 => "xfs",
        0x9123_683e => "btrfs",
        0x2fc1_2fc1 => "zfs",
        0xf2f5_2010 => "f2fs",
        0xca45_1a4e => "bcachefs",
        0x0102_1994 => "tmpfs",
        0x8584_58f6 => "ramfs",
        0x9584_58f6 => "hugetlbfs",
        0x794c_7630 => "overlay",
        0x6573_5546 => "fuse",
        0x6969 => "nfs",
        0xff53_4d42 | 0xfe53_4d42 => "cifs",
        0x0102_1997 => "9p",
        0x00c3_6400 => "ceph",
        0x0bd0_0bd0 => "lustre",
        0x4750_4653 => "gpfs",
        0x1983_0326 => "beegfs",
        0x2011_bab0 => "exfat",
        0x4d44 => "vfat",
        0x7366_746e => "ntfs3",
        other => return format!("0x{other:x}"),
    };
    name.to_owned()
}

#[cfg(test)]
#[path = "space_tests.rs"]
mod tests;
