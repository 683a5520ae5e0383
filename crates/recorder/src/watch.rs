//! Samples of a recording's figures: its counters, their change since the last sample, and the
//! load of the machine.
//!
//! Sampling takes no lock of the data path and does not wait for a disk.
mod filling;
mod margin;
mod reduction;
mod slot;
mod warnings;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use keepup_measure::clock::Clock;
use keepup_measure::cpu::{CoreTimes, ProcessCpu, core_usage};
use keepup_measure::sum::Sums;
use keepup_recording::id::Id;
use keepup_results::live::{
    CoreNow, Drained, Flow, Margin, Moment, PoolNow, RejectedNow, StreamNow, VolumeNow,
};
use keepup_results::{Count, FailedRate};
use keepup_stream::rejected::Rejected;

use self::filling::Filling;
use self::reduction::Reduction;
pub use self::slot::WatcherSlot;
use self::warnings::Warnings;
use crate::Recorder;
use crate::counters::{Counters, StreamCounters, VolumeCounters};
use crate::free_space::{FreeSpace, SpaceMonitor};

/// Rate for which this machine was qualified.
#[derive(Clone, Debug, PartialEq)]
pub struct Qualified {
    /// The rate, in bytes per second.
    pub bytes_per_second: f64,
    /// Lowest rate above it that failed, if any.
    pub failed_above: Option<FailedRate>,
    /// Id of the qualification result.
    pub result: String,
    /// Differences between this setup and the qualified one.
    pub differs: Vec<String>,
}

/// Observer of a recording, with its last sample.
pub struct Watcher {
    recording: Id,
    counters: Arc<Counters>,
    clock: Arc<dyn Clock>,
    directories: Vec<PathBuf>,
    pool_bytes: u64,
    is_kept_in_part: bool,
    qualified: Option<Qualified>,
    spaces: SpaceMonitor,
    warnings: Warnings,
    filling: Filling,
    streams: Vec<LastStreamSample>,
    known: Vec<Arc<StreamCounters>>,
    before: LastSample,
    begun_ns: u64,
}

/// Counters at the last sample.
#[derive(Clone, Debug, Default)]
struct LastSample {
    at_ns: u64,
    flow: [Count; 3],
    /// Idle time of each intake.
    idle_ns: Vec<u64>,
    /// Time for which each intake had a connection that waited for memory.
    wait_ns: Vec<u64>,
    reduction: Reduction,
    drained_events: u64,
    volumes: Vec<LastVolumeSample>,
    cores: Vec<CoreTimes>,
    process: Option<ProcessCpu>,
}

#[derive(Clone, Copy, Debug, Default)]
struct LastVolumeSample {
    written_bytes: u64,
    full_ns: u64,
}

/// Counters of a stream at the last sample.
#[derive(Clone, Copy, Debug, Default)]
struct LastStreamSample {
    received: Count,
    /// Time of the last received event, monotonic.
    heard_ns: Option<u64>,
}

impl Watcher {
    /// Starts observing `recorder`. `qualified` is the rate to compare with.
    pub fn new(recorder: &Recorder, clock: Arc<dyn Clock>, qualified: Option<Qualified>) -> Self {
        let (counters, directories) = (recorder.counters(), recorder.directories());
        let spaces = SpaceMonitor::start(directories.clone(), Some(recorder.recording()), Arc::clone(&clock));
        let begun_ns = clock.now_ns();
        let volumes = vec![LastVolumeSample::default(); counters.volumes.len()];
        Self {
            recording: recorder.recording(),
            pool_bytes: recorder.pool_bytes(),
            is_kept_in_part: recorder.is_kept_in_part(),
            spaces,
            warnings: Warnings::default(),
            filling: Filling::default(),
            streams: Vec::new(),
            known: Vec::new(),
            before: LastSample {
                at_ns: begun_ns,
                volumes,
                cores: CoreTimes::read_all(Path::new("/")).unwrap_or_default(),
                process: Some(ProcessCpu::now()),
                ..LastSample::default()
            },
            begun_ns,
            counters,
            clock,
            directories,
            qualified,
        }
    }

    /// Id of the observed recording.
    pub fn recording(&self) -> Id {
        self.recording
    }

    /// Current figures. Rates are averages since the last call.
    pub fn sample(&mut self) -> Moment {
        let now_ns = self.clock.now_ns();
        let passed_s = (now_ns.saturating_sub(self.before.at_ns).max(1)) as f64 / 1e9;
        let flow = self.flow(passed_s);
        let mut moment = Moment {
            t_unix_ns: self.clock.unix_ns(),
            seconds: now_ns.saturating_sub(self.begun_ns) as f64 / 1e9,
            pool: self.pool(flow.received_bytes_per_second),
            reduction: self.before.reduction.sample(&self.counters.reducers, passed_s),
            volumes: self.volumes(now_ns, passed_s),
            streams: self.streams(now_ns, passed_s),
            margin: self.margin(flow.received_bytes_per_second),
            process_cores: self.process_cores(passed_s),
            cores: self.cores(),
            flow,
            warnings: Vec::new(),
        };
        self.before.at_ns = now_ns;
        moment.warnings = self.warnings.current(&moment);
        moment
    }

