//! What all disk tests share: flags, checks before the first byte, repeats in turns.
use std::path::PathBuf;
use std::time::Duration;

use keepup_campaign::Forecast;
use keepup_results::{DiskRun, DiskSummary, Event};
use keepup_workload::Footprint;
use keepup_workload::disk::{DiskTest, alternate};
use keepup_workload::load::LoadPlan;
use keepup_workload::preflight::{Checked, check, common_disks};

use crate::args::{Runs, volumes_or_default};
use crate::exit::{Exit, usage};
use crate::forecast::{forecast, foretell};
use crate::loads::{self, announce};
use crate::output::{command, result, say};
use crate::verbs::sitting::Sitting;

/// Flags of every disk test.
#[derive(Clone, clap::Args)]
pub(super) struct Common {
    /// Directory on the disk to measure; several are measured in turns [default: ./keepup-data]
    #[arg(long, value_name = "DIR")]
    volume: Vec<PathBuf>,
    #[command(flatten)]
    runs: Runs,
}

/// What is to be done with a test.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It is run.
    Measure,
    /// It is told to fio.
    ExportFio,
}

/// What distinguishes a test.
pub(super) struct Test<T> {
    /// What it does.
    pub(super) test: T,
    /// Whether one run uses all volumes at once; else each has runs of its own.
    pub(super) together: bool,
    /// Its settings.
    pub(super) plan: serde_json::Value,
}

/// Runs the test on all volumes, in turns or at once.
pub(super) fn measure<T: DiskTest + Clone>(
    common: &Common,
    purpose: Purpose,
    test: &Test<T>,
) -> anyhow::Result<Exit> {
    let volumes = common.volumes()?;
    let beside = common.runs.loads.plan()?;
    if purpose == Purpose::ExportFio {
        return export_fio(&test.test, &volumes, &beside);
    }
    let plan = plan(common, test, &volumes, &beside)?;
    if common.runs.outlet.dry_run {
        foretell(&plan, common.runs.outlet.json);
        return Ok(Exit::Done);
    }
    say(&plan.text);
    let outlet = &common.runs.outlet;
    let name = test.test.name();
    let mut sitting = Sitting::<DiskSummary>::begin(name, test.plan.clone(), &volumes, outlet)?;
    let mut context = sitting.context();
    let directory = format!("keepup-disk-{}", sitting.id());
    let places = places_of(&volumes, test.together);
    let mut loads = loads::start(&beside, sitting.id(), &sitting.stop)?;
    let mut tell = |run: &DiskRun| {
        sitting.keep(|t_unix_ns| Event::DiskRun { t_unix_ns, run: Box::new(run.clone()) });
        if !outlet.json {
            say(&format!("{}, run {} of {} has ended", run.place(), run.repeat, common.runs.repeats));
        }
    };
    let repeats = common.runs.repeats;
    let done = alternate(&test.test, &places, repeats, &directory, &mut loads, &mut context, &mut tell);
    drop(loads);
    sitting.summary.runs = done.runs;
    let failure = done.failure.map(anyhow::Error::from);
    sitting.end(failure, done.is_interrupted)
}

/// The volumes of each run.
fn places_of(volumes: &[PathBuf], together: bool) -> Vec<Vec<PathBuf>> {
    match together {
        true => vec![volumes.to_vec()],
        false => volumes.iter().map(|volume| vec![volume.clone()]).collect(),
    }
}

/// Looks at the volumes, and says what will be done to them.
fn plan<T: DiskTest>(
    common: &Common,
    test: &Test<T>,
    volumes: &[PathBuf],
    beside: &LoadPlan,
) -> anyhow::Result<Forecast> {
    let cost = test.test.cost();
    for checked in check(volumes, cost.space_bytes)? {
        checked.warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
    }
    if test.together {
        common_disks(volumes).iter().for_each(|warning| say(&format!("warning: {warning}")));
    }
    let runs = f64::from(common.runs.repeats) * places_of(volumes, test.together).len() as f64;
    let held = volumes.iter().map(|volume| (volume.clone(), cost.space_bytes)).collect();
    let time = Duration::try_from_secs_f64(cost.time.as_secs_f64() * runs).unwrap_or(Duration::MAX);
    let announced = announce(beside, &held, Some(time))?;
    let names: Vec<String> = volumes.iter().map(|volume| volume.display().to_string()).collect();
    let told = format!(
        "{} on {}: {runs} {}, at most {:.1} GB written in all, about {:.0} s on a slow disk; \
         removed afterwards",
        test.test.name(),
        names.join(if test.together { " + " } else { ", " }),
        if runs > 1.0 { "runs" } else { "run" },
        cost.bytes_written as f64 / 1e9 * f64::from(common.runs.repeats) * volumes.len() as f64,
        cost.time.as_secs_f64() * runs
    );
    let text = std::iter::once(told).chain(announced).collect::<Vec<_>>().join("\n");
    let bytes_written = volumes.iter().map(|volume| (volume.clone(), cost.bytes_written)).collect();
    let once = Footprint { bytes_written, space_bytes: held, time: Duration::ZERO };
    Ok(forecast(&Footprint { time, ..once.times(common.runs.repeats) }, beside, text))
}

/// Prints the test as a job file of fio.
fn export_fio<T: DiskTest>(test: &T, volumes: &[PathBuf], beside: &LoadPlan) -> anyhow::Result<Exit> {
    let file = test.fio(volumes).map_err(|why| usage(format!("no job file for {}: {why}", test.name())))?;
    let beside = match beside.specs.is_empty() {
        true => None,
        false => Some("; loads are not in here: run `keepup load` beside it".to_owned()),
    };
    let head = [
        format!("; {}", command()),
        "; run it with: fio FILE; its files are named keepup-fio-… and stay until you remove them".to_owned(),
        "; with huge pages (mem=mmaphuge) fio costs less CPU, as keepup does where it has them".to_owned(),
    ];
    let head: Vec<String> = head.into_iter().chain(beside).collect();
    result(&format!("{}\n{}", head.join("\n"), file.text()));
    Ok(Exit::Done)
}

impl Common {
    /// The volumes given, or the usual one, which is made.
    pub(super) fn volumes(&self) -> anyhow::Result<Vec<PathBuf>> {
        volumes_or_default(&self.volume)
    }

    /// The volumes, and what may be written to each, before the test's size is known.
    pub(super) fn room(&self) -> anyhow::Result<Vec<Checked>> {
        Ok(check(&self.volumes()?, 0)?)
    }

    /// Other volumes than those given.
    pub(super) fn set_volumes(&mut self, volumes: Vec<PathBuf>) {
        self.volume = volumes;
    }
}
