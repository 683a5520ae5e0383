//! Detectors that the recorder controls over SIMPLON: their configuration, arm, trigger and disarm.
//!
//! A thread for each detector waits for its answers, so the data path and the main loop never do. Invariants:
//! a detector is armed once the recorder is connected to it; one that was armed, or may be, is disarmed
//! before the command ends.
mod task;

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread::JoinHandle;

use keepup_error::Cause;
use keepup_measure::clock::{Clock, SystemClock};
use keepup_recorder::{Recorder, RecorderConfig, catch_panic};
use keepup_results::live::RunState;
use keepup_simplon::{Detector, DetectorUrl, SimplonError};
use keepup_sources::SourceAddress;
use keepup_stream::detector_map::DETECTOR_CONFIG;

use self::task::{Plan, Stage, Task};
use crate::exit::usage;
use crate::progress::StatusLine;

/// Time for the end of a series to arrive after the detector was disarmed, in nanoseconds.
const END_NS: u64 = 10_000_000_000;
/// Interval of checks whether a detector is still being armed, in nanoseconds.
const WAIT_NS: u64 = 10_000_000;

/// Flags for control of detectors.
#[derive(clap::Args)]
pub(super) struct DetectorArgs {
    /// HTTP address of a DECTRIS detector, to record its configuration; repeatable
    ///
    /// The configuration of detector and stream (SIMPLON API) is read when the series has started, or after
    /// --arm. It becomes the stream `detector_config`, with one JSON document. With several detectors, give
    /// one address for each --from, in the same order. The detector must be initialized and its stream
    /// enabled.
    #[arg(long, value_name = "URL", requires = "from", conflicts_with = "stay")]
    simplon: Vec<DetectorUrl>,
    /// Arm the detectors once the recorder is connected, and disarm them at the end
    ///
    /// They are disarmed after the series, after a limit such as --stop-after, after an error, and on Ctrl-C.
    /// With --series, they are armed for each run; with --controlled, for each `start`. `stop` disarms them
    /// first and waits up to 10 s for the end of their series; a second `stop` does not wait.
    #[arg(long, requires = "simplon")]
    arm: bool,
    /// Trigger the detectors after --arm, ntrigger times
    ///
    /// For trigger_mode "ints". Without it, another program sends the trigger.
    #[arg(long, requires = "arm")]
    trigger: bool,
}

/// State of the end of a run.
#[derive(Default)]
enum Phase {
    /// The run goes on.
    #[default]
    Running,
    /// No further commands; some detectors are still being armed.
    Ending,
    /// Detectors are being disarmed.
    Disarming(Vec<JoinHandle<Result<(), SimplonError>>>),
    /// All are disarmed. The end of their series should arrive until this time.
    Disarmed { until_ns: u64 },
}

/// Control of the detectors of a recording; may have none.
#[derive(Default)]
pub(crate) struct DetectorControl {
    detectors: Vec<Arc<Detector>>,
    plan: Plan,
    tasks: Vec<Arc<Task>>,
    phase: Phase,
    /// For the report of the run.
    incidents: Vec<String>,
    has_failed: bool,
    failure: Option<SimplonError>,
}

impl DetectorControl {
    /// Connects to the detectors of `args`, checks that they can be used, and names their documents in
    /// `config`.
    pub(super) fn connect(args: &DetectorArgs, config: &mut RecorderConfig) -> anyhow::Result<Self> {
        if args.simplon.is_empty() {
            return Ok(Self::default());
        }
        let sources = &config.sources;
        let is_dectris = |source: &SourceAddress| matches!(source, SourceAddress::Dectris(_));
        if args.simplon.len() != sources.len() || !sources.iter().all(is_dectris) {
            let (urls, count) = (args.simplon.len(), sources.len());
            let what = format!(
                "cannot use --simplon: {urls} given for {count} --from, and every --from must be zmq://"
            );
            let hint = "one --simplon http://HOST for each --from zmq://HOST, in the same order";
            return Err(usage(Cause::new(what).with_hint(hint)));
        }
        let mut detectors = Vec::new();
        for url in &args.simplon {
            let detector = Detector::connect(url.clone(), Arc::new(SystemClock))?;
            if args.arm {
                detector.check_idle()?;
            }
            if args.trigger {
                detector.check_software_trigger()?;
            }
            detectors.push(Arc::new(detector));
        }
        config.documents = match &sources[..] {
            [_] => vec![DETECTOR_CONFIG.to_owned()],
            several => several.iter().map(|source| source.stream_name(DETECTOR_CONFIG)).collect(),
        };
        let plan = Plan { arms: args.arm, triggers: args.trigger };
        let mut control = Self::default();
        (control.detectors, control.plan) = (detectors, plan);
        Ok(control)
    }

    /// Whether no detector is controlled.
    pub(super) fn is_empty(&self) -> bool {
        self.detectors.is_empty()
    }

    /// Starts with a run that `recorder` records.
    pub(super) fn start_run(&mut self, recorder: &Recorder) {
        (self.phase, self.tasks) = (Phase::Running, Vec::new());
        let senders = recorder.document_senders().into_iter();
        for (place, (detector, sender)) in self.detectors.iter().zip(senders).enumerate() {
            let task = Arc::new(Task::new(Arc::clone(detector), place));
            self.tasks.push(Arc::clone(&task));
            let (plan, counters) = (self.plan, recorder.counters());
            let thread = std::thread::Builder::new().name(format!("ku-simplon-{place}"));
            let run = move || {
                let done = catch_panic(|| task.run(plan, &counters, sender));
                done.unwrap_or_else(|why| task.fail(why));
            };
            if let Err(error) = thread.spawn(run) {
                self.failure.get_or_insert(of_thread(&error));
            }
        }
    }

