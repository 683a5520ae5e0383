//! What all tests do around their runs: a result that grows, a directory that keeps it, the end.
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
    Begun, Ended, Event, EventLog, Figures as _, Kind, ResultDirectory, Stored, TestSummary,
};
use keepup_workload::Context;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::args::Outlet;
use crate::exit::Exit;
use crate::output::{command, json, page, report_error, say, tell};
use crate::signals::stop_flag;

/// Between two looks at how busy the processors are.
const LOOK: Duration = Duration::from_secs(1);

/// A test under way.
pub(super) struct Sitting<S> {
    /// What is known so far.
    pub(super) summary: S,
    /// Raised by the user, or by a load that ended.
    pub(super) stop: Arc<AtomicBool>,
    id: String,
    kept: Option<Kept>,
    is_json: bool,
}

impl<S: TestSummary + Clone + Into<Stored>> Sitting<S> {
    /// Begins the test `workload` with the settings `plan`, on volumes where it uses any.
    pub(super) fn begin(
        workload: &str,
        plan: serde_json::Value,
        volumes: &[PathBuf],
        outlet: &Outlet,
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
        let kept = outlet.out.as_deref().map(|out| Kept::begin::<S>(out, &begun)).transpose()?;
        let stop = stop_flag()?;
        Ok(Self { summary: S::begun(&begun), stop, id, kept, is_json: outlet.json })
    }

    /// Name of this sitting, for files and groups that belong to it.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// What a workload is given.
    pub(super) fn context(&self) -> Context {
        Context {
            clock: Arc::new(SystemClock),
            stop: Arc::clone(&self.stop),
            sample: Box::new(|_, _| {}),
            note: Box::new(say),
        }
    }

    /// Writes an event of the present time down, where the result is kept.
    pub(super) fn keep(&mut self, event: impl FnOnce(u64) -> Event) {
        if let Some(kept) = &mut self.kept {
            kept.append(&event(SystemClock.unix_ns()));
        }
    }

    /// All has ended: prints the result, as a page where something was measured, and says where it lies.
    pub(super) fn end(mut self, failure: Option<anyhow::Error>, interrupted: bool) -> anyhow::Result<Exit> {
        let why = failure.as_ref().map(ToString::to_string);
        self.summary.end(Ended { failure: why, interrupted });
        if self.is_json {
            json(&serde_json::to_value(&self.summary).context("cannot encode the result")?);
        } else {
            let stored: Stored = self.summary.clone().into();
            if failure.is_none() || !stored.figures().is_empty() {
                page(&stored);
            }
        }
        if let Some(kept) = self.kept.take() {
            say(&format!("result: {}", kept.finish(&self.summary)?.display()));
        }
        if let Some(failure) = failure {
            report_error(&failure);
            return Ok(Exit::of(&failure));
        }
        Ok(if interrupted { Exit::Interrupted } else { Exit::Done })
    }
}

/// Keeps what was worked out, not measured, in a directory of its own below `out`.
pub(super) fn keep(
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

/// Every run as it ends, how busy the processors were meanwhile, and the whole at the end.
struct Kept {
    directory: ResultDirectory,
    log: Arc<Mutex<EventLog>>,
    sampler: Option<Sampler<()>>,
}

impl Kept {
    /// Makes a directory of its own below `out`.
    fn begin<S: TestSummary>(out: &Path, begun: &Begun) -> anyhow::Result<Self> {
        let (directory, log) = ResultDirectory::begin(out, S::KIND, S::SCHEMA_VERSION, begun)?;
        let log = Arc::new(Mutex::new(log));
        // A trial watches them itself, beside its rates. A test whose processors nobody watches is a test all
        // the same.
        let is_watched = S::KIND != Kind::Record;
        let sampler = is_watched.then(|| watch(Arc::clone(&log)).ok()).flatten();
        Ok(Self { directory, log, sampler })
    }

    /// What cannot be written is told and ends nothing.
    fn append(&mut self, event: &Event) {
        if let Err(why) = self.log.lock().unwrap_or_else(PoisonError::into_inner).append(event) {
            tell(&Cause::of(&why).map(|why| format!("warning: {why}")));
        }
    }

    fn finish(mut self, summary: &impl TestSummary) -> anyhow::Result<PathBuf> {
        self.sampler.take().map(Sampler::stop);
        self.append(&Event::Finished { t_unix_ns: SystemClock.unix_ns(), verdict: None });
        self.directory.write_summary(summary)?;
        Ok(self.directory.path().to_owned())
    }
}

/// Writes down now and then how busy each core was since the last look.
fn watch(log: Arc<Mutex<EventLog>>) -> anyhow::Result<Sampler<()>> {
    let begin_ns = SystemClock.now_ns();
    let mut earlier: Vec<CoreTimes> = Vec::new();
    Ok(Sampler::start(LOOK, move |now_ns| {
        let Ok(cores) = CoreTimes::read_all(Path::new("/")) else { return };
        let usage = core_usage(&earlier, &cores);
        earlier = cores;
        if usage.is_empty() {
            return;
        }
        let named = |core: u32| format!("core_{core}_busy_percent");
        let event = Event::Sample {
            t_unix_ns: SystemClock.unix_ns(),
            t_ms: now_ns.saturating_sub(begin_ns) / 1_000_000,
            values: usage.iter().map(|used| (named(used.core), used.busy_percent)).collect(),
        };
        // A log that cannot be written is told of when a run ends.
        let _ = log.lock().unwrap_or_else(PoisonError::into_inner).append(&event);
    })?)
}
