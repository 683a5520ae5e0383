//! One recording trial: source, recorder and drain at one rate for a given time. The source may run
//! on another machine (`generator`).
mod account;
mod cut_off;
mod files;
mod first;
mod generator;
mod occupancy;
mod read_back;
mod repeat;
mod sampling;
mod share;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use keepup_error::Cause;
use keepup_measure::clock::Clock;
use keepup_measure::cpu::{CoreTimes, CoreUsage, ProcessCpu, core_usage, thread_cpu_ns};
use keepup_measure::sampler::Sampler;
use keepup_measure::sum::Sums;
use keepup_peer::Endpoint;
use keepup_recorder::counters::Counters;
use keepup_recorder::drain::{DrainCounters, DrainPlan, DrainReport, drain};
use keepup_recorder::report::RecordReport;
use keepup_recorder::watch::{Watcher, WatcherSlot};
use keepup_recorder::{Recorder, RecorderConfig, RecorderError, Target};
use keepup_recording::id::Id;
use keepup_recording::reader::Recording;
use keepup_recording::remove::remove;
use keepup_recording::verify::{Selection, VerifyOptions, VerifyReport, verify, verify_selected};
use keepup_results::RecordReadBack;
use keepup_stream::ledger::Count;
use keepup_stream::source::{Protocol, SourceCounters, SourcePlan, SourceReport};
use keepup_sys::pool::Pages;

pub use self::account::longest_stall;
use self::cut_off::CutOff;
use self::files::{FileIndexes, IndexTotals};
use self::first::Watch;
pub use self::first::{First, Moment};
pub use self::generator::{FileSource, Generated, Generator, LocalSource, Order, Reach, WaitingSource};
pub use self::occupancy::{Occupancy, VolumeOccupancy};
pub use self::read_back::ReadFrom;
use self::read_back::read_back;
pub use self::repeat::{Repeated, SETTLE, repeat};
pub use self::sampling::Sample;
use self::sampling::{CoreFeed, Feeds, record_samples};
use self::share::share_bytes;
use crate::error::system;
use crate::file_store::TrialFolder;
use crate::net::SourceTimeline;
use crate::{Context, Footprint, Workload, WorkloadError};

const ROOT: &str = "/";
/// Time without a durable event after which no more are expected from a source without acknowledgements, ns.
const REST_NS: u64 = 1_000_000_000;

/// Drain concurrent with the recording.
#[derive(Clone, Debug)]
pub struct DrainSpec {
    /// Payload bytes per second.
    pub rate: f64,
    /// Remote sink; without one, an internal sink discards the events.
    pub to: Option<Endpoint>,
}

/// Verification after a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verification {
    /// All data.
    Whole,
    /// As many segments as can be read in this time, spread over the recording.
    Sample(Duration),
}

/// Specification of one trial.
#[derive(Clone, Debug)]
pub struct TrialSpec {
    /// Source settings, including the trial's rate and duration.
    pub source: SourcePlan,
    /// What runs the source.
    pub generator: Arc<dyn Generator>,
    /// Recorder configuration. The listening address is replaced by a free port of the one that the
    /// generator reaches.
    pub recorder: RecorderConfig,
    /// Random identity of the recording.
    pub recording: Id,
    /// Concurrent drain, if any.
    pub drain: Option<DrainSpec>,
    /// Read back and verify the data afterwards.
    pub verify: Option<Verification>,
    /// Measure reading back: cold cache, stream by stream, in order.
    pub read_back: bool,
    /// Time after the first event lost at the source until the source is stopped; none: it runs to its end.
    pub cut_off: Option<Duration>,
    /// Number of first events to time.
    pub first_events: Option<u64>,
    /// Sampling interval.
    pub sample_every: Duration,
    /// Receives the live counters of the running recorder.
    pub watcher_slot: Option<WatcherSlot>,
}

