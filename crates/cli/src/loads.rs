//! `--load`: background loads during a measurement.
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context as _;
use keepup_measure::clock::SystemClock;
use keepup_plan::LoadSpec;
use keepup_results::LoadUnit;
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
