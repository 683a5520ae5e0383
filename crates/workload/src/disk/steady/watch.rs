//! Conditions during a write test: temperature, stolen CPU time, foreign traffic on the device,
//! free space.
use std::path::{Path, PathBuf};

use keepup_measure::cpu::CoreTimes;
use keepup_measure::disk::{Device, DiskCounters};
use keepup_measure::heat::Heat;
use keepup_measure::space::Space;
use keepup_measure::sum::Sums;
use keepup_results::SteadyConditions;

/// Monitor of one volume.
pub(super) struct Watch<'a> {
    root: &'a Path,
    volume: PathBuf,
    /// Block device of the volume, if any.
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
    /// Monitors the device of `volume`. `root` is `/` outside tests.
    pub(super) fn new(root: &'a Path, volume: &Path) -> Self {
        Self { root, volume: volume.into(), device: Device::under(root, volume).ok(), before: None }
    }

    /// Conditions now and since the previous reading; `own_bytes` is the total written by this
    /// test.
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

/// CPU time taken by other guests, in cores.
fn steal_cores(before: &Reading, now: &Reading) -> Option<f64> {
    let passed_ns = now.ns.saturating_sub(before.ns) as f64;
    let pairs = before.cores.as_ref()?.iter().zip(now.cores.as_ref()?);
    let stolen_ns: u64 =
        pairs.filter(|(b, n)| b.core == n.core).map(|(b, n)| n.since(b).steal_ns).saturating_sum();
    (passed_ns > 0.0).then(|| stolen_ns as f64 / passed_ns)
}

/// Device traffic minus this test's writes, bytes per second. Requests may be counted by the device
/// before they complete here, so a tolerance of a few requests applies.
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