    /// Call it about every 50 ms during a run, with its state, until [`DetectorControl::is_settled`]. Returns
    /// whether the run is to be stopped: on request, but not before the detectors are disarmed and the end of
    /// their series had time to arrive.
    pub(super) fn poll(&mut self, is_asked: bool, state: RunState, line: &StatusLine) -> bool {
        self.take_news(line);
        let has_ended = state != RunState::Recording;
        let wants_end = is_asked || self.wants_end();
        loop {
            self.phase = match std::mem::take(&mut self.phase) {
                Phase::Running if wants_end || has_ended => {
                    self.tasks.iter().for_each(|task| task.no_more_commands.store(true, Release));
                    Phase::Ending
                }
                Phase::Ending if !self.tasks.iter().any(|task| task.stage() == Stage::Arming) => {
                    self.disarm(line)
                }
                Phase::Disarming(threads) if threads.iter().all(JoinHandle::is_finished) => {
                    let waits = !threads.is_empty() && !has_ended;
                    threads.into_iter().for_each(|thread| self.take_disarmed(thread, line));
                    let until_ns = SystemClock.now_ns() + if waits { END_NS } else { 0 };
                    Phase::Disarmed { until_ns }
                }
                unchanged => {
                    self.phase = unchanged;
                    break;
                }
            };
        }
        let Phase::Disarmed { until_ns } = self.phase else { return false };
        let is_over = has_ended || SystemClock.now_ns() >= until_ns;
        if is_over {
            self.tasks.iter().for_each(|task| task.is_over.store(true, Release));
        }
        wants_end && is_over
    }

    /// Whether a detector could not be armed or triggered, so that the recording has to end.
    pub(super) fn wants_end(&self) -> bool {
        self.failure.is_some()
    }

    /// Whether no detector is armed any more or being disarmed, and all have reported.
    pub(super) fn is_settled(&self) -> bool {
        let is_disarmed = matches!(self.phase, Phase::Disarmed { .. });
        is_disarmed && !self.tasks.iter().any(|task| task.is_reading.load(Acquire))
    }

    /// Incidents of the run, for its report; each is returned once.
    pub(super) fn take_incidents(&mut self, line: &StatusLine) -> Vec<String> {
        self.take_news(line);
        std::mem::take(&mut self.incidents)
    }

    /// Whether a configuration is missing, or a detector could not be disarmed.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Why a run was ended, if a detector could not be armed or triggered.
    pub(super) fn take_failure(&mut self) -> Option<SimplonError> {
        self.failure.take()
    }

    /// Takes what the threads report.
    fn take_news(&mut self, line: &StatusLine) {
        for task in &self.tasks {
            let news = task.take_news();
            news.messages.iter().for_each(|message| line.log(message));
            self.incidents.extend(news.incidents);
            self.has_failed |= news.has_failed;
            if self.failure.is_none() {
                self.failure = news.failure;
            }
        }
    }

    /// Starts to disarm what is armed.
    fn disarm(&mut self, line: &StatusLine) -> Phase {
        let mut threads = Vec::new();
        for task in self.tasks.iter().filter(|task| task.stage() == Stage::Armed) {
            line.log(&format!("disarming {}", task.detector.url()));
            let detector = Arc::clone(&task.detector);
            let thread = std::thread::Builder::new().name("ku-disarm".into());
            match thread.spawn(move || detector.disarm()) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    let error = Cause::of(&of_thread(&error)).with_hint(task.detector.curl("disarm"));
                    self.incidents.push(error.to_text());
                    self.has_failed = true;
                }
            }
        }
        Phase::Disarming(threads)
    }

    fn take_disarmed(&mut self, thread: JoinHandle<Result<(), SimplonError>>, line: &StatusLine) {
        if let Ok(Err(error)) = thread.join() {
            let cause = Cause::of(&error);
            line.log(&cause.clone().map(|why| format!("error: {why}")).to_text());
            self.incidents.push(cause.to_text());
            self.has_failed = true;
        }
    }
}

/// Disarms detectors that an error or a panic has left armed.
impl Drop for DetectorControl {
    fn drop(&mut self) {
        self.tasks.iter().for_each(|task| task.no_more_commands.store(true, Release));
        let line = StatusLine::new();
        loop {
            self.phase = match std::mem::take(&mut self.phase) {
                // A request has a time limit, so this ends.
                Phase::Running | Phase::Ending
                    if self.tasks.iter().any(|task| task.stage() == Stage::Arming) =>
                {
                    SystemClock.sleep_until_ns(SystemClock.now_ns() + WAIT_NS);
                    Phase::Ending
                }
                Phase::Running | Phase::Ending => self.disarm(&line),
                Phase::Disarming(threads) => {
                    threads.into_iter().for_each(|thread| self.take_disarmed(thread, &line));
                    break;
                }
                Phase::Disarmed { .. } => break,
            };
        }
        self.tasks.iter().for_each(|task| task.is_over.store(true, Release));
    }
}

fn of_thread(error: &std::io::Error) -> SimplonError {
    SimplonError::Detector(Cause::new(format!("cannot start a thread for a detector: {error}")))
}

#[cfg(test)]
#[path = "detectors_tests.rs"]
mod tests;
