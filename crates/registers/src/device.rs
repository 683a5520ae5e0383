//! The kernel's information about the device under test.
mod express;

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use keepup_measure::environment::Environment;
use keepup_measure::settings::CoreList;
use keepup_results::RegisterDevice;

use self::express::Express;
use super::target::{Target, UioDevice};

/// Collects information about the target's device.
pub(super) fn inspect(target: &Target, root: &Path) -> RegisterDevice {
    let is_virtual = Environment::collect(&[], root).machine.virtualised.value().copied();
    if let Target::Xdma { path } = target {
        let is_device = std::fs::metadata(path).is_ok_and(|kind| kind.file_type().is_char_device());
        return RegisterDevice { is_virtual, is_simulated: !is_device, ..RegisterDevice::default() };
    }
    if let Target::IpbusSelf = target {
        return RegisterDevice { is_virtual, is_simulated: true, ..RegisterDevice::default() };
    }
    if let Target::Vme { .. } = target {
        // The kernel's fake bridge. Only one bridge at a time has windows with these names.
        let is_simulated = root.join("sys/module/vme_fake").exists();
        let driver = Some("vme_user".into());
        return RegisterDevice { is_virtual, is_simulated, driver, ..RegisterDevice::default() };
    }
    let directory = match (target.function(), target) {
        (Some(function), _) => root.join("sys/bus/pci/devices").join(function),
        (None, Target::Uio { device: UioDevice::Number(number), .. }) => uio_device(root, *number),
        (None, _) => return RegisterDevice { is_virtual, ..RegisterDevice::default() },
    };
    let line = |name: &str| {
        let text = std::fs::read_to_string(directory.join(name)).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let number = |name| line(name).map(|text| text.trim_start_matches("0x").to_owned());
    let linked = |name: &str| {
        let path = std::fs::read_link(directory.join(name)).ok()?;
        path.file_name().map(|name| name.to_string_lossy().into_owned())
    };
    let policy = std::fs::read_to_string(root.join("sys/module/pcie_aspm/parameters/policy")).ok();
    let express = std::fs::read(directory.join("config")).ok().and_then(|space| Express::parse(&space));
    RegisterDevice {
        id: number("vendor").zip(number("device")).map(|(vendor, device)| format!("{vendor}:{device}")),
        driver: linked("driver"),
        link_speed: line("current_link_speed"),
        link_width: line("current_link_width"),
        numa_node: line("numa_node").and_then(|node| node.parse().ok()),
        iommu_group: linked("iommu_group"),
        iommu_type: line("iommu_group/type"),
        payload_bytes_max: express.map(|express| express.payload_bytes_max),
        read_request_bytes_max: express.map(|express| express.read_request_bytes_max),
        link_states: express.map(|express| express.link_states.into()),
        aspm: policy.map(|policy| policy.trim().to_owned()),
        is_virtual,
        is_simulated: false,
    }
}

/// Processors near the target's device, last ones first because they serve fewer interrupts. Empty without a
/// PCI function or if the kernel does not report them.
pub(super) fn processors_near(target: &Target, root: &Path) -> Vec<usize> {
    let list = target.function().and_then(|function| {
        let path = root.join("sys/bus/pci/devices").join(function).join("local_cpulist");
        CoreList::parse(std::fs::read_to_string(path).ok()?.trim())
    });
    list.iter().flat_map(|list| list.0.iter().rev()).map(|number| *number as usize).collect()
}

/// Directory of a UIO device's underlying device.
pub(super) fn uio_device(root: &Path, number: u32) -> PathBuf {
    root.join(format!("sys/class/uio/uio{number}/device"))
}
