//! PCI Express links of devices.
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Reading;
use crate::error::MeasureError;
use crate::text;

/// PCI Express link of a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Current speed, GT/s per lane.
    pub gigatransfers: Reading<f64>,
    /// Lanes in use.
    pub lanes: Reading<u64>,
    /// Maximum speed of the device, GT/s per lane.
    pub gigatransfers_max: Reading<f64>,
    /// Maximum number of lanes of the device.
    pub lanes_max: Reading<u64>,
}

impl Link {
    /// Rate in one direction after line coding and before packet headers, B/s: 8b/10b up to generation 2,
    /// 128b/130b from generation 3. `None` if speed or width is not readable.
    #[must_use]
    pub fn bytes_per_second(&self) -> Option<f64> {
        let (speed, lanes) = (*self.gigatransfers.value()?, *self.lanes.value()?);
        let coding = if speed < 8.0 { 0.8 } else { 128.0 / 130.0 };
        Some(speed * 1e9 / 8.0 * coding * lanes as f64)
    }

    pub(crate) fn collect(root: &Path, device: &Path) -> Self {
        let speed = |name: &str| {
            // "8.0 GT/s PCIe"
            upwards(root, device, name).and_then(|text| {
                let number = text.split_ascii_whitespace().next().and_then(|word| word.parse().ok());
                number.filter(|n: &f64| n.is_finite() && *n > 0.0).ok_or_else(|| format!("{name} is {text}"))
            })
        };
        let lanes = |name: &str| {
            upwards(root, device, name).and_then(|text| {
                text.parse().ok().filter(|lanes| *lanes > 0).ok_or_else(|| format!("{name} is {text}"))
            })
        };
        Self {
            gigatransfers: speed("current_link_speed"),
            lanes: lanes("current_link_width"),
            gigatransfers_max: speed("max_link_speed"),
            lanes_max: lanes("max_link_width"),
        }
    }
}

/// File `name` of the nearest device at or above `device` that has one: node and link of a disk or
/// virtual card are those of its slot.
pub(crate) fn upwards(root: &Path, device: &Path, name: &str) -> Reading<String> {
    let read = |directory: &Path| text::read_trimmed(directory, name).ok();
    match nearest(root, device, read) {
        Ok(Some(text)) => Reading::Value(text),
        Ok(None) => {
            let start = root.join(device);
            Reading::NotReadable(format!("no device at or above {} has {name}", start.display()))
        }
        Err(why) => Reading::from(Err(why)),
    }
}

/// What `read` finds in the nearest device at or above `device`.
pub(crate) fn nearest<T>(
    root: &Path,
    device: &Path,
    read: impl Fn(&Path) -> Option<T>,
) -> Result<Option<T>, MeasureError> {
    let start = root.join(device);
    let place = std::fs::canonicalize(&start).map_err(|why| MeasureError::Read { path: start, why })?;
    let devices =
        std::fs::canonicalize(root.join("sys/devices")).unwrap_or_else(|_| root.join("sys/devices"));
    let mut above = place.ancestors().take_while(|path| path.starts_with(&devices) && **path != devices);
    Ok(above.find_map(read))
}
