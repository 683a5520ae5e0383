//! Simulated devices of this machine that are ready to be read.
use std::path::Path;

use super::method::open;
use super::target::Target;

/// PCI number of QEMU's `edu` device (docs/specs/edu.rst of QEMU).
const EDU: (&str, &str) = ("0x1234", "0x11e8");

/// A simulated device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedDevice {
    /// Target, as `keepup register read` takes it.
    pub target: String,
    /// Built-in profile, if it has one.
    pub profile: Option<String>,
}

/// QEMU's `edu` devices that are bound to vfio-pci, and the first master window of the kernel's fake VME
/// bridge if it is configured. Reading them, and filling the memory of `edu`, disturbs no hardware. `root` is
/// `/` except in tests.
pub fn simulated_devices(root: &Path) -> Vec<SimulatedDevice> {
    let functions = std::fs::read_dir(root.join("sys/bus/pci/devices")).into_iter().flatten();
    let is_ready = |function: &Path| {
        let is = |name: &str, value: &str| {
            std::fs::read_to_string(function.join(name)).is_ok_and(|text| text.trim() == value)
        };
        let driver = std::fs::read_link(function.join("driver"));
        is("vendor", EDU.0) && is("device", EDU.1) && driver.is_ok_and(|driver| driver.ends_with("vfio-pci"))
    };
    let functions = functions.flatten().filter(|function| is_ready(&function.path()));
    let mut devices: Vec<_> = functions
        .map(|function| SimulatedDevice {
            target: format!("vfio:{}/bar0", function.file_name().to_string_lossy()),
            profile: Some("edu".into()),
        })
        .collect();
    devices.sort_by(|a, b| a.target.cmp(&b.target));
    if root.join("sys/module/vme_fake").exists() {
        let window = Target::Vme { path: root.join("dev/bus/vme/m0"), window: None };
        if open(&window, root, None).is_ok() {
            devices.push(SimulatedDevice { target: window.to_string(), profile: None });
        }
    }
    devices
}

#[cfg(test)]
#[path = "simulated_tests.rs"]
mod tests;
