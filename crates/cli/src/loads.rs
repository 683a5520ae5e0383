//! `--load`: what runs beside a measurement, and how it is told.
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

use crate::output::say;

/// Flags of everything that loads can run beside.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LoadArgs {
    /// Keep this busy meanwhile, in a process of its own; once for each: net=RATE[@HOST], memory=RATE,
    /// cpu=CORES or disk=RATE@DIR[,read|write], as in "net=50MB/s" (see `keepup load --help`)
    #[arg(long = "load", value_name = "LOAD", value_parser = load)]
    loads: Vec<LoadSpec>,
}

/// A load such as `net=50MB/s`.
pub(crate) fn load(text: &str) -> Result<LoadSpec, keepup_plan::LoadSpecError> {
    text.parse()
}

impl LoadArgs {
    /// What is to run.
    pub(crate) fn plan(&self) -> anyhow::Result<LoadPlan> {
        plan(&self.loads)
    }

    /// Each as it was asked for.
    pub(crate) fn names(&self) -> Vec<String> {
        self.loads.iter().map(ToString::to_string).collect()
    }
}

/// The loads `specs`, run by this program.
pub(crate) fn plan(specs: &[LoadSpec]) -> anyhow::Result<LoadPlan> {
    let program = std::env::current_exe().context("cannot find the program that runs the loads")?;
    Ok(LoadPlan { program, specs: specs.to_vec() })
}

/// Looks at the directories of disk loads, and says what all of them will do while something runs for `time`
/// (or without end), which holds `beside` on its own volumes.
pub(crate) fn announce(
    plan: &LoadPlan,
    beside: &BTreeMap<PathBuf, u64>,
    time: Option<Duration>,
) -> anyhow::Result<Option<String>> {
    plan.check(beside)?.iter().for_each(|warning| say(&format!("warning: {warning}")));
    Ok(plan.summary(time))
}

/// Starts the loads, and says how far each has got.
pub(crate) fn start(plan: &LoadPlan, id: &str, stop: &Arc<AtomicBool>) -> anyhow::Result<Loads> {
    Ok(Loads::start(plan, id, Arc::new(SystemClock), Arc::clone(stop), &mut say)?)
}

/// A rate in the unit of its load.
pub(crate) fn rate(unit: LoadUnit, rate: f64) -> String {
    match unit {
        LoadUnit::BytesPerSecond => format!("{:.1} MB/s", rate / 1e6),
        LoadUnit::Cores => format!("{rate:.2} cores"),
    }
}

/// One line for each load: what was asked, what it achieved, and what that cost.
pub(crate) fn lines(loads: &[LoadResult]) -> Vec<String> {
    loads.iter().map(line).collect()
}

fn line(load: &LoadResult) -> String {
    let achieved = load.achieved.map_or_else(|| "nothing known".to_owned(), |found| rate(load.unit, found));
    let cores = load.cores().map_or_else(String::new, |cores| format!(", CPU {cores:.2} cores"));
    format!("load {}: {achieved} of {} asked{cores}", load.spec, rate(load.unit, load.asked))
}

/// What is wrong with the loads, one sentence for each that fell short or ended.
pub(crate) fn warnings(loads: &[LoadResult]) -> Vec<String> {
    loads
        .iter()
        .filter_map(|load| match (&load.failure, load.share()) {
            (Some(why), _) => Some(format!("warning: load {} ended: {}", load.spec, first_line(why))),
            (None, Some(share)) if load.fell_short => Some(format!(
                "warning: load {} fell short: {:.1} % of what was asked",
                load.spec,
                share * 100.0
            )),
            _ => None,
        })
        .collect()
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
