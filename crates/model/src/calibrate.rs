//! Calibration of a machine from a qualification: ceilings of the components, and cost of the
//! recorder.
//!
//! The limits of a calibrated machine were measured separately from the whole path; the model
//! claims that the whole path achieves them.

mod recorders;

use std::collections::BTreeMap;

use keepup_error::Cause;
use keepup_results::{Kind, ResultSummary, ThreadCpu, Verdict};

use crate::error::ModelError;
use crate::formulas::store::{Direction, Layout};
use crate::machine::{Machine, PathSpec, ResourceSpec, StageSpec};
use crate::part::Formula;
use crate::predict::PROCESSORS;
use crate::ranged::{Ranged, Source};
use crate::unit::Quantity;

pub use self::recorders::{MeasuredRate, Recorders};

/// Run-to-run variation of component ceilings: the repeatability of disk tests on quiet machines,
/// as a share.
const SCATTER: f64 = 0.05;
/// Threads that do all the work of one recording stage. Older results name the only one without a number.
const INTAKE: &str = "ku-intake";

/// The measured machine. `name` is its new name, `from` the source of its figures.
///
/// # Errors
/// The measurement is not a qualification, was interrupted, is inconclusive, or lacks a ceiling.
pub fn calibrate(result: &ResultSummary, name: &str, from: &str) -> Result<Machine, ModelError> {
    let refused = |why: &str, hint: &str| unsolvable(from, Cause::new(why).with_hint(hint));
    if result.kind != Kind::Qualify {
        return Err(refused("it is not a qualification", "keepup qualify"));
    }
    if result.interrupted {
        return Err(refused("the measurement was interrupted", "let keepup qualify run to its end"));
    }
    if result.verdict == Verdict::Inconclusive {
        let why = result.verdict_reasons.first().cloned().unwrap_or_default();
        return Err(refused(&format!("the measurement is inconclusive: {why}"), ""));
    }
    let network = result.ceilings.network_bytes_per_second;
    let network = network.ok_or_else(|| refused("the network alone was not measured", ""))?;
    let volumes: Vec<f64> = result.ceilings.volumes.iter().filter_map(|one| one.bytes_per_second).collect();
    if volumes.is_empty() || volumes.len() != result.ceilings.volumes.len() {
        return Err(refused("not every volume was measured alone", "keepup qualify with --volume"));
    }
    let recorder = result.cpu.seconds_per_gb;
    let recorder = recorder.ok_or_else(|| refused("what the recorder costs was not measured", ""))?;
    let calibration = Calibration { result, from, network, volumes, recorder };
    let machine = calibration.machine(name)?;
    machine.check()?;
    Ok(machine)
}

struct Calibration<'a> {
    result: &'a ResultSummary,
    from: &'a str,
    network: f64,
    volumes: Vec<f64>,
    recorder: f64,
}

