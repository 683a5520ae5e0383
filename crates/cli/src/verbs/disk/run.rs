//! Common part of all disk tests: flags, preflight checks, interleaved repeats.
use std::path::PathBuf;
use std::time::Duration;

use keepup_campaign::Forecast;
use keepup_results::{DiskRun, DiskSummary, Event};
use keepup_workload::Footprint;
use keepup_workload::disk::{DiskTest, alternate};
use keepup_workload::load::LoadPlan;
use keepup_workload::preflight::{Checked, check, common_disks};

use crate::args::{RepeatArgs, volumes_or_default};
use crate::exit::{Exit, usage};
use crate::forecast::{forecast, print_plan};
use crate::loads::{self, check_loads};
use crate::output::{command, log, result};
use crate::verbs::test_session::TestSession;

/// Flags of every disk test.
#[derive(Clone, clap::Args)]
pub(super) struct Common {
    /// Directory on the disk to measure; repeatable [default: ./keepup-data]
    #[arg(long, value_name = "DIR")]
    volume: Vec<PathBuf>,
    #[command(flatten)]
    runs: RepeatArgs,
}

/// Purpose of a test.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Run it.
    Measure,
    /// Print it as a fio job.
    ExportFio,
}

/// Test with its settings.
pub(super) struct Test<T> {
    /// The test.
    pub(super) test: T,
    /// Whether one run uses all volumes at once, instead of one volume per run.
    pub(super) together: bool,
    /// Settings for the result.
    pub(super) plan: serde_json::Value,
}

/// Runs the test on all volumes, interleaved or at once.
pub(super) fn measure<T: DiskTest + Clone>(
    common: &Common,
    purpose: Purpose,
    test: &Test<T>,
) -> anyhow::Result<Exit> {
    let volumes = common.volumes()?;
    let load_plan = common.runs.loads.plan()?;
    if purpose == Purpose::ExportFio {
        return export_fio(&test.test, &volumes, &load_plan);
    }
    let plan = plan(common, test, &volumes, &load_plan)?;
    if common.runs.output.dry_run {
        print_plan(&plan, common.runs.output.json);
        return Ok(Exit::Done);
    }
    log(&plan.text);
    let output = &common.runs.output;
    let name = test.test.name();
    let mut session = TestSession::<DiskSummary>::start(name, test.plan.clone(), &volumes, output)?;
    let mut context = session.context();
    let directory = format!("keepup-disk-{}", session.id());
    let groups = volume_groups(&volumes, test.together);
    let mut loads = loads::start(&load_plan, session.id(), &session.stop)?;
    let mut on_run = |run: &DiskRun| {
        session.log_event(|t_unix_ns| Event::DiskRun { t_unix_ns, run: Box::new(run.clone()) });
        if !output.json {
            log(&format!("{}, run {} of {} finished", run.place(), run.repeat, common.runs.repeats));
        }
    };
    let repeats = common.runs.repeats;
    let done = alternate(&test.test, &groups, repeats, &directory, &mut loads, &mut context, &mut on_run);
    drop(loads);
    session.summary.runs = done.runs;
    let failure = done.failure.map(anyhow::Error::from);
    session.end(failure, done.is_interrupted)
}

/// The volumes of each run.
fn volume_groups(volumes: &[PathBuf], together: bool) -> Vec<Vec<PathBuf>> {
    match together {
        true => vec![volumes.to_vec()],
        false => volumes.iter().map(|volume| vec![volume.clone()]).collect(),
    }
}

/// Checks the volumes and describes the test.
fn plan<T: DiskTest>(
    common: &Common,
    test: &Test<T>,
    volumes: &[PathBuf],
    load_plan: &LoadPlan,
) -> anyhow::Result<Forecast> {
    let cost = test.test.cost();
    for checked in check(volumes, cost.space_bytes)? {
        checked.warnings.iter().for_each(|warning| log(&format!("warning: {warning}")));
    }
    common_disks(volumes).iter().for_each(|warning| log(&format!("warning: {warning}")));
    let runs = f64::from(common.runs.repeats) * volume_groups(volumes, test.together).len() as f64;
    let held = volumes.iter().map(|volume| (volume.clone(), cost.space_bytes)).collect();
    let time = Duration::try_from_secs_f64(cost.time.as_secs_f64() * runs).unwrap_or(Duration::MAX);
    let announced = check_loads(load_plan, &held, Some(time))?;
    let names: Vec<String> = volumes.iter().map(|volume| volume.display().to_string()).collect();
    let text = format!(
        "{} on {}: {runs} {}, at most {:.1} GB written in total, about {:.0} s on a slow disk; \
         removed afterwards",
        test.test.name(),
        names.join(if test.together { " + " } else { ", " }),
        if runs > 1.0 { "runs" } else { "run" },
        cost.bytes_written as f64 / 1e9 * f64::from(common.runs.repeats) * volumes.len() as f64,
        cost.time.as_secs_f64() * runs
    );
    let text = std::iter::once(text).chain(announced).collect::<Vec<_>>().join("\n");
    let bytes_written = volumes.iter().map(|volume| (volume.clone(), cost.bytes_written)).collect();
    let once = Footprint { bytes_written, space_bytes: held, time: Duration::ZERO };
    Ok(forecast(&Footprint { time, ..once.times(common.runs.repeats) }, load_plan, text))
}

/// Prints the test as a job file of fio.
fn export_fio<T: DiskTest>(test: &T, volumes: &[PathBuf], load_plan: &LoadPlan) -> anyhow::Result<Exit> {
    let file = test
        .fio(volumes)
        .map_err(|why| usage(format!("cannot export {} as a fio job: {why}", test.name())))?;
    let note = match load_plan.specs.is_empty() {
        true => None,
        false => Some("; background loads are not included: run `keepup load` at the same time".to_owned()),
    };
    let head = [
        format!("; {}", command()),
        "; run it with: fio FILE; it leaves files named keepup-fio-…, remove them yourself".to_owned(),
        "; with huge pages (mem=mmaphuge) fio uses less CPU; keepup uses huge pages if available".to_owned(),
    ];
    let head: Vec<String> = head.into_iter().chain(note).collect();
    result(&format!("{}\n{}", head.join("\n"), file.text()));
    Ok(Exit::Done)
}

impl Common {
    /// The given volumes, or the default volume, which is created if missing.
    pub(super) fn volumes(&self) -> anyhow::Result<Vec<PathBuf>> {
        volumes_or_default(&self.volume)
    }

    /// Volumes with their usable space, checked before the size of the test is known.
    pub(super) fn checked_volumes(&self) -> anyhow::Result<Vec<Checked>> {
        Ok(check(&self.volumes()?, 0)?)
    }

    /// Replaces the volumes.
    pub(super) fn set_volumes(&mut self, volumes: Vec<PathBuf>) {
        self.volume = volumes;
    }
}
