//! Part of a recorder: a recording until the run ends.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_recorder::{Assignment, Recorder};
use keepup_recording::id::Id;
use keepup_workload::preflight::check;

use super::assignment::FleetAssignment;
use super::outcome::RecordOutcome;
use super::plan::RecordPlan;
use super::progress::Progress;
use crate::agent_loop::Reports;
use crate::directories::Directories;
use crate::error::error_text;
use crate::host::Done;

/// Interval at which the stop flag and the recorder are checked.
const POLL: Duration = Duration::from_millis(20);

/// What the part of a recorder works with.
pub(super) struct Setting {
    pub(super) run: u64,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) directories: Directories,
    pub(super) assignment: Arc<FleetAssignment>,
    pub(super) progress: Progress,
    /// Set when the part is to end.
    pub(super) stop: Arc<AtomicBool>,
    pub(super) reports: Reports,
}

/// Prepares, waits for the start, records until the run ends; returns the [`RecordOutcome`] as JSON.
pub(super) fn record(
    plan: &RecordPlan,
    setting: &Setting,
    started: &Receiver<Duration>,
) -> Result<String, String> {
    let recorder = arm(plan, setting)?;
    let address = Some(recorder.address());
    setting.reports.send(Done::Prepared { run: setting.run, address });
    let Some(until) = wait(setting, started) else {
        let disarmed = recorder.disarm();
        return Err(match disarmed {
            Ok(_) => "ended before the start".to_owned(),
            Err(error) => error_text(&error),
        });
    };
    setting.assignment.start(setting.clock.now_ns().saturating_add(until.as_nanos() as u64));
    recorder.open();
    let stopper = recorder.stopper();
    let mut is_ending = false;
    while !recorder.is_ended() {
        if setting.stop.load(Ordering::Acquire) {
            stopper.stop();
        }
        if recorder.is_ending() && !is_ending {
            is_ending = true;
            // Its streams move before it has written everything.
            setting.reports.send(Done::Ending { run: setting.run });
        }
        setting.clock.sleep_until_ns(setting.clock.now_ns().saturating_add(POLL.as_nanos() as u64));
    }
    let (recording, directories) = (recorder.recording(), recorder.directories());
    let report = recorder.join_unless_empty().map_err(|error| error_text(&error));
    setting.progress.end();
    let report = report?;
    let outcome = RecordOutcome::new(recording, &report, directories);
    serde_json::to_string(&outcome).map_err(|error| format!("cannot write the result: {error}"))
}

/// A recorder that accepts nobody yet. The plan comes from the network.
fn arm(plan: &RecordPlan, setting: &Setting) -> Result<Recorder, String> {
    let volumes = plan.volumes.iter().map(|volume| setting.directories.check(volume));
    let volumes = volumes.collect::<Result<Vec<_>, _>>()?;
    let mut config = plan.config(volumes.clone())?;
    config.validate().map_err(|error| error_text(&error))?;
    check(&volumes, config.segment_bytes.saturating_mul(2)).map_err(|error| error_text(&error))?;
    config.assignment = Some(Arc::clone(&setting.assignment) as Arc<dyn Assignment>);
    let recording = Id::random().map_err(|error| format!("cannot read random bytes: {error}"))?;
    let recorder = Recorder::arm(config, recording, Arc::clone(&setting.clock));
    let recorder = recorder.map_err(|error| error_text(&error))?;
    setting.progress.watch(&recorder, Arc::clone(&setting.clock));
    Ok(recorder)
}

/// Waits for the start; returns the time until then, or none if the run ends first.
fn wait(setting: &Setting, started: &Receiver<Duration>) -> Option<Duration> {
    loop {
        match started.recv_timeout(POLL) {
            Ok(until) => return Some(until),
            Err(RecvTimeoutError::Timeout) if !setting.stop.load(Ordering::Acquire) => {}
            Err(_) => return None,
        }
    }
}