/// Result of a trial.
#[derive(Clone, Debug)]
pub struct TrialMeasured {
    /// Report of the source.
    pub source: SourceReport,
    /// Report of the recorder.
    pub record: RecordReport,
    /// Report of the drain, if any.
    pub drain: Option<DrainReport>,
    /// Why the drain ended before it was stopped, or that it was not connected then.
    pub drain_failure: Option<String>,
    /// Result of verification, if requested.
    pub verify: Option<VerifyReport>,
    /// Where it read from.
    pub read_from: Option<ReadFrom>,
    /// Result of reading back in order, if requested.
    pub read_back: Option<RecordReadBack>,
    /// Times of the first events, if requested.
    pub first: Option<First>,
    /// Rates and backlogs over time.
    pub samples: Vec<Sample>,
    /// Occupancy of every stage.
    pub occupancy: Occupancy,
    /// CPU time of the recorder with its kernel workers, ns: that of the process minus source,
    /// drain, sink and sampling. With a source on another machine it includes receiving the source's reports.
    pub recorder_cpu_ns: u64,
    /// CPU time of the drain, if any, ns.
    pub drain_cpu_ns: Option<u64>,
    /// CPU time of the source, ns.
    pub source_cpu_ns: u64,
    /// Usage of every core during the trial.
    pub cores: Vec<CoreUsage>,
    /// Start of the source, ns on the clock.
    pub begin_ns: u64,
    /// Time from the start of the source to the last durable event, ns.
    pub elapsed_ns: u64,
    /// Part of that before the source's schedule started, for opening connections, ns.
    pub lead_ns: u64,
    /// Durable events that the recorder added to those of the source; no ledger contains them.
    pub index_durable: Count,
    /// Front-end buffer of the source, with the files that it keeps, bytes.
    pub source_buffer_bytes: u64,
    /// Sending threads of the source.
    pub source_threads: u32,
    /// Longest time between two reports of a source on another machine, ns; `None` if its counters were
    /// read directly. Between two reports the counters in the samples are interpolated.
    pub source_gap_ns_max: Option<u64>,
    /// Reason why the source was cut off, if it was.
    pub broken: Option<String>,
    /// Size of the recording's files, bytes; 0 without volumes.
    pub file_bytes: u64,
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
    /// The source, if it waits for the recorder.
    waiting: Option<Box<dyn WaitingSource>>,
    /// Directory of its files, if it writes some.
    folder: Option<TrialFolder>,
    /// What the recorder added to them.
    index: IndexTotals,
    directories: Vec<PathBuf>,
    source: Option<Generated>,
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
    drain_failure: Option<String>,
    verified: Option<VerifyReport>,
    read_from: Option<ReadFrom>,
    read_back: Option<RecordReadBack>,
    first: Option<First>,
    occupancy: Option<Occupancy>,
    file_bytes: u64,
}

impl RecordTrial {
    /// A trial that has not started.
    pub fn new(spec: TrialSpec) -> Self {
        Self {
            spec,
            running: None,
            waiting: None,
            folder: None,
            index: IndexTotals::default(),
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
            drain_failure: None,
            verified: None,
            read_from: None,
            read_back: None,
            first: None,
            occupancy: None,
            file_bytes: 0,
        }
    }

    /// Names the source to the recorder, if its protocol is not keepup's own.
    fn prepare_source(&mut self, listen: IpAddr, clock: &Arc<dyn Clock>) -> Result<(), WorkloadError> {
        let protocol = self.spec.source.protocol;
        let mut at = SocketAddr::from((listen, 0));
        if protocol.waits_for_recorder() {
            at = self.waiting.insert(self.spec.generator.wait(&self.spec.source, clock)?).address();
        }
        let from = match protocol {
            Protocol::Files => {
                let folder = TrialFolder::create(self.spec.generator.file_store(), self.spec.recording)?;
                Some(self.folder.insert(folder).address()?)
            }
            _ => self.spec.source.received_at(at),
        };
        if let Some(from) = from {
            let source = from.parse().map_err(|why| RecorderError::Config { what: Cause::of(&why) })?;
            self.spec.recorder.sources = vec![source];
        }
        Ok(())
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
                let mut config = RecorderConfig::new((Ipv4Addr::LOCALHOST, 0).into(), Target::Null, "sink");
                config.pool_bytes = (64 << 20).max(4 * self.spec.recorder.event_bytes_max() as usize / 2);
                config.pool_bytes = config.pool_bytes.min(self.spec.recorder.pool_bytes);
                config.pool_memory = self.spec.recorder.pool_memory.clone();
                config.pool_pages = Pages::AtOnce;
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
            .map_err(system("start the drain"))?;
        Ok((sink, Some(Drain { thread, counters, stop })))
    }
}

