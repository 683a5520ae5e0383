//! Board: the latest state, serialized once per change and shared by all clients.
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use keepup_results::live::{FleetNow, Moment, RunStatus, Search, StreamNow};
use serde::Serialize;
use tokio::sync::watch;

use crate::exposition::TextFormat;
use crate::metrics;

/// Samples in the history of rates: ten minutes at one per second.
const HISTORY_MAX: usize = 600;

/// Most hosts in the history of rates, to limit its memory.
const HISTORY_HOSTS_MAX: usize = 256;

/// State at one time; absent parts stay unchanged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scene<'a> {
    /// Run control.
    pub run: Option<&'a RunStatus>,
    /// Figures of a recording.
    pub moment: Option<&'a Moment>,
    /// Progress of a qualification.
    pub search: Option<&'a Search>,
    /// Figures of a recording on several hosts, instead of those of one.
    pub fleet: Option<&'a FleetNow>,
}

/// One part of the state, as an event of the event stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    /// Rises when the text changes; 0 before the first.
    pub(crate) version: u64,
    /// The serialized event.
    pub(crate) event: Bytes,
}

/// All parts at one time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    /// In the order of sending.
    pub(crate) parts: [Part; PARTS],
    pub(crate) run: Option<Arc<RunStatus>>,
    pub(crate) moment: Option<Arc<Moment>>,
    pub(crate) fleet: Option<Arc<FleetNow>>,
    /// Metrics in both formats, rendered on the first request.
    metrics: [OnceLock<Bytes>; 2],
}

/// Number of parts.
pub(crate) const PARTS: usize = 5;
/// Names of the parts: run control, streams, figures, the search, and the figures of a fleet.
const NAMES: [&str; PARTS] = ["run", "streams", "now", "search", "fleet"];
const RUN: usize = 0;
const STREAMS: usize = 1;
const NOW: usize = 2;
const SEARCH: usize = 3;
const FLEET: usize = 4;

/// The current frame. Publishing replaces it.
#[derive(Debug)]
pub struct Board {
    frame: watch::Sender<Arc<Frame>>,
    /// Held while publishing, so that concurrent publishers do not overwrite each other.
    turn: Mutex<()>,
    history: Mutex<VecDeque<RateSample>>,
}

/// Sample of the rates, for charts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct RateSample {
    /// Time, milliseconds since the Unix epoch.
    t_unix_ms: u64,
    /// MB/s received.
    received: f64,
    /// MB/s written; unknown for a fleet.
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<f64>,
    /// MB/s durable.
    durable: f64,
    /// Per cent of the pool in use; unknown for a fleet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<f64>,
    /// Events missing so far.
    missing: u64,
    /// MB/s received and durable of each host of a fleet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<[f64; 2]>,
}

impl Default for Board {
    fn default() -> Self {
        Self { frame: watch::Sender::new(Arc::default()), turn: Mutex::default(), history: Mutex::default() }
    }
}

impl Board {
    /// Publishes a scene, keeping the parts that it does not have. Does not wait for readers.
    pub fn publish(&self, scene: Scene<'_>) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.frame.borrow().clone();
        let mut frame = Frame { parts: before.parts.clone(), ..Frame::default() };
        if let Some(run) = scene.run {
            frame.put(RUN, run);
            frame.run = Some(Arc::new(run.clone()));
        }
        if let Some(moment) = scene.moment {
            let streams: Vec<StreamCard<'_>> = moment.streams.iter().map(StreamCard::of).collect();
            frame.put(STREAMS, &streams);
            frame.put(NOW, &Tick::of(moment));
            frame.moment = Some(Arc::new(moment.clone()));
            self.remember(sample(moment));
        }
        if let Some(search) = scene.search {
            frame.put(SEARCH, search);
        }
        if let Some(fleet) = scene.fleet {
            frame.put(FLEET, fleet);
            frame.fleet = Some(Arc::new(fleet.clone()));
            self.remember(fleet_sample(fleet));
        }
        self.frame.send_replace(Arc::new(frame));
    }

    /// Recent rates, oldest first.
    pub(crate) fn history(&self) -> Vec<RateSample> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Subscribes to the current and later frames.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Arc<Frame>> {
        self.frame.subscribe()
    }

    /// Current frame.
    pub(crate) fn now(&self) -> Arc<Frame> {
        self.frame.borrow().clone()
    }

    fn remember(&self, past: RateSample) {
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        if history.back().is_some_and(|last| last.t_unix_ms == past.t_unix_ms) {
            return;
        }
        if history.len() == HISTORY_MAX {
            history.pop_front();
        }
        history.push_back(past);
    }
}

