//! Wear of the disks below the volumes, as the disks report it.
//!
//! Invariants: only NVMe disks are asked; a disk that cannot be asked has the reason, never a figure.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use keepup_measure::disk::Device;
use keepup_measure::environment::Reading;
use keepup_results::DiskWear;
use keepup_sys::nvme::SmartLog;

/// A volume with the wear of its disks.
#[derive(Clone, Debug, PartialEq)]
pub struct VolumeDisks {
    /// Directory.
    pub path: PathBuf,
    /// The whole disks below its file system, by kernel name. Empty if they are not known.
    pub disks: BTreeMap<String, Reading<DiskWear>>,
}

impl VolumeDisks {
    /// Asks the disks of a volume.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let disks = Device::under(Path::new("/"), path).map(|device| device.disks).unwrap_or_default();
        let disks = disks.into_iter().map(|disk| {
            let wear = disk_wear(&disk);
            (disk, wear)
        });
        Self { path: path.into(), disks: disks.collect() }
    }
}

/// Wear of a disk by its kernel name, such as `nvme0n1`.
pub(crate) fn disk_wear(disk: &str) -> Reading<DiskWear> {
    if !disk.starts_with("nvme") {
        return Reading::NotReadable("only NVMe disks are asked".into());
    }
    match SmartLog::read(&Path::new("/dev").join(disk)) {
        Ok(log) => Reading::Value(DiskWear {
            disk: disk.to_owned(),
            used_percent: log.used_percent,
            spare_percent: log.spare_percent,
            spare_threshold_percent: log.spare_threshold_percent,
            is_degraded: log.is_degraded,
            written_bytes: log.written_bytes,
        }),
        Err(why) => Reading::NotReadable(why.to_string()),
    }
}

#[cfg(test)]
#[path = "wear_tests.rs"]
mod tests;
