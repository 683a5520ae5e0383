//! Session of a test: summary, result directory and end of the command.
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use keepup_error::Cause;
use keepup_measure::clock::{Clock, SystemClock};
use keepup_measure::cpu::{CoreTimes, core_usage};
use keepup_measure::environment::Environment;
use keepup_measure::sampler::Sampler;
use keepup_recording::id::Id;
use keepup_results::{
    Begun, Document, Ended, Event, EventLog, Figures as _, Kind, ResultDirectory, ResultsError, Stored,
    TestSummary, Verdict,
};
use keepup_workload::{Context, leftover};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::args::OutputArgs;
use crate::exit::Exit;
use crate::output::{command, json, log, missing_file, page, report_error};
use crate::signals::{self, Stopping, stop_flag};

/// Sampling interval of CPU usage.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// Test in progress.
pub(super) struct TestSession<S> {
    /// Results so far.
    pub(super) summary: S,
    /// Set by a signal or by a failed background load.
    pub(super) stop: Arc<AtomicBool>,
    id: String,
    writer: Option<ResultWriter>,
    is_json: bool,
}

impl<S: TestSummary + Clone + Into<Stored>> TestSession<S> {
    /// Starts a session of the test `workload` with the settings `plan`.
    pub(super) fn start(
        workload: &str,
        plan: serde_json::Value,
        volumes: &[PathBuf],
        output: &OutputArgs,
    ) -> anyhow::Result<Self> {
        let id = Id::random().context("cannot read random bytes")?.to_string()[..8].to_owned();
        let environment = Environment::collect(volumes, Path::new("/"));
        let begun = Begun {
            id: id.clone(),
            tool_version: env!("CARGO_PKG_VERSION").into(),
            created_unix_ns: SystemClock.unix_ns(),
            command: command(),
            workload: workload.into(),
            plan,
            environment: serde_json::to_value(environment).unwrap_or_default(),
        };
        let writer = output.out.as_deref().map(|out| ResultWriter::create::<S>(out, &begun)).transpose()?;
        let stop = stop_flag()?;
        Ok(Self { summary: S::begun(&begun), stop, id, writer, is_json: output.json })
    }

    /// Id of this session, for names of its files and control groups.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Context for a workload.
    pub(super) fn context(&self) -> Context {
        Context {
            clock: Arc::new(SystemClock),
            stop: Arc::clone(&self.stop),
            sample: Box::new(|_, _| {}),
            note: Box::new(log),
        }
    }

    /// Logs an event, if the result is stored.
    pub(super) fn log_event(&mut self, event: impl FnOnce(u64) -> Event) {
        if let Some(writer) = &mut self.writer {
            writer.append(&event(SystemClock.unix_ns()));
        }
    }

    /// Ends the session: prints and stores the result.
    pub(super) fn end(mut self, failure: Option<anyhow::Error>, interrupted: bool) -> anyhow::Result<Exit> {
        let why = failure.as_ref().map(ToString::to_string);
        self.summary.end(Ended { failure: why, interrupted });
        if self.is_json {
            json(&Document::value(&self.summary).context("cannot encode the result")?);
        } else {
            let stored: Stored = self.summary.clone().into();
            if failure.is_none() || !stored.figures().is_empty() {
                page(&stored);
            }
        }
        if let Some(writer) = self.writer.take() {
            log(&format!("result: {}", writer.finish(&self.summary, None)?.display()));
        }
        if let Some(failure) = failure {
            report_error(&failure);
            return Ok(Exit::of(&failure));
        }
        Ok(if interrupted { Exit::Interrupted } else { Exit::Done })
    }
}

/// Stores a computed result, without measurements, in a new subdirectory of `out`.
pub(super) fn store(
    out: &Path,
    kind: Kind,
    schema_version: u32,
    begun: &Begun,
    summary: &(impl Serialize + DeserializeOwned),
) -> anyhow::Result<PathBuf> {
    let (directory, mut log) = ResultDirectory::begin(out, kind, schema_version, begun)?;
    log.append(&Event::Finished { t_unix_ns: begun.created_unix_ns, verdict: None })?;
    log.finish()?;
    directory.write_summary(summary)?;
    Ok(directory.path().to_owned())
}

