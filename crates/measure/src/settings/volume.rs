//! Request queues and disks of a volume.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::line;
use crate::environment::{self, Reading, number, upwards};
use crate::text;

/// A target directory with its disks and their queues.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Volume {
    /// Settings shared with the environment record.
    #[serde(flatten)]
    pub basics: environment::Volume,
    /// Queue of each disk.
    pub queues: BTreeMap<String, Queue>,
    /// Software RAID below the file system, if any.
    pub md: Option<Md>,
}

/// Request queue of a disk.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Queue {
    /// Queue length, requests.
    pub requests: Reading<u64>,
    /// Maximum request size of the kernel, KiB.
    pub request_kib_max: Reading<u64>,
    /// Maximum request size of the hardware, KiB.
    pub hardware_kib_max: Reading<u64>,
    /// NUMA node of the controller; not readable on machines with one node.
    pub node: Reading<u64>,
    /// Vendor as reported by the bus; `ATA` for every SATA disk.
    pub vendor: Reading<String>,
}

/// A software RAID.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Md {
    /// Name.
    pub name: String,
    /// Level, as in `raid5`.
    pub level: Reading<String>,
    /// Stripe cache, pages per device; parity levels only.
    pub stripe_cache_pages: Reading<u64>,
    /// Background activity: `idle`, `resync`, `check`, …
    pub sync_action: Reading<String>,
}

impl Volume {
    pub(super) fn collect(root: &Path, path: &Path) -> Self {
        let basics = environment::Volume::collect(root, path);
        let queues = basics.disks.keys().map(|disk| (disk.clone(), Queue::collect(root, disk))).collect();
        let md = basics.device.value().and_then(|device| Md::collect(root, device));
        Self { basics, queues, md }
    }
}

impl Queue {
    pub(super) fn collect(root: &Path, disk: &str) -> Self {
        let directory = Path::new("sys/class/block").join(disk);
        let (queue, device) = (directory.join("queue"), directory.join("device"));
        let node = upwards(root, &device, "numa_node");
        Self {
            requests: number(root, queue.join("nr_requests")),
            request_kib_max: number(root, queue.join("max_sectors_kb")),
            hardware_kib_max: number(root, queue.join("max_hw_sectors_kb")),
            node: node.and_then(|node| node.parse().map_err(|_| format!("its node is {node}: the only one"))),
            vendor: line(root, device.join("vendor")),
        }
    }
}

impl Md {
    pub(super) fn collect(root: &Path, name: &str) -> Option<Self> {
        let directory = Path::new("sys/class/block").join(name).join("md");
        root.join(&directory).is_dir().then(|| Self {
            name: name.to_owned(),
            level: text::read_trimmed(root, directory.join("level")).into(),
            stripe_cache_pages: number(root, directory.join("stripe_cache_size")),
            sync_action: text::read_trimmed(root, directory.join("sync_action")).into(),
        })
    }
}