fn sample(moment: &Moment) -> RateSample {
    let (flow, pool) = (&moment.flow, &moment.pool);
    RateSample {
        t_unix_ms: moment.t_unix_ns / 1_000_000,
        received: flow.received_bytes_per_second / 1e6,
        written: Some(flow.written_bytes_per_second / 1e6),
        durable: flow.durable_bytes_per_second / 1e6,
        pool: Some(100.0 * pool.used_bytes as f64 / pool.bytes.max(1) as f64),
        missing: flow.missing_events,
        hosts: Vec::new(),
    }
}

fn fleet_sample(fleet: &FleetNow) -> RateSample {
    // In steps of 1 kB/s: the history of many hosts is long.
    let rounded = |rate: f64| (rate / 1e3).round() / 1e3;
    let hosts = fleet.hosts.iter().take(HISTORY_HOSTS_MAX).map(|host| &host.flow);
    RateSample {
        t_unix_ms: fleet.t_unix_ns / 1_000_000,
        received: fleet.flow.received_bytes_per_second / 1e6,
        written: None,
        durable: fleet.flow.durable_bytes_per_second / 1e6,
        pool: None,
        missing: fleet.flow.missing_events,
        hosts: hosts
            .map(|flow| [flow.received_bytes_per_second, flow.durable_bytes_per_second].map(rounded))
            .collect(),
    }
}

impl Frame {
    /// Metrics of the current frame, as text.
    pub(crate) fn metrics(&self, form: TextFormat) -> Bytes {
        let (run, moment, fleet) = (self.run.as_deref(), self.moment.as_deref(), self.fleet.as_deref());
        let text = || metrics::page(form, run, moment, fleet).into();
        self.metrics[form as usize].get_or_init(text).clone()
    }

    /// Serializes a part, and replaces it if it has changed.
    fn put(&mut self, at: usize, content: &impl Serialize) {
        let mut event = format!("event: {}\ndata: ", NAMES[at]);
        match serde_json::to_string(content) {
            Ok(json) => event.push_str(&json),
            // Fails only for a map with keys that are not text.
            Err(e) => drop(write!(event, "{{\"error\":\"{e}\"}}")),
        }
        event.push_str("\n\n");
        let part = &mut self.parts[at];
        if part.event != event.as_bytes() {
            *part = Part { version: part.version + 1, event: event.into() };
        }
    }
}

/// Constant properties of a stream.
#[derive(Debug, Serialize)]
struct StreamCard<'a> {
    id: u32,
    name: &'a str,
    element: &'a str,
    shape: &'a [u64],
    compression: Option<&'a str>,
}

impl<'a> StreamCard<'a> {
    fn of(stream: &'a StreamNow) -> Self {
        Self {
            id: stream.id,
            name: &stream.name,
            element: &stream.element,
            shape: &stream.shape,
            compression: stream.compression.as_deref(),
        }
    }
}

/// Figures of one sample for the page: streams in columns, without names.
#[derive(Debug, Serialize)]
struct Tick<'a> {
    t_unix_ms: u64,
    seconds: f64,
    flow: &'a keepup_results::live::Flow,
    pool: &'a keepup_results::live::PoolNow,
    reduction: &'a Option<keepup_results::live::ReductionNow>,
    volumes: &'a [keepup_results::live::VolumeNow],
    cores: &'a [keepup_results::live::CoreNow],
    process_cores: Option<f64>,
    margin: &'a Option<keepup_results::live::Margin>,
    warnings: &'a [String],
    streams: StreamColumns,
}

#[derive(Debug, Default, Serialize)]
struct StreamColumns {
    events: Vec<u64>,
    bytes: Vec<u64>,
    durable_events: Vec<u64>,
    missing: Vec<u64>,
    /// Bytes per second.
    rate: Vec<u64>,
    connected: Vec<u8>,
    ended: Vec<u8>,
    /// Silence in tenths of a second; -1 before the first event.
    silent: Vec<i64>,
}

impl<'a> Tick<'a> {
    fn of(moment: &'a Moment) -> Self {
        let mut streams = StreamColumns::default();
        for stream in &moment.streams {
            streams.events.push(stream.received.events);
            streams.bytes.push(stream.received.bytes);
            streams.durable_events.push(stream.durable.events);
            streams.missing.push(stream.missing_events);
            streams.rate.push(stream.received_bytes_per_second as u64);
            streams.connected.push(stream.connected.into());
            streams.ended.push(stream.ended.into());
            streams.silent.push(stream.silent_seconds.map_or(-1, |seconds| (seconds * 10.0) as i64));
        }
        Self {
            t_unix_ms: moment.t_unix_ns / 1_000_000,
            seconds: moment.seconds,
            flow: &moment.flow,
            pool: &moment.pool,
            reduction: &moment.reduction,
            volumes: &moment.volumes,
            cores: &moment.cores,
            process_cores: moment.process_cores,
            margin: &moment.margin,
            warnings: &moment.warnings,
            streams,
        }
    }
}

#[cfg(test)]
#[path = "board_tests.rs"]
mod tests;