/// Result directory in progress: event log, CPU samples, and the summary at the end. After a failure of the
/// log the test goes on, so that the result is not lost.
pub(super) struct ResultWriter {
    directory: ResultDirectory,
    log: Arc<Mutex<EventLog>>,
    sampler: Option<Sampler<()>>,
}

impl ResultWriter {
    /// Creates a new subdirectory of `out`.
    pub(super) fn create<S: TestSummary>(out: &Path, begun: &Begun) -> Result<Self, ResultsError> {
        let (directory, log) = ResultDirectory::begin(out, S::KIND, S::SCHEMA_VERSION, begun)?;
        let log = Arc::new(Mutex::new(log));
        // Trials sample CPU usage themselves, and those of a fleet run on other machines. A failed sampler
        // must not fail the test.
        let is_sampled = ![Kind::Record, Kind::QualifyFleet].contains(&S::KIND);
        let sampler = is_sampled.then(|| sample_cpus(Arc::clone(&log)).ok()).flatten();
        Ok(Self { directory, log, sampler })
    }

    /// Logs an event.
    pub(super) fn append(&mut self, event: &Event) {
        warn(self.log.lock().unwrap_or_else(PoisonError::into_inner).append(event));
    }

    /// Stores the result, even if the log failed; returns its directory.
    pub(super) fn finish(
        mut self,
        summary: &impl TestSummary,
        verdict: Option<Verdict>,
    ) -> Result<PathBuf, ResultsError> {
        self.sampler.take().map(Sampler::stop);
        self.append(&Event::Finished { t_unix_ns: SystemClock.unix_ns(), verdict });
        if let Some(log) = Arc::into_inner(self.log) {
            warn(log.into_inner().unwrap_or_else(PoisonError::into_inner).finish());
        }
        self.directory.write_summary(summary)?;
        Ok(self.directory.path().to_owned())
    }

    /// Removes the directory of a test that failed before its first result.
    #[cfg(feature = "fleet")]
    pub(super) fn discard(self) {
        warn(self.directory.discard());
    }
}

/// Sets what a signal says during a measurement whose recordings on `volumes` have names that begin with
/// `name`.
pub(super) fn describe_measurement(volumes: &[PathBuf], name: &str) {
    let (volumes, name) = (volumes.to_vec(), name.to_owned());
    signals::describe(move || Stopping {
        left: "end the current trial and remove its files".to_owned(),
        after_cut_off: leftover::removal(&volumes, &name),
    });
}

/// Reports a file of the result that is incomplete. The test goes on.
pub(super) fn warn(outcome: Result<(), ResultsError>) {
    if let Err(why) = outcome {
        missing_file(&Cause::of(&why));
    }
}

/// Starts a thread that logs the usage of every core.
fn sample_cpus(log: Arc<Mutex<EventLog>>) -> anyhow::Result<Sampler<()>> {
    let begin_ns = SystemClock.now_ns();
    let mut earlier: Vec<CoreTimes> = Vec::new();
    Ok(Sampler::start(SAMPLE_EVERY, move |now_ns| {
        let Ok(cores) = CoreTimes::read_all(Path::new("/")) else { return };
        let usage = core_usage(&earlier, &cores);
        earlier = cores;
        if usage.is_empty() {
            return;
        }
        let name = |core: u32| format!("core_{core}_busy_percent");
        let event = Event::Sample {
            t_unix_ns: SystemClock.unix_ns(),
            t_ms: now_ns.saturating_sub(begin_ns) / 1_000_000,
            values: usage.iter().map(|used| (name(used.core), used.busy_percent)).collect(),
        };
        // The next event of the test reports a failed log.
        let _ = log.lock().unwrap_or_else(PoisonError::into_inner).append(&event);
    })?)
}
