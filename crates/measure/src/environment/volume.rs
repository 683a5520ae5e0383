//! One volume: file system, device and disks.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Link, Reading, chosen, flag, number, words};
use crate::disk::{Device, SECTOR_BYTES};
use crate::mounts::Mount;
use crate::raid::Raid;
use crate::space::{Space, is_memory_backed};

/// A target directory and its storage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Volume {
    /// The directory as given; not part of the fingerprint.
    pub path: String,
    /// Mount point.
    pub mount_point: Reading<String>,
    /// File system type.
    pub fs_type: Reading<String>,
    /// Mount and file system options.
    pub mount_options: Reading<String>,
    /// File system size, bytes.
    pub size_bytes: Reading<u64>,
    /// Whether the data is kept in main memory.
    pub memory_backed: Reading<bool>,
    /// Kernel name of the file system's block device.
    pub device: Reading<String>,
    /// Software RAID of the kernel, if any. Hardware controllers are not visible.
    #[serde(default)]
    pub raid: Option<String>,
    /// The whole disks below that device.
    pub disks: BTreeMap<String, Disk>,
    /// Free space; not part of the fingerprint.
    pub free: Reading<VolumeFree>,
}

/// A whole disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    /// Model name.
    pub model: Reading<String>,
    /// Size, bytes.
    pub size_bytes: Reading<u64>,
    /// Whether the kernel considers it rotational.
    pub rotational: Reading<bool>,
    /// Active I/O scheduler.
    pub scheduler: Reading<String>,
    /// Logical block size, bytes.
    pub logical_block_bytes: Reading<u64>,
    /// Physical block size, bytes.
    pub physical_block_bytes: Reading<u64>,
    /// Maximum size of a discard request, bytes; 0 without support.
    pub discard_bytes_max: Reading<u64>,
    /// `write back`: volatile cache, needs flushes; `write through`: no cache, or a safe one.
    pub write_cache: Reading<String>,
    /// PCI Express link of the disk or its controller, if any.
    #[serde(default)]
    pub link: Option<Link>,
}

/// Free space of a volume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeFree {
    /// Bytes that this process may still write.
    pub bytes: u64,
    /// Free inodes; unknown where the file system does not limit them.
    pub inodes: Option<u64>,
    /// Fill level of the file system, percent.
    pub fill_percent: f64,
}

impl Volume {
    pub(crate) fn collect(root: &Path, path: &Path) -> Self {
        let mount: Reading<Mount> = Mount::of(root, path).into();
        let space: Reading<Space> = Space::of(path).into();
        let device: Reading<Device> = Device::under(root, path).into();
        let disk = |name: &String| (name.clone(), Disk::collect(root, name));
        let disks = device.value().map(|device| device.disks.iter().map(disk).collect());
        let raid = device.value().and_then(|device| Raid::on(root, &device.name).description);
        Self {
            path: path.display().to_string(),
            mount_point: mount.clone().map(|mount| mount.point.display().to_string()),
            // The mount table knows more type names than the magic numbers.
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
            link: Some(Link::collect(root, &directory.join("device")))
                .filter(|link| link.lanes.value().is_some()),
        }
    }
}