/// Waits until the events of a source without acknowledgements are durable, or no more of them become so.
fn await_rest(durable_events: impl Fn() -> u64, sent_events: u64, clock: &dyn Clock) {
    let (mut durable, mut since_ns) = (0, clock.now_ns());
    while durable < sent_events && clock.now_ns() < since_ns + REST_NS {
        clock.sleep_until_ns(clock.now_ns() + 5_000_000);
        let now = durable_events();
        if now != durable {
            (durable, since_ns) = (now, clock.now_ns());
        }
    }
}

/// Size of the files in a directory, bytes. What cannot be read counts as nothing.
fn file_bytes(directory: &Path) -> u64 {
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
    files
        .filter_map(|file| file.metadata().ok())
        .filter(|found| found.is_file())
        .map(|found| found.len())
        .saturating_sum()
}

impl Workload for RecordTrial {
    type Measured = TrialMeasured;
    type Error = WorkloadError;

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
            let store = self.spec.generator.file_store().filter(|store| store.below == *volume);
            let kept = store.map_or(0, |store| store.keep_bytes);
            footprint.space_bytes.insert(volume.clone(), share + kept + 2 * self.spec.recorder.segment_bytes);
        }
        footprint
    }

    fn prepare(&mut self, context: &mut Context) -> Result<(), WorkloadError> {
        let reach = self.spec.generator.reach();
        self.spec.recorder.listen = (reach.listen, 0).into();
        self.spec.recorder.only_from = reach.only_from;
        self.prepare_source(reach.listen, &context.clock)?;
        self.spec.recorder.pool_pages = Pages::AtOnce;
        let recorder =
            Recorder::start(self.spec.recorder.clone(), self.spec.recording, Arc::clone(&context.clock))?;
        self.directories = recorder.directories();
        if let Some(watcher_slot) = &self.spec.watcher_slot {
            watcher_slot.set(Watcher::new(&recorder, Arc::clone(&context.clock), None));
        }
        let (sink, drain) = self.start_drain(context, &recorder)?;
        self.running = Some(Running { counters: recorder.counters(), recorder, sink, drain });
        Ok(())
    }

    fn measure(&mut self, context: &mut Context) -> Result<(), WorkloadError> {
        let Some(running) = &self.running else { return Ok(()) };
        let root = Path::new(ROOT);
        let source_counters = Arc::new(SourceCounters::default());
        let index = self.folder.as_ref().map(|_| FileIndexes::of(&running.counters));
        let feeds = Feeds {
            source: Arc::clone(&source_counters),
            recorder: Arc::clone(&running.counters),
            drain: running.drain.as_ref().map(|d| Arc::clone(&d.counters)),
            index: index.clone(),
        };
        let (begin_ns, cpu) = (context.clock.now_ns(), ProcessCpu::now());
        let cores = CoreTimes::read_all(root)?;
        let watch = |events| {
            Watch::start(events, Arc::clone(&running.counters), Arc::clone(&context.clock), begin_ns)
        };
        // The first events include lines of the index.
        let first_events = self.spec.first_events.filter(|_| index.is_none());
        let watch = first_events.map(watch).transpose()?;
        let cost = Arc::clone(&self.sampler_cpu_ns);
        let mut core_feed = CoreFeed::default();
        let mut cut_off = self.spec.cut_off.map(|after| CutOff::new(after, Arc::clone(&context.stop)));
        let stop = cut_off.as_ref().map_or_else(|| Arc::clone(&context.stop), CutOff::source_stop);
        let sampler = Sampler::start(self.spec.sample_every, move |now_ns| {
            let sample = (feeds.read(now_ns, begin_ns), core_feed.read(now_ns, root));
            cut_off.iter_mut().for_each(|cut_off| cut_off.observe(&sample.0));
            cost.store(thread_cpu_ns(), Ordering::Relaxed);
            sample
        })?;
        let order =
            Order { plan: &self.spec.source, clock: &context.clock, stop: &stop, live: &source_counters };
        let outcome = match (&mut self.waiting, &self.folder) {
            (Some(waiting), _) => waiting.run(&order),
            (None, Some(folder)) => self.spec.generator.run(folder.destination(), &order),
            (None, None) => self.spec.generator.run(running.recorder.address().into(), &order),
        };
        if let Ok(Generated { report, .. }) = &outcome
            && !report.is_acknowledged
        {
            let sent = report.total(|s| s.sent).events;
            match &index {
                // The recorder adds a line for each file.
                Some(index) => await_rest(|| index.durable_with_files(), 2 * sent, context.clock.as_ref()),
                None => await_rest(|| running.counters.durable_events(), sent, context.clock.as_ref()),
            }
        }
        let mut samples = sampler.stop();
        self.first = watch.map(Watch::end).transpose()?;
        (self.begin_ns, self.elapsed_ns) = (begin_ns, context.clock.now_ns() - begin_ns);
        self.cpu_ns = ProcessCpu::now().since_ns(cpu);
        self.cores = core_usage(&cores, &CoreTimes::read_all(root)?);
        self.occupancy = Some(Occupancy::of(&running.counters, self.elapsed_ns));
        // A source that lost its recorder knows only that; the volumes say why.
        let source = outcome.map_err(|error| failed_volume(&running.counters).unwrap_or(error))?;
        if let Some(timeline) = &source.timeline {
            samples.iter_mut().for_each(|(sample, _)| sample.align(timeline, begin_ns));
        }
        record_samples(context, &samples);
        self.samples = samples.into_iter().map(|(sample, _)| sample).collect();
        self.lead_ns = source.started_ns.saturating_sub(begin_ns).min(self.elapsed_ns);
        self.source = Some(source);
        Ok(())
    }

    fn drain(&mut self, _context: &mut Context) -> Result<(), WorkloadError> {
        let Some(running) = self.running.take() else { return Ok(()) };
        running.recorder.stopper().stop();
        let record = running.recorder.join();
        self.waiting = None;
        self.spec.watcher_slot.iter().for_each(WatcherSlot::clear);
        let mut record = record?;
        if self.folder.is_some() {
            self.index = FileIndexes::of(&running.counters).totals();
            record.ledger.streams.retain(|id, _| !self.index.ids.contains(id));
        }
        self.record = Some(record);
        self.file_bytes = self.directories.iter().map(|directory| file_bytes(directory)).saturating_sum();
        if let Some(drain) = running.drain {
            // A drain slower than the recording is not a failure of the recording: it is stopped,
            // and its figures show the rate.
            let (was_running, is_connected) = (!drain.thread.is_finished(), &drain.counters.is_connected);
            let is_cut_off = was_running && !is_connected.load(Ordering::Relaxed);
            drain.stop.store(true, Ordering::Release);
            match drain.thread.join().map_err(|_| WorkloadError::Thread { name: "drain" })? {
                Ok(report) => self.drained = Some(report),
                Err(_) if was_running && !is_cut_off => {}
                Err(error) => self.drain_failure = Some(Cause::of(&error).to_text()),
            }
        }
        if let Some(sink) = running.sink {
            sink.recorder.stopper().stop();
            let report = sink.recorder.join()?;
            self.sink_cpu_ns = report.threads().map(|thread| thread.cpu_ns).saturating_sum();
        }
        Ok(())
    }

    fn verify(&mut self, context: &mut Context) -> Result<(), WorkloadError> {
        // Lost events already decide the verdict; verification would only take time.
        let whole =
            self.source.as_ref().zip(self.record.as_ref()).is_some_and(|(source, record)| {
                source.report.total(|s| s.due) == record.ledger.total().durable
            });
        if !whole || self.directories.is_empty() || !(self.spec.verify.is_some() || self.spec.read_back) {
            return Ok(());
        }
        let recording = Recording::open(&self.directories)?;
        if let Some(verification) = self.spec.verify {
            let begin_ns = context.clock.now_ns();
            self.read_from = Some(ReadFrom::after_eviction(&recording));
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            let options = VerifyOptions { threads };
            let mut verified = match verification {
                Verification::Whole => verify(&recording, options, &|_| {}),
                Verification::Sample(time) => {
                    let end_ns = begin_ns.saturating_add(time.as_nanos() as u64);
                    let is_over = || context.clock.now_ns() >= end_ns;
                    verify_selected(&recording, options, Selection::Until(&is_over), None, &|_| {})
                }
            };
            verified.streams.retain(|id, _| !self.index.ids.contains(id));
            self.verified = Some(verified);
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
                // The sink's result is not needed.
                let _ = drain.thread.join();
            }
            if let Some(sink) = running.sink {
                sink.recorder.stopper().stop();
                let _ = sink.recorder.join();
            }
            let _ = running.recorder.join();
            self.spec.watcher_slot.iter().for_each(WatcherSlot::clear);
        }
        self.waiting = None;
        let folder = self.folder.take().map_or(Ok(()), |folder| folder.remove());
        for directory in self.directories.drain(..) {
            remove(&directory)?;
        }
        folder?;
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
        let others_ns = source.cpu_ns_here
            + drain_cpu_ns.unwrap_or(0)
            + self.sink_cpu_ns
            + self.first.map_or(0, |first| first.cpu_ns)
            + self.sampler_cpu_ns.load(Ordering::Relaxed);
        Ok(TrialMeasured {
            source_cpu_ns: source.report.cpu_ns,
            recorder_cpu_ns: self.cpu_ns.saturating_sub(others_ns),
            drain_cpu_ns,
            source: source.report,
            record,
            drain: self.drained.take(),
            drain_failure: self.drain_failure.take(),
            verify: self.verified.take(),
            read_from: self.read_from.take(),
            read_back: self.read_back.take(),
            first: self.first.take(),
            samples: std::mem::take(&mut self.samples),
            occupancy,
            cores: std::mem::take(&mut self.cores),
            begin_ns: self.begin_ns,
            elapsed_ns: self.elapsed_ns,
            lead_ns: self.lead_ns,
            // A program that writes files goes on while the recorder does not read them.
            source_buffer_bytes: self
                .spec
                .generator
                .file_store()
                .map_or(self.spec.source.buffer_bytes, |store| store.keep_bytes),
            index_durable: self.index.durable,
            source_threads: self.spec.source.connections,
            source_gap_ns_max: source.timeline.as_ref().map(SourceTimeline::gap_ns_max),
            broken: source.broken,
            file_bytes: self.file_bytes,
        })
    }
}

