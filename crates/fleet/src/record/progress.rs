//! Figures of the current recorder, for heartbeats.
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keepup_measure::clock::Clock;
use keepup_measure::sum::Sums;
use keepup_recorder::Recorder;
use keepup_recorder::counters::{Counters as RecorderCounters, StreamCounters};
use keepup_recorder::watch::Watcher;
use keepup_results::live::{Moment, VolumeNow};

use super::drain::FeedFigures;
use crate::message::{Counters, Health, VolumeHealth};

/// Most warnings in a heartbeat.
const WARNINGS_MAX: usize = 16;

/// Figures of the current recorder, for heartbeats.
#[derive(Clone, Default)]
pub(super) struct Progress(Arc<Mutex<Option<Watched>>>);

struct Watched {
    counters: Arc<RecorderCounters>,
    streams: Vec<Arc<StreamCounters>>,
    feed: Option<FeedFigures>,
    /// None after the end.
    watcher: Option<Watcher>,
    /// Latest one.
    health: Option<Health>,
}

impl Progress {
    /// Reports the figures of `recorder` from now on. They are final when the guard is dropped.
    pub(super) fn watch(&self, recorder: &Recorder, clock: Arc<dyn Clock>) -> ProgressGuard {
        // Queries the file systems, so not under the lock, for which the loop of the agent waits.
        let watcher = Some(Watcher::new(recorder, clock, None));
        let counters = recorder.counters();
        let guard = ProgressGuard { progress: self.clone(), counters: Arc::clone(&counters) };
        *self.lock() = Some(Watched { counters, streams: Vec::new(), feed: None, watcher, health: None });
        guard
    }

    /// Reports the figures of the recorder's drain, too.
    pub(super) fn watch_drain(&self, feed: FeedFigures) {
        self.lock().iter_mut().for_each(|watched| watched.feed = Some(feed.clone()));
    }

    pub(super) fn clear(&self) {
        *self.lock() = None;
    }

    /// Takes the last sample of the recorder with these counters, and ends the watcher and its thread.
    fn end(&self, counters: &Arc<RecorderCounters>) {
        let is_same = |watched: &&mut Watched| Arc::ptr_eq(&watched.counters, counters);
        let watcher = self.lock().as_mut().filter(is_same).and_then(|watched| watched.watcher.take());
        let Some(mut watcher) = watcher else { return };
        // Not under the lock, for which the loop of the agent waits.
        let last = health(watcher.sample());
        if let Some(watched) = self.lock().as_mut().filter(is_same) {
            watched.health = Some(last);
        }
    }

    /// Health of the recorder. Takes a sample, so rates in warnings are averages since the last call.
    pub(super) fn health(&self) -> Option<Health> {
        let mut watched = self.lock();
        let watched = watched.as_mut()?;
        watched.sample();
        let mut health = watched.health.clone()?;
        let failure = watched.feed.as_ref().and_then(FeedFigures::failure);
        let warning = failure.map(|why| format!("the drain has ended: {why}"));
        health.warnings.splice(0..0, warning);
        health.warnings.truncate(WARNINGS_MAX);
        Some(health)
    }

    pub(super) fn counters(&self) -> Counters {
        let mut watched = self.lock();
        let Some(Watched { counters, streams, feed, .. }) = watched.as_mut() else {
            return Counters::default();
        };
        counters.streams.catch_up(streams);
        let has = |is_set: fn(&StreamCounters) -> bool| {
            let set = streams.iter().filter(|stream| is_set(stream)).count();
            u32::try_from(set).unwrap_or(u32::MAX)
        };
        let intakes = &counters.intakes;
        Counters {
            events: intakes.iter().map(|intake| intake.received_events.load(Relaxed)).saturating_sum(),
            bytes: intakes.iter().map(|intake| intake.received_bytes.load(Relaxed)).saturating_sum(),
            durable_events: counters
                .volumes
                .iter()
                .map(|volume| volume.durable_events.load(Relaxed))
                .saturating_sum(),
            connected_streams: has(|stream| stream.connected.load(Relaxed)),
            ended_streams: has(|stream| stream.ended.load(Relaxed)),
            drained_bytes: feed.as_ref().map_or(0, FeedFigures::drained_bytes),
            copied_events: feed.as_ref().map_or(0, FeedFigures::copied_events),
            behind_bytes: feed.as_ref().map_or(0, FeedFigures::behind_bytes),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Watched>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the figures of a recorder when it is dropped: also if the part ends early or panics.
pub(super) struct ProgressGuard {
    progress: Progress,
    counters: Arc<RecorderCounters>,
}

impl Drop for ProgressGuard {
    fn drop(&mut self) {
        self.progress.end(&self.counters);
    }
}

impl Watched {
    fn sample(&mut self) {
        if let Some(watcher) = &mut self.watcher {
            self.health = Some(health(watcher.sample()));
        }
    }
}

fn health(moment: Moment) -> Health {
    let rejected = |foreign: bool| {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for row in moment.flow.rejected.iter().filter(|row| row.foreign == foreign) {
            let count = counts.entry(row.reason.clone()).or_default();
            *count = count.saturating_add(row.count);
        }
        counts
    };
    Health {
        rejected: rejected(false),
        foreign: rejected(true),
        durable_bytes: moment.flow.durable.bytes,
        missing: moment.flow.missing,
        pool_bytes: moment.pool.bytes,
        pool_used_bytes: moment.pool.used_bytes,
        pool_wait_ns: nanoseconds(moment.pool.wait_seconds),
        volumes: moment.volumes.iter().map(volume).collect(),
        warnings: moment.warnings.into_iter().take(WARNINGS_MAX).collect(),
    }
}

fn volume(now: &VolumeNow) -> VolumeHealth {
    VolumeHealth {
        written_bytes: now.written_bytes,
        free_bytes: now.free_bytes,
        total_bytes: now.total_bytes,
        oldest_ns: nanoseconds(now.stalled_seconds),
        longest_ns: nanoseconds(now.write_seconds_max.max(now.flush_seconds_max)),
        has_failed: now.failure.is_some(),
    }
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
