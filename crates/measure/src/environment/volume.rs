//! One volume: its file system, its device and the disks below.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Reading, chosen, flag, number, words};
use crate::disk::{Device, SECTOR_BYTES};
use crate::mounts::Mount;
use crate::raid::Raid;
use crate::space::{Space, is_memory_backed};

/// A directory that takes data, and what it lies on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Volume {
    /// The directory as it was given; not in the fingerprint, which cares for the disk.
    pub path: String,
    /// Where its file system is mounted.
    pub mount_point: Reading<String>,
    /// Type of the file system.
    pub fs_type: Reading<String>,
    /// Options of the mount and of the file system.
    pub mount_options: Reading<String>,
    /// Size of the file system, in bytes.
    pub size_bytes: Reading<u64>,
    /// Whether what is written stays in main memory.
    pub memory_backed: Reading<bool>,
    /// The kernel's name of the block device that the file system is on.
    pub device: Reading<String>,
    /// How the kernel spreads its data over several devices; nothing where it does not. A hardware controller
    /// does not show.
    #[serde(default)]
    pub raid: Option<String>,
    /// The whole disks below that device.
    pub disks: BTreeMap<String, Disk>,
    /// The room left; not in the fingerprint.
    pub free: Reading<VolumeFree>,
}

/// A whole disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    /// Model name.
    pub model: Reading<String>,
    /// Size in bytes.
    pub size_bytes: Reading<u64>,
    /// Whether the kernel takes it for a spinning disk.
    pub rotational: Reading<bool>,
    /// I/O scheduler in force.
    pub scheduler: Reading<String>,
    /// Smallest unit it can be asked for, in bytes.
    pub logical_block_bytes: Reading<u64>,
    /// Smallest unit it writes without reading first, in bytes.
    pub physical_block_bytes: Reading<u64>,
    /// Most bytes it can be told at once that are no longer needed; 0 when it cannot be told.
    pub discard_bytes_max: Reading<u64>,
    /// `write back`: it has a cache that a flush must empty; `write through`: it has none, or a safe one.
    pub write_cache: Reading<String>,
}

/// The room left on a volume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeFree {
    /// Bytes that this process may still write.
    pub bytes: u64,
    /// Files that may still be made; unknown where the file system does not limit them.
    pub inodes: Option<u64>,
    /// How full the file system is, in per cent.
    pub fill_percent: f64,
}

impl Volume {
    pub(crate) fn collect(root: &Path, path: &Path) -> Self {
        let mount: Reading<Mount> = Mount::of(root, path).into();
        let space: Reading<Space> = Space::of(path).into();
        let device: Reading<Device> = Device::under(root, path).into();
        let disk = |name: &String| (name.clone(), Disk::collect(root, name));
        let disks = device.value().map(|device| device.disks.iter().map(disk).collect());
        let raid = device.value().and_then(|device| Raid::on(root, &device.name).told);
        Self {
            path: path.display().to_string(),
            mount_point: mount.clone().map(|mount| mount.point.display().to_string()),
            // The mount table knows more names than the magic numbers do.
            fs_type: mount.clone().map(|mount| mount.fs_type),
            mount_options: mount.map(|mount| mount.options),
            size_bytes: space.clone().map(|space| space.total_bytes),
            memory_backed: is_memory_backed(root, path).into(),
            device: device.map(|device| device.name),
            raid,
            disks: disks.unwrap_or_default(),
            free: space.map(|space| VolumeFree {
                bytes: space.free_bytes,
                inodes: space.free_inodes,
                fill_percent: space.fill_percent(),
            }),
        }
    }
}

impl Disk {
    fn collect(root: &Path, name: &str) -> Self {
        let directory = Path::new("sys/class/block").join(name);
        let queue = directory.join("queue");
        Self {
            model: words(root, directory.join("device/model")),
            size_bytes: number(root, directory.join("size"))
                .map(|sectors| sectors.saturating_mul(SECTOR_BYTES)),
            rotational: flag(root, queue.join("rotational")),
            scheduler: chosen(root, queue.join("scheduler")),
            logical_block_bytes: number(root, queue.join("logical_block_size")),
            physical_block_bytes: number(root, queue.join("physical_block_size")),
            discard_bytes_max: number(root, queue.join("discard_max_bytes")),
            write_cache: words(root, queue.join("write_cache")),
        }
    }
}
