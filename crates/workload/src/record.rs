//! One trial of the path that records: source, recorder and drain as they run in earnest, at one rate, for
//! one time.
mod account;
mod first;
mod occupancy;
mod read_back;
mod repeat;
mod sampling;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use keepup_measure::cpu::{CoreTimes, CoreUsage, ProcessCpu, core_usage, thread_cpu_ns};
use keepup_measure::sampler::Sampler;
use keepup_peer::Endpoint;
use keepup_recorder::counters::Counters;
use keepup_recorder::drain::{DrainCounters, DrainPlan, DrainReport, drain};
use keepup_recorder::report::RecordReport;
use keepup_recorder::watch::{Spotlight, Watcher};
use keepup_recorder::{PlacementKind, Recorder, RecorderConfig, RecorderError, Target};
use keepup_recording::id::Id;
use keepup_recording::reader::Recording;
use keepup_recording::remove::remove;
use keepup_recording::verify::{VerifyOptions, VerifyReport, verify};
use keepup_results::RecordReadBack;
use keepup_stream::source::{Rate, SourceCounters, SourceError, SourcePlan, SourceReport, run as run_source};
use keepup_stream::wire::StreamInfo;

pub use self::account::longest_stall;
use self::first::Watch;
pub use self::first::{First, Moment};
pub use self::occupancy::{Occupancy, VolumeOccupancy};
use self::read_back::read_back;
pub use self::repeat::{Repeated, SETTLE, repeat};
pub use self::sampling::Sample;
use self::sampling::{CoreFeed, Feeds, record_samples};
use crate::{Context, Footprint, Workload, WorkloadError};

const ROOT: &str = "/";

/// The drain that runs beside the recording.
#[derive(Clone, Debug)]
pub struct DrainSpec {
    /// Payload bytes per second.
    pub rate: f64,
    /// A sink elsewhere; without one, a sink of this process takes the events and drops them.
    pub to: Option<Endpoint>,
}

/// One trial.
#[derive(Clone, Debug)]
pub struct TrialSpec {
    /// What the source sends; its rate and duration are those of the trial.
    pub source: SourcePlan,
    /// How it is recorded. The listening address is replaced by a free port of loopback.
    pub recorder: RecorderConfig,
    /// Identity of the trial's recording: random.
    pub recording: Id,
    /// Concurrent read-out, if any.
    pub drain: Option<DrainSpec>,
    /// Read everything back afterwards and check it.
    pub verify: bool,
    /// Read it back once more, as its users would: cold, stream by stream, in order.
    pub read_back: bool,
    /// Time how long so many events take, from the first on.
    pub first_events: Option<u64>,
    /// Pause between two samples.
    pub sample_every: Duration,
    /// Where the recorder can be looked at while it records.
    pub spotlight: Option<Spotlight>,
}

/// What a trial measured.
#[derive(Clone, Debug)]
pub struct TrialMeasured {
    /// The source's account.
    pub source: SourceReport,
    /// The recorder's account.
    pub record: RecordReport,
    /// The drain's account, if there was one.
    pub drain: Option<DrainReport>,
    /// What reading back found, if asked for.
    pub verify: Option<VerifyReport>,
    /// What reading in order took, if asked for.
    pub read_back: Option<RecordReadBack>,
    /// How long the first events took, if asked for.
    pub first: Option<First>,
    /// Rates and backlogs over time.
    pub samples: Vec<Sample>,
    /// How busy every stage was.
    pub occupancy: Occupancy,
    /// CPU of the recorder with its kernel workers, in nanoseconds: what the process took, less the source,
    /// the drain, the sink, and the sampling.
    pub recorder_cpu_ns: u64,
    /// CPU of the drain, if there was one, in nanoseconds.
    pub drain_cpu_ns: Option<u64>,
    /// CPU of the source, in nanoseconds.
    pub source_cpu_ns: u64,
    /// Every core while the trial ran.
    pub cores: Vec<CoreUsage>,
    /// When the source started, in nanoseconds on the clock.
    pub begin_ns: u64,
    /// From the start of the source to the last durable event, in nanoseconds.
    pub elapsed_ns: u64,
    /// The part of that before the source's schedule began: connections were opened, in nanoseconds.
    pub lead_ns: u64,
    /// Front-end buffer of the source, in bytes.
    pub source_buffer_bytes: u64,
    /// Sending threads of the source.
    pub source_threads: u32,
    /// Why the source was cut off, if it was.
    pub broken: Option<String>,
}

struct Sink {
    recorder: Recorder,
}