    /// New problems of the figures since the last call, each reported once.
    pub fn take_warnings(&mut self, moment: &Moment) -> Vec<String> {
        self.warnings.take_new(moment, &self.counters)
    }

    /// What the recorder warned of since the last call. Needs no sample.
    pub fn take_notices(&self) -> Vec<String> {
        self.counters.take_warnings()
    }

    fn flow(&mut self, passed_s: f64) -> Flow {
        let counters = &self.counters;
        let received = Count { events: counters.received_events(), bytes: counters.received_bytes() };
        let written = Count { events: counters.written_events(), bytes: counters.written_payload_bytes() };
        let durable = Count { events: counters.durable_events(), bytes: counters.durable_payload_bytes() };
        let now = [received, written, durable];
        let before = std::mem::replace(&mut self.before.flow, now);
        let rate = |at: usize| now[at].bytes.saturating_sub(before[at].bytes) as f64 / passed_s;
        let idle_ns: Vec<u64> = counters.intakes.iter().map(|intake| intake.idle_ns.load(Relaxed)).collect();
        let idle_s = changes(&idle_ns, &self.before.idle_ns).min().unwrap_or(0) as f64 / 1e9;
        self.before.idle_ns = idle_ns;
        let drained = self.spaces.drained_events().map(|events| {
            let before = std::mem::replace(&mut self.before.drained_events, events);
            Drained { events, events_per_second: events.saturating_sub(before) as f64 / passed_s }
        });
        Flow {
            received,
            written,
            durable,
            drained,
            received_bytes_per_second: rate(0),
            written_bytes_per_second: rate(1),
            durable_bytes_per_second: rate(2),
            received_events_per_second: received.events.saturating_sub(before[0].events) as f64 / passed_s,
            missing: missing(counters),
            missing_events: counters.gap_events(),
            rejected: counters.rejected().into_iter().map(rejected).collect(),
            connections: counters.connections(),
            intake_busy: (1.0 - idle_s / passed_s).clamp(0.0, 1.0),
        }
    }

    fn pool(&mut self, bytes_per_second: f64) -> PoolNow {
        let counters = &self.counters;
        let used_bytes = counters.pool_bytes_used();
        let waits_ns: Vec<u64> =
            counters.intakes.iter().map(|intake| intake.pool_wait_ns.load(Relaxed)).collect();
        let waiting = changes(&waits_ns, &self.before.wait_ns).any(|change| change > 0);
        self.before.wait_ns = waits_ns;
        let wait_ns = counters.pool_wait_ns();
        let free_bytes = self.pool_bytes.saturating_sub(used_bytes);
        PoolNow {
            bytes: self.pool_bytes,
            used_bytes,
            used_bytes_max: counters.pool_bytes_used_max(),
            room_seconds: (bytes_per_second > 0.0).then(|| free_bytes as f64 / bytes_per_second),
            wait_seconds: wait_ns as f64 / 1e9,
            waiting,
        }
    }

    fn volumes(&mut self, now_ns: u64, passed_s: f64) -> Vec<VolumeNow> {
        let counters = Arc::clone(&self.counters);
        let volumes = counters.volumes.iter().enumerate();
        let mut seen: Vec<(VolumeNow, Option<FreeSpace>)> = volumes
            .map(|(at, v)| (self.volume(at, v, now_ns, passed_s), self.spaces.of(at, now_ns)))
            .collect();
        // Other writers fill the same file system too.
        let written = seen.iter().map(|(volume, _)| volume.written_bytes).collect();
        let average = self.filling.rates(now_ns, written);
        let devices: Vec<Option<u64>> =
            seen.iter().map(|(_, space)| space.map(|space| space.device)).collect();
        let rates: Vec<(Option<u64>, f64)> =
            devices.iter().copied().zip(average.into_iter().flatten()).collect();
        self.warnings.set_devices(devices);
        for (volume, space) in &mut seen {
            let Some(space) = space else { continue };
            let beside = rates.iter().filter(|(device, _)| *device == Some(space.device));
            let rate: f64 = beside.map(|(_, rate)| rate).float_sum();
            (volume.free_bytes, volume.total_bytes) = (Some(space.free_bytes), Some(space.total_bytes));
            volume.full_in_seconds =
                (rate > 0.0 && !self.is_kept_in_part).then(|| space.free_bytes as f64 / rate);
        }
        seen.into_iter().map(|(volume, _)| volume).collect()
    }

