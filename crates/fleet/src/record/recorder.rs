//! Part of a recorder: a recording until the run ends, and its drain until the copy is complete.
use std::sync::Arc;
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_recorder::{Assignment, Recorder};
use keepup_recording::id::Id;
use keepup_workload::preflight::check;

use super::assignment::FleetAssignment;
use super::drain::Feed;
use super::outcome::RecordOutcome;
use super::plan::RecordPlan;
use super::progress::{Progress, ProgressGuard};
use crate::directories::Directories;
use crate::error::error_text;
use crate::host::Done;
use crate::part::PartControl;

/// Interval at which the stop flag and the recorder are checked.
const POLL: Duration = Duration::from_millis(20);

/// What the part of a recorder works with.
pub(super) struct Setting {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) directories: Directories,
    pub(super) assignment: Arc<FleetAssignment>,
    pub(super) progress: Progress,
}

/// Prepares, waits for the start, records until the run ends; returns the [`RecordOutcome`] as JSON.
pub(super) fn record(plan: &RecordPlan, setting: &Setting, control: &PartControl) -> Result<String, String> {
    let (recorder, figures) = arm(plan, setting)?;
    let address = Some(recorder.address());
    control.report(Done::Prepared { run: control.run, address });
    let Some(until) = control.wait() else {
        let disarmed = recorder.disarm();
        return Err(match disarmed {
            Ok(_) => "ended before the start".to_owned(),
            Err(error) => error_text(&error),
        });
    };
    setting.assignment.start(setting.clock.now_ns().saturating_add(until.as_nanos() as u64));
    let feed = match feed(plan, setting, &recorder) {
        Ok(feed) => feed,
        Err(why) => {
            drop(recorder.disarm());
            return Err(why);
        }
    };
    recorder.open();
    let stopper = recorder.stopper();
    let mut is_ending = false;
    while !recorder.is_ended() {
        if control.is_stopped() {
            stopper.stop();
        }
        if recorder.is_ending() && !is_ending {
            is_ending = true;
            // Its streams move before it has written everything.
            control.report(Done::Ending { run: control.run });
        }
        setting.clock.sleep_until_ns(setting.clock.now_ns().saturating_add(POLL.as_nanos() as u64));
    }
    let (recording, directories) = (recorder.recording(), recorder.directories());
    let report = recorder.join_unless_empty().map_err(|error| error_text(&error));
    // The figures in the last heartbeat are final.
    drop(figures);
    if !is_ending {
        // It ended within an interval. Its streams must not wait for the drain.
        control.report(Done::Ending { run: control.run });
    }
    if report.is_err() {
        // Its journal may lack the end, for which the drain would wait.
        feed.iter().for_each(Feed::stop);
    }
    let drained = feed.map(|feed| feed.end(&*setting.clock, || control.is_hurried()));
    let outcome = RecordOutcome::new(recording, &report?, directories, drained);
    serde_json::to_string(&outcome).map_err(|error| format!("cannot write the result: {error}"))
}

/// Starts the drain, if the recorder has a sink.
fn feed(plan: &RecordPlan, setting: &Setting, recorder: &Recorder) -> Result<Option<Feed>, String> {
    let Some(to) = plan.drain_to else { return Ok(None) };
    let feed = Feed::start(recorder.directories(), to, Arc::clone(&setting.clock))?;
    setting.progress.watch_drain(feed.figures());
    Ok(Some(feed))
}

/// A recorder that accepts nobody yet. The plan comes from the network.
fn arm(plan: &RecordPlan, setting: &Setting) -> Result<(Recorder, ProgressGuard), String> {
    let volumes = plan.volumes.iter().map(|volume| setting.directories.check(volume));
    let volumes = volumes.collect::<Result<Vec<_>, _>>()?;
    let mut config = plan.config(volumes.clone())?;
    config.validate().map_err(|error| error_text(&error))?;
    check(&volumes, config.segment_bytes.saturating_mul(2)).map_err(|error| error_text(&error))?;
    config.assignment = Some(Arc::clone(&setting.assignment) as Arc<dyn Assignment>);
    let recording = Id::random().map_err(|error| format!("cannot read random bytes: {error}"))?;
    let recorder = Recorder::arm(config, recording, Arc::clone(&setting.clock));
    let recorder = recorder.map_err(|error| error_text(&error))?;
    let figures = setting.progress.watch(&recorder, Arc::clone(&setting.clock));
    Ok((recorder, figures))
}
