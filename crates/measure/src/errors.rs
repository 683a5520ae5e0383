//! Error counters of the kernel and the disks: devices, file systems, memory, and SMART data from
//! `smartctl`.
//!
//! Invariant: an unreadable counter has no value, never 0.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::disk::Device;
use crate::text;

/// An error counter; kernel counters restart at boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorCounter {
    /// Device and counter name.
    pub name: String,
    /// Value; `None` if unreadable.
    pub value: Option<u64>,
}

impl ErrorCounter {
    fn new(name: String, value: Option<u64>) -> Self {
        Self { name, value }
    }
}

/// ATA attributes that count errors (ids of `smartctl -A`; names differ between vendors).
const ATA_ERRORS: [u64; 9] = [5, 10, 184, 187, 188, 196, 197, 198, 199];
/// Error fields of the NVMe health log.
const NVME_ERRORS: [&str; 3] = ["critical_warning", "media_errors", "num_err_log_entries"];
/// SCSI error counters, each for read, write and verify.
const SCSI_ERRORS: [&str; 2] = ["total_errors_corrected", "total_uncorrected_errors"];

/// The whole disks below `volume`, by kernel name; none if it is not on a block device. `root` is
/// `/` outside tests.
pub fn disks_below(root: &Path, volume: &Path) -> Vec<String> {
    Device::under(root, volume).map(|device| device.disks).unwrap_or_default()
}

/// Kernel error counters of `volume`: disks, md array, file system. `root` is `/` outside tests.
pub fn volume_errors(root: &Path, volume: &Path) -> Vec<ErrorCounter> {
    let Ok(device) = Device::under(root, volume) else {
        return vec![ErrorCounter::new(format!("{}: block device", volume.display()), None)];
    };
    let class = Path::new("sys/class/block");
    let mut counters = Vec::new();
    for disk in &device.disks {
        let file = class.join(disk).join("device/ioerr_cnt");
        let value = text::read_trimmed(root, file).ok().and_then(|text| parse_hexadecimal(&text));
        counters.push(ErrorCounter::new(format!("{disk}: ioerr_cnt"), value));
    }
    let name = &device.name;
    let array = class.join(name).join("md");
    if root.join(&array).exists() {
        let value = text::read_number(root, array.join("mismatch_cnt")).ok();
        counters.push(ErrorCounter::new(format!("{name}: mismatch_cnt"), value));
        let members = text::names(root, &array).unwrap_or_default();
        for member in members.iter().filter(|member| member.starts_with("dev-")) {
            let value = text::read_number(root, array.join(member).join("errors")).ok();
            counters.push(ErrorCounter::new(format!("{name}: {member} errors"), value));
        }
    }
    let ext4 = Path::new("sys/fs/ext4").join(name);
    if root.join(&ext4).exists() {
        let value = text::read_number(root, ext4.join("errors_count")).ok();
        counters.push(ErrorCounter::new(format!("{name}: ext4 errors_count"), value));
    }
    counters.extend(btrfs_errors(root, name));
    counters
}

/// Error counters of all devices of `device`'s btrfs.
fn btrfs_errors(root: &Path, device: &str) -> Vec<ErrorCounter> {
    let all = Path::new("sys/fs/btrfs");
    let systems = text::names(root, all).unwrap_or_default();
    let ours = systems
        .iter()
        .map(|id| all.join(id))
        .filter(|fs| root.join(fs).join("devices").join(device).exists());
    let mut counters = Vec::new();
    for system in ours {
        let members = system.join("devinfo");
        for member in text::names(root, &members).unwrap_or_default() {
            let stats = text::read(root, members.join(&member).join("error_stats"));
            let name = |what: &str| format!("{device}: btrfs device {member} {what}");
            match stats.map(|text| parse_error_stats(&text)) {
                Ok(found) if !found.is_empty() => {
                    counters
                        .extend(found.into_iter().map(|(what, n)| ErrorCounter::new(name(&what), Some(n))));
                }
                _ => counters.push(ErrorCounter::new(name("error_stats"), None)),
            }
        }
    }
    counters
}

/// Memory errors, corrected (ce) and uncorrected (ue), if an EDAC driver counts them. `root` is `/`
/// outside tests.
pub fn memory_errors(root: &Path) -> Vec<ErrorCounter> {
    let all = Path::new("sys/devices/system/edac/mc");
    let names = text::names(root, all).unwrap_or_default();
    let mut counters = Vec::new();
    for controller in names.iter().filter(|name| name.starts_with("mc")) {
        for count in ["ce_count", "ue_count"] {
            let value = text::read_number(root, all.join(controller).join(count)).ok();
            counters.push(ErrorCounter::new(format!("memory {controller}: {count}"), value));
        }
    }
    if counters.is_empty() {
        counters.push(ErrorCounter::new("memory: ce_count, ue_count".into(), None));
    }
    counters
}

/// Error counters of a disk from the output of `smartctl -j -A`; one counter without a value if
/// there are none.
pub fn smart_errors(disk: &str, json: Option<&str>) -> Vec<ErrorCounter> {
    let found = json.map(parse_smart).unwrap_or_default();
    if found.is_empty() {
        return vec![ErrorCounter::new(format!("{disk}: SMART"), None)];
    }
    found.into_iter().map(|(what, n)| ErrorCounter::new(format!("{disk}: SMART {what}"), Some(n))).collect()
}

/// Parses error counters of ATA, NVMe and SCSI disks from `smartctl -j -A`; none in other text.
pub(crate) fn parse_smart(json: &str) -> Vec<(String, u64)> {
    let Ok(all) = serde_json::from_str::<Value>(json) else { return Vec::new() };
    let mut found = Vec::new();
    for row in all["ata_smart_attributes"]["table"].as_array().into_iter().flatten() {
        let is_error = row["id"].as_u64().is_some_and(|id| ATA_ERRORS.contains(&id));
        if let (true, Some(name), Some(raw)) = (is_error, row["name"].as_str(), row["raw"]["value"].as_u64())
        {
            found.push((name.to_owned(), raw));
        }
    }
    let mut take = |part: &Value, name: &str, prefix: &str| {
        if let Some(value) = part[name].as_u64() {
            found.push((format!("{prefix}{name}"), value));
        }
    };
    for name in NVME_ERRORS {
        take(&all["nvme_smart_health_information_log"], name, "");
    }
    for way in ["read", "write", "verify"] {
        for name in SCSI_ERRORS {
            take(&all["scsi_error_counter_log"][way], name, &format!("{way} "));
        }
    }
    take(&all, "scsi_grown_defect_list", "");
    found
}

/// Parses btrfs's `error_stats`: a name and a number per line; malformed lines are skipped.
pub(crate) fn parse_error_stats(text: &str) -> Vec<(String, u64)> {
    let pair = |line: &str| {
        let (name, number) = line.trim().split_once(char::is_whitespace)?;
        Some((name.to_owned(), number.trim().parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}

/// Parses a hexadecimal number of SCSI devices in sysfs, `0x1f`.
pub(crate) fn parse_hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
#[path = "errors_tests.rs"]
mod tests;