    fn volume(&mut self, at: usize, v: &VolumeCounters, now_ns: u64, passed_s: f64) -> VolumeNow {
        let (written_bytes, full_ns) = (v.written_bytes.load(Relaxed), v.full_ns.load(Relaxed));
        let now = LastVolumeSample { written_bytes, full_ns };
        let before = std::mem::replace(&mut self.before.volumes[at], now);
        let rate = written_bytes.saturating_sub(before.written_bytes) as f64 / passed_s;
        let oldest_ns = v.oldest_ns.load(Relaxed);
        let stalled_ns = if oldest_ns == 0 { 0 } else { now_ns.saturating_sub(oldest_ns) };
        VolumeNow {
            path: self.directories.get(at).map_or("null".into(), |d| d.display().to_string()),
            written_bytes,
            written_bytes_per_second: rate,
            durable_bytes: v.durable_payload_bytes.load(Relaxed),
            queue_bytes: self.counters.placed_bytes(at).saturating_sub(written_bytes),
            full: (full_ns.saturating_sub(before.full_ns) as f64 / 1e9 / passed_s).min(1.0),
            stalled_seconds: stalled_ns as f64 / 1e9,
            write_seconds_max: v.write_ns_max.load(Relaxed) as f64 / 1e9,
            flush_seconds_max: v.sync_ns_max.load(Relaxed) as f64 / 1e9,
            flushes: v.syncs.load(Relaxed),
            segments: v.segments.load(Relaxed),
            rests: v.rests.load(Relaxed),
            failure: v.failure.get().or(v.trouble.get()).cloned(),
            ..VolumeNow::default()
        }
    }

    fn streams(&mut self, now_ns: u64, passed_s: f64) -> Vec<StreamNow> {
        self.counters.streams.catch_up(&mut self.known);
        self.streams.resize(self.known.len(), LastStreamSample::default());
        let known = self.known.iter().zip(&mut self.streams);
        let mut streams: Vec<_> = known.map(|(s, seen)| stream(s, seen, now_ns, passed_s)).collect();
        streams.sort_by_key(|stream| stream.id);
        streams
    }

    fn margin(&self, bytes_per_second: f64) -> Option<Margin> {
        let qualified = self.qualified.as_ref().filter(|qualified| qualified.bytes_per_second > 0.0)?;
        Some(Margin {
            qualified_bytes_per_second: qualified.bytes_per_second,
            used: bytes_per_second / qualified.bytes_per_second,
            failed_above: qualified.failed_above.clone(),
            result: qualified.result.clone(),
            differs: qualified.differs.clone(),
        })
    }

    fn process_cores(&mut self, passed_s: f64) -> Option<f64> {
        let now = ProcessCpu::now();
        let before = self.before.process.replace(now)?;
        Some(now.since_ns(before) as f64 / 1e9 / passed_s)
    }

    fn cores(&mut self) -> Vec<CoreNow> {
        let Ok(now) = CoreTimes::read_all(Path::new("/")) else { return Vec::new() };
        let before = std::mem::replace(&mut self.before.cores, now);
        let usage = core_usage(&before, &self.before.cores);
        usage.iter().map(|core| CoreNow { core: core.core, busy: core.busy_percent / 100.0 }).collect()
    }
}

/// Changes of counters since the last sample, which may have had none.
fn changes(now: &[u64], before: &[u64]) -> impl Iterator<Item = u64> {
    let before = before.iter().copied().chain(std::iter::repeat(0));
    now.iter().zip(before).map(|(now, before)| now.saturating_sub(before))
}

fn count(events: &std::sync::atomic::AtomicU64, bytes: &std::sync::atomic::AtomicU64) -> Count {
    Count { events: events.load(Relaxed), bytes: bytes.load(Relaxed) }
}

fn missing(counters: &Counters) -> std::collections::BTreeMap<String, u64> {
    counters.gap_events_by_cause().into_iter().map(|(cause, events)| (cause.to_string(), events)).collect()
}

fn rejected(row: Rejected) -> RejectedNow {
    RejectedNow {
        text: row.to_string(),
        source: row.source,
        reason: row.reason.name().to_owned(),
        unit: row.unit.to_string(),
        count: row.count,
        foreign: row.is_foreign,
    }
}

fn stream(figures: &StreamCounters, seen: &mut LastStreamSample, now_ns: u64, passed_s: f64) -> StreamNow {
    let received = count(&figures.received_events, &figures.received_bytes);
    let before = std::mem::replace(&mut seen.received, received);
    if received.events > before.events {
        seen.heard_ns = Some(now_ns);
    }
    StreamNow {
        id: figures.info.id,
        name: figures.info.name.clone(),
        element: figures.info.element.to_string(),
        shape: figures.info.shape.clone(),
        compression: figures.info.compression.map(|compression| compression.as_str().to_owned()),
        connected: figures.connected.load(Relaxed),
        ended: figures.ended.load(Relaxed),
        received,
        durable: count(&figures.durable_events, &figures.durable_bytes),
        missing_events: figures.gap_events.load(Relaxed),
        received_bytes_per_second: received.bytes.saturating_sub(before.bytes) as f64 / passed_s,
        next_sequence: figures.next_sequence.load(Relaxed),
        silent_seconds: seen.heard_ns.map(|heard_ns| now_ns.saturating_sub(heard_ns) as f64 / 1e9),
    }
}
