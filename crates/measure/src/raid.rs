//! Software RAID of a volume: md and btrfs.
use std::path::Path;

use crate::text;

/// Description of a software RAID.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Raid {
    /// Text such as "md raid5 over 4 devices, chunks of 524288 bytes" or "btrfs raid0 over 2
    /// devices".
    pub(crate) description: Option<String>,
    /// All block devices of a multi-device file system.
    pub(crate) devices: Vec<String>,
}

impl Raid {
    /// RAID of the file system on block device `name`.
    pub(crate) fn on(root: &Path, name: &str) -> Self {
        md(root, name).or_else(|| btrfs(root, name)).unwrap_or_default()
    }
}

fn md(root: &Path, name: &str) -> Option<Raid> {
    let directory = Path::new("sys/class/block").join(name).join("md");
    let level = text::read_trimmed(root, directory.join("level")).ok()?;
    let devices = text::read_number(root, directory.join("raid_disks")).ok()?;
    let chunk = text::read_number(root, directory.join("chunk_size")).ok().filter(|bytes| *bytes > 0);
    let chunk = chunk.map(|bytes| format!(", chunks of {bytes} bytes")).unwrap_or_default();
    Some(Raid { description: Some(format!("md {level} over {devices} devices{chunk}")), devices: Vec::new() })
}

fn btrfs(root: &Path, name: &str) -> Option<Raid> {
    let all = Path::new("sys/fs/btrfs");
    let devices_of = |id: &String| text::names(root, all.join(id).join("devices")).unwrap_or_default();
    let ids = text::names(root, all).ok()?;
    let id = ids.into_iter().find(|id| devices_of(id).iter().any(|device| device == name))?;
    let devices = devices_of(&id);
    // There is one directory per RAID profile; more than one during a conversion.
    let data = all.join(id).join("allocation/data");
    let mut profiles = text::names(root, &data).unwrap_or_default();
    profiles.retain(|profile| root.join(&data).join(profile).is_dir());
    let plural = if devices.len() == 1 { "" } else { "s" };
    let description = format!("btrfs {} over {} device{plural}", profiles.join(" and "), devices.len());
    Some(Raid { description: (!profiles.is_empty()).then_some(description), devices })
}

#[cfg(test)]
#[path = "raid_tests.rs"]
mod tests;