impl TrialMeasured {
    /// Backlog over time, in seconds and bytes: due and not lost, but not yet written.
    pub fn backlog(&self) -> Vec<(f64, f64)> {
        self.samples.iter().map(|s| (s.t_s, s.backlog_bytes() as f64)).collect()
    }

    /// Largest backlog, bytes.
    pub fn backlog_bytes_max(&self) -> u64 {
        self.samples.iter().map(Sample::backlog_bytes).max().unwrap_or(0)
    }

    /// Payload bytes per second received by the recorder.
    pub fn received_bytes_per_second(&self) -> f64 {
        let source_s = self.source.elapsed_ns.max(1) as f64 / 1e9;
        self.record.ledger.total().received.bytes as f64 / source_s
    }

    /// Payload bytes per second made durable, including the last flush.
    pub fn durable_bytes_per_second(&self) -> f64 {
        self.record.ledger.total().durable.bytes as f64 / (self.elapsed_ns.max(1) as f64 / 1e9)
    }
}

/// Failure of the first volume that takes no more data, if any.
fn failed_volume(counters: &Counters) -> Option<WorkloadError> {
    let why = counters.volumes.iter().find_map(|volume| volume.failure.get())?;
    Some(RecorderError::Ended { why: Cause::from_text(why) }.into())
}
