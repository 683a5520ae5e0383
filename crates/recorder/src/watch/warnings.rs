//! Warnings about a recording: the current ones, and the new ones.
use std::sync::atomic::Ordering::Relaxed;

use keepup_measure::sum::Sums;
use keepup_results::live::{Moment, VolumeNow};

use super::margin::{self, RateRange};
use crate::counters::Counters;

/// The pool causes a warning when it bridges a stall of less than this, in seconds, and is more
/// than [`POOL_USED`] full.
const BRIDGE_SECONDS: f64 = 1.0;
/// Share of the pool in use below which there is no warning.
const POOL_USED: f64 = 0.5;
/// A write or flush in progress for this long causes a warning, in seconds.
const STALL_SECONDS: f64 = 1.0;
/// A volume that will be full within this time causes a warning, in seconds.
const FULL_IN_SECONDS: f64 = 3600.0;
/// A reducer thread that is busy for more than this share of the time is overloaded.
const REDUCER_BUSY: f64 = 0.95;

/// Most rows of rejected data that are listed.
const REJECTED_MAX: usize = 10;

/// Warnings already issued, so that each is issued once.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    was_waiting: bool,
    missing: u64,
    failed: Vec<bool>,
    rests: Vec<u64>,
    /// Device of each volume, if known.
    devices: Vec<Option<u64>>,
    /// For each volume that was the first on its disk: when the disk is full by the last warning, in seconds
    /// since the start of the recording.
    filling: Vec<Option<f64>>,
    was_behind: bool,
    range: RateRange,
}

impl Warnings {
    /// Sets the device of each volume.
    pub(super) fn set_devices(&mut self, devices: Vec<Option<u64>>) {
        self.devices = devices;
    }

