//! Causes of throttling: drive temperatures, CPU frequency and throttling counts, from sysfs.
//! Usually absent in virtual machines.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::sum::Sums;
use crate::text;

/// Driver names of drive temperature sensors.
const DRIVERS: [&str; 2] = ["nvme", "drivetemp"];
const CORES: &str = "sys/devices/system/cpu";

/// Temperatures and throttling, where available.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heat {
    /// Temperature of the hottest drive, degrees Celsius.
    pub drive_celsius: Option<f64>,
    /// Temperature limit of that drive, degrees Celsius.
    pub drive_celsius_max: Option<f64>,
    /// Mean CPU frequency relative to the maximum.
    pub frequency_share: Option<f64>,
    /// Thermal throttling events since boot, summed over cores and packages.
    pub throttled: Option<u64>,
}

impl Heat {
    /// Current state, with the sensors of `disks`. `root` is `/` outside tests.
    pub fn read(root: &Path, disks: &[String]) -> Self {
        let drive = hottest(root, disks);
        let cores = text::names(root, CORES).unwrap_or_default();
        let numbered = |name: &&String| {
            name.strip_prefix("cpu").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        };
        let (mut shares, mut throttled) = (Vec::new(), None);
        for core in cores.iter().filter(numbered) {
            let number = |file: &str| text::read_number(root, format!("{CORES}/{core}/{file}")).ok();
            let now = number("cpufreq/scaling_cur_freq");
            let most = number("cpufreq/cpuinfo_max_freq").filter(|khz| *khz > 0);
            shares.extend(now.zip(most).map(|(now, most)| now as f64 / most as f64));
            for counter in ["core_throttle_count", "package_throttle_count"] {
                let count = number(&format!("thermal_throttle/{counter}"));
                throttled = count.map(|count| count + throttled.unwrap_or(0)).or(throttled);
            }
        }
        let mean = shares.iter().float_sum() / shares.len() as f64;
        Self {
            drive_celsius: drive.map(|(celsius, _)| celsius),
            drive_celsius_max: drive.and_then(|(_, most)| most),
            frequency_share: (!shares.is_empty()).then_some(mean),
            throttled,
        }
    }
}

/// Temperature and limit of the hottest drive.
fn hottest(root: &Path, disks: &[String]) -> Option<(f64, Option<f64>)> {
    let class = Path::new("sys/class/hwmon");
    let devices: Vec<_> = disks
        .iter()
        .filter_map(|disk| root.join("sys/class/block").join(disk).join("device").canonicalize().ok())
        .collect();
    let mut found: Option<(f64, Option<f64>)> = None;
    for sensor in text::names(root, class).unwrap_or_default() {
        let sensor = class.join(sensor);
        let driver = text::read_trimmed(root, sensor.join("name")).unwrap_or_default();
        let device = root.join(&sensor).join("device").canonicalize();
        if !DRIVERS.contains(&driver.as_str()) || !device.is_ok_and(|device| devices.contains(&device)) {
            continue;
        }
        // Unit: 0.001 degrees Celsius (Documentation/hwmon/sysfs-interface).
        let celsius = |file: &str| Some(text::read_number(root, sensor.join(file)).ok()? as f64 / 1e3);
        let Some(now) = celsius("temp1_input") else { continue };
        if found.is_none_or(|(hottest, _)| now > hottest) {
            found = Some((now, celsius("temp1_max").filter(|most| *most > 0.0)));
        }
    }
    found
}

#[cfg(test)]
#[path = "heat_tests.rs"]
mod tests;
