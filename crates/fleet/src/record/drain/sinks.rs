//! Part of a drain host: its sinks, from the preparation until all recorders have ended.
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_recorder::{Recorder, Target};
use keepup_recording::id::Id;
use keepup_workload::preflight::check;
use serde::{Deserialize, Serialize};

use super::super::plan::RecordPlan;
use super::plan::DrainPlan;
use crate::directories::Directories;
use crate::error::error_text;
use crate::host::Done;
use crate::part::PartControl;

/// Interval at which the stop flag is checked.
const POLL: Duration = Duration::from_millis(20);

/// What a drain host reports of a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyOutcome {
    /// Name of the copy.
    pub name: String,
    /// Its directories; none if nothing has arrived, or copies are not kept.
    pub directories: Vec<PathBuf>,
    /// Events on stable storage, or dropped after they were received.
    pub durable_events: u64,
    /// Their payload, bytes.
    pub durable_bytes: u64,
    /// Whether the copy has no defects.
    pub is_whole: bool,
    /// Defects.
    pub incidents: Vec<String>,
}

/// Receives copies until the part is to end; returns a list of [`CopyOutcome`] as JSON.
pub(crate) fn receive(
    plan: &DrainPlan,
    (clock, directories): (&Arc<dyn Clock>, &Directories),
    control: &PartControl,
) -> Result<String, String> {
    let (mut sinks, mut failure) = (Vec::new(), None);
    for copy in &plan.copies {
        match start(copy, plan.is_trial, clock, directories) {
            Ok(sink) => sinks.push((copy, sink)),
            Err(why) => failure = Some(format!("{}: {why}", copy.name)),
        }
        if failure.is_some() {
            break;
        }
    }
    if failure.is_none() {
        control.report(Done::Prepared { run: control.run, address: None });
        // Recorders connect when they have begun. Before the end, the order to start changes nothing.
        control.wait();
        let is_ended = || sinks.iter().all(|(_, sink)| sink.is_ended());
        while !control.is_stopped() && !is_ended() {
            clock.sleep_until_ns(clock.now_ns().saturating_add(POLL.as_nanos() as u64));
        }
    }
    // Nothing may be left of any of them, whatever happens to another.
    sinks.iter().for_each(|(_, sink)| sink.stopper().stop());
    let outcomes: Vec<_> = sinks.into_iter().map(|(copy, sink)| outcome(copy, plan.is_trial, sink)).collect();
    let outcomes = outcomes.into_iter().collect::<Result<Vec<CopyOutcome>, String>>();
    let outcomes = failure.map_or(outcomes, Err)?;
    // A drain that fell behind because of a defect here says nothing about its rate.
    let defect = outcomes.iter().find_map(|copy| Some(format!("{}: {}", copy.name, copy.incidents.first()?)));
    if let Some(why) = defect.filter(|_| plan.is_trial) {
        return Err(why);
    }
    serde_json::to_string(&outcomes).map_err(|error| format!("cannot write the result: {error}"))
}

/// Starts the sink of a copy. The plan comes from the network.
fn start(
    copy: &RecordPlan,
    is_trial: bool,
    clock: &Arc<dyn Clock>,
    directories: &Directories,
) -> Result<Recorder, String> {
    let volumes = copy.volumes.iter().map(|volume| directories.check(volume));
    let volumes = volumes.collect::<Result<Vec<_>, _>>()?;
    let mut config = copy.config(volumes.clone())?;
    config.is_copy = true;
    if volumes.is_empty() {
        config.target = Target::Null;
    }
    config.validate().map_err(|error| error_text(&error))?;
    check(&volumes, config.segment_bytes.saturating_mul(2)).map_err(|error| error_text(&error))?;
    let id = Id::random().map_err(|error| format!("cannot read random bytes: {error}"))?;
    if is_trial {
        // An earlier one may have left its files.
        config.name = format!("{}-{id}", config.name);
    }
    Recorder::start(config, id, Arc::clone(clock)).map_err(|error| error_text(&error))
}

fn outcome(copy: &RecordPlan, is_trial: bool, sink: Recorder) -> Result<CopyOutcome, String> {
    let mut directories = sink.directories();
    let joined = sink.join_unless_empty().map_err(|error| error_text(&error));
    let is_removed = joined.as_ref().is_ok_and(|report| report.removed);
    if is_removed {
        directories.clear();
    }
    let mut failure = None;
    if is_trial {
        for directory in directories.drain(..) {
            if let Err(error) = std::fs::remove_dir_all(&directory) {
                failure.get_or_insert(format!("cannot remove {}: {error}", directory.display()));
            }
        }
    }
    let report = joined?;
    if let Some(why) = failure {
        return Err(why);
    }
    let durable = report.ledger.total().durable;
    Ok(CopyOutcome {
        name: copy.name.clone(),
        directories,
        durable_events: durable.events,
        durable_bytes: durable.bytes,
        is_whole: report.is_whole(),
        incidents: report.trouble.clone(),
    })
}