    /// Disks that take data: the first volume on each, and the names of all on it.
    fn disks<'a>(&self, moment: &'a Moment) -> Vec<(usize, &'a VolumeNow, String)> {
        let device = |at: usize| self.devices.get(at).copied().flatten();
        let volumes = || moment.volumes.iter().enumerate();
        let is_first =
            |at: usize| device(at).is_none() || !(0..at).any(|before| device(before) == device(at));
        let names = |at: usize| {
            let beside = |(other, _): &(usize, &VolumeNow)| {
                *other == at || device(at).is_some() && device(*other) == device(at)
            };
            let names: Vec<&str> = volumes().filter(beside).map(|(_, volume)| volume.path.as_str()).collect();
            names.join(", ")
        };
        volumes().filter(|(at, _)| is_first(*at)).map(|(at, volume)| (at, volume, names(at))).collect()
    }

    /// New forecasts: the first for a disk, one that is much earlier than the last, one that takes it back.
    fn new_forecasts(&mut self, moment: &Moment) -> Vec<String> {
        self.filling.resize(moment.volumes.len(), None);
        let mut news = Vec::new();
        for (at, volume, names) in self.disks(moment) {
            let Some(seconds) = volume.full_in_seconds else { continue };
            let announced = self.filling[at].map(|full_at| full_at - moment.seconds);
            let is_worse = announced.is_none_or(|announced| seconds < 0.5 * announced);
            if seconds < FULL_IN_SECONDS && is_worse {
                self.filling[at] = Some(moment.seconds + seconds);
                news.extend(full_soon(volume, &names));
            } else if seconds > 2.0 * FULL_IN_SECONDS && announced.is_some() {
                // Taken back only far from the limit: a rate that varies about it causes no new warning.
                self.filling[at] = None;
                let hours = seconds / 3600.0;
                news.push(format!(
                    "{names} fills more slowly than announced: full in {hours:.1} h at this rate"
                ));
            }
        }
        news
    }

    /// Current warnings, most severe first.
    pub(super) fn current(&self, moment: &Moment) -> Vec<String> {
        let mut warnings = Vec::new();
        warnings.extend(moment.volumes.iter().filter_map(failed));
        if moment.flow.missing_events > 0 {
            let causes = moment.flow.missing.iter().map(|(cause, events)| format!("{events} {cause}"));
            let causes: Vec<String> = causes.collect();
            warnings.push(format!(
                "{} events are missing: {}",
                moment.flow.missing_events,
                causes.join(", ")
            ));
        }
        let rejected = &moment.flow.rejected;
        warnings.extend(rejected.iter().take(REJECTED_MAX).map(|row| row.text.clone()));
        if rejected.len() > REJECTED_MAX {
            let more = rejected.len() - REJECTED_MAX;
            warnings.push(format!("data of {more} more sources or for other reasons are not recorded"));
        }
        let pool = &moment.pool;
        if pool.waiting {
            warnings.push(format!("the memory is full: sources must wait for {}", slowest(moment)));
        } else if let Some(seconds) = pool.room_seconds.filter(|seconds| {
            *seconds < BRIDGE_SECONDS && pool.used_bytes as f64 > POOL_USED * pool.bytes as f64
        }) {
            warnings.push(format!("free memory bridges only {seconds:.1} s"));
        }
        warnings.extend(moment.volumes.iter().filter_map(stalled));
        warnings.extend(moment.margin.as_ref().and_then(margin::warning));
        let disks = self.disks(moment);
        warnings.extend(disks.into_iter().filter_map(|(_, volume, names)| full_soon(volume, &names)));
        warnings
    }

    /// Warnings that are new since the last call.
    pub(super) fn take_new(&mut self, moment: &Moment, counters: &Counters) -> Vec<String> {
        self.failed.resize(moment.volumes.len(), false);
        self.rests.resize(moment.volumes.len(), 0);
        let mut news = Vec::new();
        for (at, volume) in moment.volumes.iter().enumerate() {
            if volume.rests > std::mem::replace(&mut self.rests[at], volume.rests) {
                news.push(format!(
                    "{} is slow: new data goes to other volumes until it recovers",
                    volume.path
                ));
            }
            if let (Some(warning), false) = (failed(volume), self.failed[at]) {
                self.failed[at] = true;
                news.push(warning);
            }
        }
        news.extend(self.new_forecasts(moment));
        let excess: u64 = counters.volumes.iter().map(|v| v.keep_excess_bytes.load(Relaxed)).saturating_sum();
        if excess > 0 && !std::mem::replace(&mut self.was_behind, excess > 0) {
            news.push(format!(
                "{:.2} GB above the --keep limit are kept because no drain has copied them: \
                 see keepup drain --follow",
                excess as f64 / 1e9
            ));
        }
        self.was_behind = excess > 0;
        if moment.pool.waiting && !self.was_waiting {
            news.push(format!(
                "all {:.0} MB of memory are full: sources are faster than {}, and must wait",
                moment.pool.bytes as f64 / 1e6,
                slowest(moment)
            ));
        }
        self.was_waiting = moment.pool.waiting;
        let missing = moment.flow.missing_events;
        let more = missing.saturating_sub(std::mem::replace(&mut self.missing, missing));
        if more > 0 {
            news.push(format!("{more} events are missing, {missing} so far"));
        }
        news.extend(self.new_range(moment));
        news
    }

    /// Warning that the rate entered a worse range of the qualification.
    fn new_range(&mut self, moment: &Moment) -> Option<String> {
        let margin = moment.margin.as_ref()?;
        let range = RateRange::of(margin);
        // A rate that varies about a limit causes no new warning.
        if margin.used < margin::FAR {
            self.range = range;
        }
        let is_worse = range > self.range;
        self.range = self.range.max(range);
        is_worse.then(|| margin::warning(margin)).flatten()
    }
}

/// The bottleneck when the memory is full.
fn slowest(moment: &Moment) -> &'static str {
    let threads = moment.reduction.iter().flat_map(|reduction| &reduction.busy);
    if threads.into_iter().any(|busy| *busy > REDUCER_BUSY) { "the reduction" } else { "the volumes" }
}

fn failed(volume: &VolumeNow) -> Option<String> {
    volume.failure.as_ref().map(|why| format!("{} takes no more data: {why}", volume.path))
}

fn stalled(volume: &VolumeNow) -> Option<String> {
    let stalled = volume.failure.is_none() && volume.stalled_seconds > STALL_SECONDS;
    stalled.then(|| format!("{} has not answered for {:.1} s", volume.path, volume.stalled_seconds))
}

/// Warning of the disk of `volume`, with these volumes.
fn full_soon(volume: &VolumeNow, names: &str) -> Option<String> {
    let seconds = volume.full_in_seconds.filter(|seconds| *seconds < FULL_IN_SECONDS)?;
    Some(format!("{names} is full in {:.0} min at this rate", seconds / 60.0))
}

#[cfg(test)]
#[path = "warnings_tests.rs"]
mod tests;
