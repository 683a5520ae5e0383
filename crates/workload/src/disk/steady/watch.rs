//! What else goes on while a disk is written to: heat, stolen processor time, others on the device, room.
use std::path::{Path, PathBuf};

use keepup_measure::cpu::CoreTimes;
use keepup_measure::disk::{Device, DiskCounters};
use keepup_measure::heat::Heat;
use keepup_measure::space::Space;
use keepup_results::SteadyConditions;

/// The watch over one volume.
pub(super) struct Watch<'a> {
    root: &'a Path,
    volume: PathBuf,
    /// The device under the volume, where there is one.
    device: Option<Device>,
    before: Option<Reading>,
}

/// Counters at one moment.
struct Reading {
    ns: u64,
    own_bytes: u64,
    counters: Option<DiskCounters>,
    cores: Option<Vec<CoreTimes>>,
}

impl<'a> Watch<'a> {
    /// Over the volume that holds `volume`. `root` is `/` in earnest.
    pub(super) fn new(root: &'a Path, volume: &Path) -> Self {
        Self { root, volume: volume.into(), device: Device::under(root, volume).ok(), before: None }
    }

    /// What goes on now, and since the reading before; `own_bytes` were written by this test until now.
    pub(super) fn read(&mut self, now_ns: u64, own_bytes: u64) -> SteadyConditions {
        let disks = self.device.as_ref().map(|device| device.disks.as_slice()).unwrap_or_default();
        let heat = Heat::read(self.root, disks);
        let name = self.device.as_ref().map(|device| device.name.as_str());
        let reading = Reading {
            ns: now_ns,
            own_bytes,
            counters: name.and_then(|name| DiskCounters::read(self.root, name).ok()),
            cores: CoreTimes::read_all(self.root).ok(),
        };
        let since = self.before.as_ref().map(|before| (before, &reading));
        let conditions = SteadyConditions {
            drive_celsius: heat.drive_celsius,
            drive_celsius_max: heat.drive_celsius_max,
            frequency_share: heat.frequency_share,
            throttled: heat.throttled,
            steal_cores: since.and_then(|(before, now)| steal_cores(before, now)),
            neighbour_bytes_per_second: since.and_then(|(before, now)| neighbours(before, now)),
            fill_percent: Space::of(&self.volume).ok().map(|space| space.fill_percent()),
        };
        self.before = Some(reading);
        conditions
    }
}

/// Processor time given to others, in cores.
fn steal_cores(before: &Reading, now: &Reading) -> Option<f64> {
    let passed_ns = now.ns.saturating_sub(before.ns) as f64;
    let pairs = before.cores.as_ref()?.iter().zip(now.cores.as_ref()?);
    let stolen_ns: u64 = pairs.filter(|(b, n)| b.core == n.core).map(|(b, n)| n.since(b).steal_ns).sum();
    (passed_ns > 0.0).then(|| stolen_ns as f64 / passed_ns)
}

/// What the device did less what this test wrote, in bytes per second. A request may count before it is seen
/// to have ended here, so a few requests' worth either way is nobody's.
fn neighbours(before: &Reading, now: &Reading) -> Option<f64> {
    let passed_ns = now.ns.saturating_sub(before.ns);
    let usage = now.counters?.since(&before.counters?, passed_ns);
    let own = now.own_bytes.saturating_sub(before.own_bytes);
    let others = usage.written_bytes.saturating_sub(own) + usage.read_bytes;
    (passed_ns > 0).then(|| others as f64 * 1e9 / passed_ns as f64)
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
