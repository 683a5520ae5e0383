//! `--load`: background loads during a measurement.
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context as _;
use keepup_measure::clock::SystemClock;
use keepup_plan::LoadSpec;
use keepup_results::{LoadResult, LoadUnit};
use keepup_workload::load::{LoadPlan, Loads};

use crate::output::log;

/// Flags of commands that can run background loads.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LoadArgs {
    /// Background load, as in `keepup load --help`; repeatable
    ///
    /// One of net=RATE[@HOST], memory=RATE, cpu=CORES and disk=RATE@DIR[,read|write]. Each load runs in a
    /// separate process.
    #[arg(long = "load", value_name = "LOAD", value_parser = parse_load)]
    loads: Vec<LoadSpec>,
}

/// Parses a load such as `net=50MB/s`.
pub(crate) fn parse_load(text: &str) -> Result<LoadSpec, keepup_plan::LoadSpecError> {
    text.parse()
}

impl LoadArgs {
    /// Plan of the loads.
    pub(crate) fn plan(&self) -> anyhow::Result<LoadPlan> {
        plan(&self.loads)
    }

    /// Specifications as given on the command line.
    pub(crate) fn names(&self) -> Vec<String> {
        self.loads.iter().map(ToString::to_string).collect()
    }
}

/// Plan that runs the loads `specs` with this executable.
pub(crate) fn plan(specs: &[LoadSpec]) -> anyhow::Result<LoadPlan> {
    let program = std::env::current_exe().context("cannot find the keepup executable to run the loads")?;
    Ok(LoadPlan { program, specs: specs.to_vec() })
}

/// Checks the directories of disk loads and describes the loads. `time` is the duration of the measurement,
/// if limited; `reserved` is the space that the measurement itself needs on its volumes.
pub(crate) fn check_loads(
    plan: &LoadPlan,
    reserved: &BTreeMap<PathBuf, u64>,
    time: Option<Duration>,
) -> anyhow::Result<Option<String>> {
    plan.check(reserved)?.iter().for_each(|warning| log(&format!("warning: {warning}")));
    Ok(plan.summary(time))
}

/// Starts the loads and logs when each has reached its rate.
pub(crate) fn start(plan: &LoadPlan, id: &str, stop: &Arc<AtomicBool>) -> anyhow::Result<Loads> {
    Ok(Loads::start(plan, id, Arc::new(SystemClock), Arc::clone(stop), &mut log)?)
}

/// Formats a rate in the unit of its load.
pub(crate) fn format_rate(unit: LoadUnit, rate: f64) -> String {
    match unit {
        LoadUnit::BytesPerSecond => format!("{:.1} MB/s", rate / 1e6),
        LoadUnit::Cores => format!("{rate:.2} cores"),
    }
}

/// One line per load: requested rate, achieved rate and CPU use.
pub(crate) fn result_lines(loads: &[LoadResult]) -> Vec<String> {
    loads.iter().map(line).collect()
}

fn line(load: &LoadResult) -> String {
    let achieved =
        load.achieved.map_or_else(|| "unknown rate".to_owned(), |found| format_rate(load.unit, found));
    let cores = load.cores().map_or_else(String::new, |cores| format!(", CPU {cores:.2} cores"));
    format!("load {}: {achieved} of {} requested{cores}", load.spec, format_rate(load.unit, load.asked))
}

/// One warning per load that ended early or missed its rate.
pub(crate) fn warnings(loads: &[LoadResult]) -> Vec<String> {
    loads
        .iter()
        .filter_map(|load| match (&load.failure, load.share()) {
            (Some(why), _) => Some(format!("warning: load {} ended: {}", load.spec, first_line(why))),
            (None, Some(share)) if load.fell_short => {
                Some(format!("warning: load {} reached only {:.1} % of its rate", load.spec, share * 100.0))
            }
            _ => None,
        })
        .collect()
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
