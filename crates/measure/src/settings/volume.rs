//! How requests reach the disks of a volume.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::network::Link;
use super::{line, upwards};
use crate::environment::{self, Reading, number};
use crate::text;

/// A directory that takes data, its disks and their queues.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Volume {
    /// What the environment record has of it.
    #[serde(flatten)]
    pub basics: environment::Volume,
    /// The queue of each disk below.
    pub queues: BTreeMap<String, Queue>,
    /// The software RAID that the file system is on, if it is on one.
    pub md: Option<Md>,
}

/// The queue of a disk.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Queue {
    /// Requests that it holds.
    pub requests: Reading<u64>,
    /// Largest request that the kernel makes, in KiB.
    pub request_kib_max: Reading<u64>,
    /// Largest request that the hardware takes, in KiB.
    pub hardware_kib_max: Reading<u64>,
    /// The NUMA node that its controller is in; not readable where the machine has one node.
    pub node: Reading<u64>,
    /// Who made it, as the bus tells; `ATA` for every SATA disk.
    pub vendor: Reading<String>,
    /// The controller's place in the machine.
    pub link: Link,
}

/// A software RAID.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Md {
    /// Its name.
    pub name: String,
    /// Its level, as in `raid5`.
    pub level: Reading<String>,
    /// Pages for each device in the cache of stripes; parity levels only.
    pub stripe_cache_pages: Reading<u64>,
    /// What it does by itself: `idle`, `resync`, `check`, …
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
            link: Link::collect(root, &device),
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