impl Calibration<'_> {
    fn machine(&self, name: &str) -> Result<Machine, ModelError> {
        let mut resource = BTreeMap::new();
        resource.insert("network".to_owned(), rated(1, self.measured(self.network, "B/s", SCATTER)?));
        // Streams are distributed evenly, so the slowest volume limits all.
        let slowest = self.volumes.iter().copied().fold(f64::INFINITY, f64::min);
        let count = u32::try_from(self.volumes.len()).unwrap_or(u32::MAX);
        let mut volumes = rated(count, self.measured(slowest, "B/s", SCATTER)?);
        volumes.queue = true;
        let stall = self.result.trials.iter().filter(|trial| trial.passed).filter_map(|t| t.stall_ms_max);
        let stall = stall.fold(0.0, f64::max);
        volumes.stall = (stall > 0.0).then(|| self.measured(stall / 1e3, "s", 0.0)).transpose()?;
        resource.insert("volumes".to_owned(), volumes);
        resource.insert(PROCESSORS.to_owned(), threads(self.cores()));
        let mut record = vec![on("network"), on("volumes"), self.costing(PROCESSORS, self.recorder)?];
        if let Some((count, seconds_per_gb)) = self.threads(INTAKE) {
            resource.insert("intake".to_owned(), threads(count));
            record.push(self.costing("intake", seconds_per_gb)?);
        }
        let mut path = BTreeMap::new();
        let about = "a detector's stream from the network to the volumes";
        path.insert("record".to_owned(), way(about, record, &[]));
        if let Some(source) = self.result.cpu.source_seconds_per_gb.filter(|source| *source > 0.0) {
            let about = "the same with the simulated detector on this machine too, as it was measured";
            let source = vec![self.costing(PROCESSORS, source)?];
            path.insert("simulated".to_owned(), way(about, source, &["record"]));
        }
        let made = &self.result.created;
        Ok(Machine {
            name: name.to_owned(),
            title: format!("the machine of the qualification of {made} for {}", self.result.profile),
            notes: vec![
                "Measured: the ceilings of the components, each alone, and what the recorder costs."
                    .to_owned(),
                "Costs for each event are in those for each byte: events of another size were not measured."
                    .to_owned(),
                format!("Ranges of the ceilings are {} %, by which such runs differ.", 100.0 * SCATTER),
            ],
            main: "record".to_owned(),
            hosts: 1,
            resource,
            path,
            beside: BTreeMap::new(),
        })
    }

    fn cores(&self) -> u32 {
        let cores = self.result.environment["cpu"]["logical_cores"]["value"].as_u64();
        let busy = self.result.cpu.per_core_percent.len();
        cores.and_then(|cores| u32::try_from(cores).ok()).unwrap_or(busy as u32).max(1)
    }

    /// Number of threads with this name, and their CPU seconds per GB.
    fn threads(&self, name: &str) -> Option<(u32, f64)> {
        let is_one = |thread: &&ThreadCpu| {
            thread.name.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let found = self.result.cpu.recorder_threads.iter().filter(is_one);
        let (count, seconds) = found.fold((0, 0.0), |(n, sum), thread| (n + 1, sum + thread.seconds));
        let bytes = self.result.ledger.received.bytes as f64;
        (seconds > 0.0 && bytes > 0.0).then(|| (count, seconds / bytes * 1e9))
    }

    /// A stage with this cost in seconds per GB.
    fn costing(&self, name: &str, seconds_per_gb: f64) -> Result<StageSpec, ModelError> {
        let per_byte = Some(self.measured(seconds_per_gb / 1e9, "s/GB", 0.0)?);
        Ok(StageSpec { per_byte, ..on(name) })
    }

    /// A measured figure in base units, with a symmetric relative range.
    fn measured(&self, value: f64, unit: &str, scatter: f64) -> Result<Ranged, ModelError> {
        let refused = |why: Cause| unsolvable(self.from, why);
        let one: Quantity = format!("1 {unit}").parse().map_err(refused)?;
        let at = |value: f64| Quantity { value, unit: one.unit };
        let range = (scatter > 0.0).then(|| [at(value * (1.0 - scatter)), at(value * (1.0 + scatter))]);
        Ranged::new(at(value), range, Source::Measured, self.from).map_err(refused)
    }
}

fn unsolvable(from: &str, reason: Cause) -> ModelError {
    ModelError::Unsolvable { machine: from.to_owned(), reason }
}

fn rated(count: u32, rate: Ranged) -> ResourceSpec {
    ResourceSpec {
        formula: Some(Formula::Rate),
        count,
        set: BTreeMap::from([("rate".to_owned(), rate)]),
        ..bare()
    }
}

fn threads(count: u32) -> ResourceSpec {
    ResourceSpec { formula: Some(Formula::Thread), count, ..bare() }
}

fn bare() -> ResourceSpec {
    ResourceSpec {
        part: None,
        formula: None,
        count: 1,
        layout: Layout::Each,
        shared: false,
        queue: false,
        stall: None,
        set: BTreeMap::new(),
    }
}

fn on(name: &str) -> StageSpec {
    StageSpec {
        on: name.to_owned(),
        times: 1.0,
        crosses: None,
        random: false,
        factor: None,
        per_byte: None,
        rate: None,
        per_operation: None,
        window: None,
        in_flight: None,
    }
}

fn way(about: &str, stages: Vec<StageSpec>, includes: &[&str]) -> PathSpec {
    PathSpec {
        about: about.to_owned(),
        direction: Direction::Write,
        operation: None,
        includes: includes.iter().map(|name| (*name).to_owned()).collect(),
        stages,
    }
}

#[cfg(test)]
#[path = "calibrate_tests.rs"]
mod tests;