struct Drain {
    thread: JoinHandle<Result<DrainReport, RecorderError>>,
    counters: Arc<DrainCounters>,
    stop: Arc<AtomicBool>,
}

struct Running {
    recorder: Recorder,
    counters: Arc<Counters>,
    sink: Option<Sink>,
    drain: Option<Drain>,
}

/// The workload `record`.
pub struct RecordTrial {
    spec: TrialSpec,
    running: Option<Running>,
    directories: Vec<PathBuf>,
    source: Option<SourceReport>,
    samples: Vec<Sample>,
    cpu_ns: u64,
    sampler_cpu_ns: Arc<AtomicU64>,
    sink_cpu_ns: u64,
    cores: Vec<CoreUsage>,
    begin_ns: u64,
    elapsed_ns: u64,
    lead_ns: u64,
    record: Option<RecordReport>,
    drained: Option<DrainReport>,
    verified: Option<VerifyReport>,
    read_back: Option<RecordReadBack>,
    first: Option<First>,
    occupancy: Option<Occupancy>,
    broken: Option<String>,
}

impl RecordTrial {
    /// A trial that has not begun.
    pub fn new(spec: TrialSpec) -> Self {
        Self {
            spec,
            running: None,
            directories: Vec::new(),
            source: None,
            samples: Vec::new(),
            cpu_ns: 0,
            sampler_cpu_ns: Arc::default(),
            sink_cpu_ns: 0,
            cores: Vec::new(),
            begin_ns: 0,
            elapsed_ns: 0,
            lead_ns: 0,
            record: None,
            drained: None,
            verified: None,
            read_back: None,
            first: None,
            occupancy: None,
            broken: None,
        }
    }

    fn start_drain(
        &self,
        context: &Context,
        recorder: &Recorder,
    ) -> Result<(Option<Sink>, Option<Drain>), WorkloadError> {
        let Some(spec) = &self.spec.drain else { return Ok((None, None)) };
        if recorder.directories().is_empty() {
            return Ok((None, None));
        }
        let (sink, to) = match &spec.to {
            Some(endpoint) => (None, endpoint.clone()),
            None => {
                let mut config = RecorderConfig::new(self.spec.recorder.listen.clone(), Target::Null, "sink");
                config.pool_bytes = (64 << 20).max(4 * self.spec.recorder.event_bytes_max() as usize / 2);
                config.pool_bytes = config.pool_bytes.min(self.spec.recorder.pool_bytes);
                let recorder = Recorder::start(config, self.spec.recording, Arc::clone(&context.clock))?;
                let endpoint = recorder.address().into();
                (Some(Sink { recorder }), endpoint)
            }
        };
        let plan = DrainPlan {
            recording: recorder.directories(),
            to,
            rate: Some(spec.rate),
            follow: true,
            finish_timeout: Duration::from_secs(10),
        };
        let (counters, stop) = (Arc::new(DrainCounters::default()), Arc::new(AtomicBool::new(false)));
        let (live, switch, clock) = (Arc::clone(&counters), Arc::clone(&stop), Arc::clone(&context.clock));
        let thread = std::thread::Builder::new()
            .name("ku-drain".into())
            .spawn(move || drain(&plan, clock.as_ref(), &switch, &live))
            .map_err(super::ceiling::system("start the drain"))?;
        Ok((sink, Some(Drain { thread, counters, stop })))
    }
}

/// The most that goes to each of `volumes`, in bytes; 0 when the time alone limits a source that goes as fast
/// as it can.
fn share_bytes(spec: &TrialSpec, volumes: u64) -> u64 {
    let source = &spec.source;
    let by_rate = match (source.rate, source.duration) {
        (Rate::EventsPerSecond(rate), Some(time)) => Some((rate * time.as_secs_f64()).ceil() as u64),
        _ => None,
    };
    let events = by_rate.into_iter().chain(source.events).min().unwrap_or(0);
    let bytes = events.saturating_mul(stored_bytes_max(spec));
    match spec.recorder.placement {
        PlacementKind::Free => bytes.div_ceil(volumes.max(1)),
        PlacementKind::Pinned => {
            let streams = u64::from(source.streams.max(1));
            (u128::from(bytes) * u128::from(streams.div_ceil(volumes.max(1))) / u128::from(streams)) as u64
        }
    }
}

/// Most bytes that lie on the volumes for one event, of the stream with the largest.
fn stored_bytes_max(spec: &TrialSpec) -> u64 {
    let (source, event_bytes) = (&spec.source, spec.source.size.max_bytes());
    let stored = |id: u32| {
        let info = StreamInfo {
            id,
            name: String::new(),
            element: source.element,
            shape: source.shape.clone(),
            compression: None,
        };
        keepup_recorder::reduce::stored_bytes_max(&spec.recorder.reductions, &info, event_bytes)
    };
    let ids = source.first_stream..source.first_stream + source.streams;
    // Most profiles reduce nothing, and have many streams.
    if spec.recorder.reductions.is_empty() { event_bytes } else { ids.map(stored).max().unwrap_or(0) }
}

impl Workload for RecordTrial {
    type Measured = TrialMeasured;

    fn name(&self) -> &'static str {
        "record"
    }

    fn plan(&self) -> Footprint {
        let time = self.spec.source.duration.unwrap_or_default();
        let mut footprint = Footprint { time, ..Footprint::default() };
        let Target::Volumes(volumes) = &self.spec.recorder.target else { return footprint };
        let share = share_bytes(&self.spec, volumes.len() as u64);
        for volume in volumes {
            footprint.bytes_written.insert(volume.clone(), share);
            footprint.space_bytes.insert(volume.clone(), share + 2 * self.spec.recorder.segment_bytes);
        }
        footprint
    }

    fn prepare(&mut self, context: &mut Context) -> Result<(), WorkloadError> {
        self.spec.recorder.listen = (Ipv4Addr::LOCALHOST, 0).into();
        let recorder =
            Recorder::start(self.spec.recorder.clone(), self.spec.recording, Arc::clone(&context.clock))?;
        self.directories = recorder.directories();
        if let Some(spotlight) = &self.spec.spotlight {
            spotlight.point(Watcher::new(&recorder, Arc::clone(&context.clock), None));
        }
        let (sink, drain) = self.start_drain(context, &recorder)?;
        self.running = Some(Running { counters: recorder.counters(), recorder, sink, drain });
        Ok(())
    }

    fn measure(&mut self, context: &mut Context) -> Result<(), WorkloadError> {
        let Some(running) = &self.running else { return Ok(()) };
        let root = std::path::Path::new(ROOT);
        let source_counters = Arc::new(SourceCounters::default());
        let feeds = Feeds {
            source: Arc::clone(&source_counters),
            recorder: Arc::clone(&running.counters),
            drain: running.drain.as_ref().map(|d| Arc::clone(&d.counters)),
        };
        let (begin_ns, cpu) = (context.clock.now_ns(), ProcessCpu::now());
        let begin_unix_ns = context.clock.unix_ns();
        let cores = CoreTimes::read_all(root)?;
        let watch = |events| {
            Watch::start(events, Arc::clone(&running.counters), Arc::clone(&context.clock), begin_ns)
        };
        let watch = self.spec.first_events.map(watch).transpose()?;
        let cost = Arc::clone(&self.sampler_cpu_ns);
        let mut core_feed = CoreFeed::default();
        let sampler = Sampler::start(self.spec.sample_every, move |now_ns| {
            let sample = (feeds.read(now_ns, begin_ns), core_feed.read(now_ns, root));
            cost.store(thread_cpu_ns(), Ordering::Relaxed);
            sample
        })?;
        let outcome =
            run_source(&self.spec.source, running.recorder.address(), &context.stop, &source_counters);
        let samples = sampler.stop();
        self.first = watch.map(Watch::end).transpose()?;
        (self.begin_ns, self.elapsed_ns) = (begin_ns, context.clock.now_ns() - begin_ns);
        self.cpu_ns = ProcessCpu::now().since_ns(cpu);
        self.cores = core_usage(&cores, &CoreTimes::read_all(root)?);
        self.occupancy = Some(Occupancy::of(&running.counters, self.elapsed_ns));
        record_samples(context, &samples);
        self.samples = samples.into_iter().map(|(sample, _)| sample).collect();
        let source = match outcome {
            // The recorder's own account, which follows, says why.
            Err(SourceError::Broken { error, report, .. }) => {
                self.broken = Some(error.to_string());
                *report
            }
            outcome => outcome?,
        };
        self.lead_ns = source.started_unix_ns.saturating_sub(begin_unix_ns).min(self.elapsed_ns);
        self.source = Some(source);
        Ok(())
    }

    fn drain(&mut self, _context: &mut Context) -> Result<(), WorkloadError> {
        let Some(running) = self.running.take() else { return Ok(()) };
        running.recorder.stopper().stop();
        let record = running.recorder.join();
        self.spec.spotlight.iter().for_each(Spotlight::turn_off);
        self.record = Some(record?);
        if let Some(drain) = running.drain {
            // A drain slower than the recording is no fault of the recording: it is stopped, and its
            // figures show it.
            drain.stop.store(true, Ordering::Release);
            self.drained = drain.thread.join().map_err(|_| WorkloadError::Thread { name: "drain" })?.ok();
        }
        if let Some(sink) = running.sink {
            sink.recorder.stopper().stop();
            let report = sink.recorder.join()?;
            self.sink_cpu_ns = report.threads().map(|thread| thread.cpu_ns).sum();
        }
        Ok(())
    }

    fn verify(&mut self, context: &mut Context) -> Result<(), WorkloadError> {
        // What was lost already decides; reading the rest back would only take time.
        let whole = self
            .source
            .as_ref()
            .zip(self.record.as_ref())
            .is_some_and(|(source, record)| source.total(|s| s.due) == record.ledger.total().durable);
        if !whole || self.directories.is_empty() || !(self.spec.verify || self.spec.read_back) {
            return Ok(());
        }
        let recording = Recording::open(&self.directories)?;
        if self.spec.verify {
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            self.verified = Some(verify(&recording, VerifyOptions { threads }, &|_| {}));
        }
        if self.spec.read_back {
            self.read_back = read_back(&recording, context)?;
        }
        Ok(())
    }

    fn clean_up(&mut self) -> Result<(), WorkloadError> {
        if let Some(running) = self.running.take() {
            running.recorder.stopper().stop();
            if let Some(drain) = running.drain {
                drain.stop.store(true, Ordering::Release);
                // Its account is not wanted any more.
                let _ = drain.thread.join();
            }
            if let Some(sink) = running.sink {
                sink.recorder.stopper().stop();
                let _ = sink.recorder.join();
            }
            let _ = running.recorder.join();
            self.spec.spotlight.iter().for_each(Spotlight::turn_off);
        }
        for directory in self.directories.drain(..) {
            remove(&directory)?;
        }
        Ok(())
    }

    fn measured(&mut self) -> Result<TrialMeasured, WorkloadError> {
        let missing = WorkloadError::Thread { name: "recorder" };
        let (Some(source), Some(record), Some(occupancy)) =
            (self.source.take(), self.record.take(), self.occupancy.take())
        else {
            return Err(missing);
        };
        let drain_cpu_ns = self.drained.as_ref().map(|drain| drain.cpu_ns);
        let others_ns = source.cpu_ns
            + drain_cpu_ns.unwrap_or(0)
            + self.sink_cpu_ns
            + self.first.map_or(0, |first| first.cpu_ns)
            + self.sampler_cpu_ns.load(Ordering::Relaxed);
        Ok(TrialMeasured {
            source_cpu_ns: source.cpu_ns,
            recorder_cpu_ns: self.cpu_ns.saturating_sub(others_ns),
            drain_cpu_ns,
            source,
            record,
            drain: self.drained.take(),
            verify: self.verified.take(),
            read_back: self.read_back.take(),
            first: self.first.take(),
            samples: std::mem::take(&mut self.samples),
            occupancy,
            cores: std::mem::take(&mut self.cores),
            begin_ns: self.begin_ns,
            elapsed_ns: self.elapsed_ns,
            lead_ns: self.lead_ns,
            source_buffer_bytes: self.spec.source.buffer_bytes,
            source_threads: self.spec.source.connections,
            broken: self.broken.take(),
        })
    }
}

impl TrialMeasured {
    /// Backlog over time, in seconds and bytes: due and not lost, but not yet written.
    pub fn backlog(&self) -> Vec<(f64, f64)> {
        self.samples.iter().map(|s| (s.t_s, s.backlog_bytes() as f64)).collect()
    }

    /// Largest backlog, in bytes.
    pub fn backlog_bytes_max(&self) -> u64 {
        self.samples.iter().map(Sample::backlog_bytes).max().unwrap_or(0)
    }

    /// Payload bytes per second that got into the recorder.
    pub fn received_bytes_per_second(&self) -> f64 {
        let source_s = self.source.elapsed_ns.max(1) as f64 / 1e9;
        self.record.ledger.total().received.bytes as f64 / source_s
    }

    /// Payload bytes per second that became durable, the last flush inside the time.
    pub fn durable_bytes_per_second(&self) -> f64 {
        self.record.ledger.total().durable.bytes as f64 / (self.elapsed_ns.max(1) as f64 / 1e9)
    }
}
