//! `keepup replay` and `keepup replay-set`: traces made again, in their time or as fast as they can be.
mod flags;
mod messages;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use keepup_campaign::Forecast;
use keepup_error::Cause;
use keepup_results::{Event, ReplayPass, ReplaySummary};
use keepup_workload::preflight::check;
use keepup_workload::replay::{Replay, ReplayOptions, Script, TargetSpec, check_target, compare};
use keepup_workload::{Footprint, Workload, run as drive};

use self::flags::Common;
use crate::exit::{Exit, usage};
use crate::forecast::{forecast, foretell};
use crate::loads::announce;
use crate::output::say;
use crate::verbs::sitting::Sitting;

/// Replay a trace on disks: what was asked of one machine, asked of this one
///
/// Modes: `timed` makes each request at its own time, whatever became of those before; `dep` when those have
/// ended that it was seen to wait for, and after the same time to think; `afap` as fast as they can be done;
/// `paced` at a constant rate. Files that will be read are filled first with data that cannot be compressed.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup replay web.trace --volume /data/a
  keepup replay web.trace --volume /data/a --volume /data/b --baseline /data/a --mode dep
  keepup replay hm_1.csv --volume /data/a --mode afap --depth 32 --map scale --size 20GB
  keepup replay web.trace --volume /data/a --load disk=25MB/s@/data/a,read")]
pub(crate) struct Args {
    /// The trace; several files of blktrace are one, other files are replayed one after another
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// The place that is 1.00 in the comparison, as given with --volume, --raw or --target
    #[arg(long, value_name = "PLACE")]
    baseline: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Compare disks by a set of traces: one index for each, against a baseline
///
/// Every trace of the directory is replayed on every volume in turns; with --load, without the loads and
/// with them.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup replay-set traces/ --volume /data/a --volume /data/b --baseline /data/a --mode dep
  keepup replay-set traces/ --volume /data/a --baseline /data/a --load disk=25MB/s@/data/a,read")]
pub(crate) struct SetArgs {
    /// Directory of traces: all its files
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// The volume that is 1.00
    #[arg(long, value_name = "PLACE")]
    baseline: String,
    #[command(flatten)]
    common: Common,
}

/// What is replayed.
struct Plan<'a> {
    common: &'a Common,
    traces: Vec<&'a [PathBuf]>,
    places: Vec<TargetSpec>,
    baseline: Option<String>,
    with_and_without: bool,
    workload: &'static str,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    replay(&Plan {
        common: &args.common,
        traces: args.common.hints.traces(&args.traces)?,
        places: args.common.places()?,
        baseline: args.baseline.clone(),
        with_and_without: false,
        workload: "replay",
    })
}

pub(crate) fn run_set(args: &SetArgs) -> anyhow::Result<Exit> {
    let traces = files_of(&args.directory)?;
    replay(&Plan {
        common: &args.common,
        traces: traces.chunks(1).collect(),
        places: args.common.places()?,
        baseline: Some(args.baseline.clone()),
        with_and_without: true,
        workload: "replay-set",
    })
}

/// The files of a directory, in the order of their names.
fn files_of(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let what = || format!("cannot read the traces of {}", directory.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(what)? {
        let entry = entry.with_context(what)?;
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        if entry.path().is_file() && !is_hidden {
            files.push(entry.path());
        }
    }
    files.sort();
    match files.is_empty() {
        true => {
            let why = Cause::new(format!("cannot replay {}: it has no traces", directory.display()));
            let hint = "`keepup trace make` makes some up, `keepup trace record` records";
            Err(usage(why.with_hint(hint)))
        }
        false => Ok(files),
    }
}

fn replay(plan: &Plan<'_>) -> anyhow::Result<Exit> {
    let (common, outlet) = (plan.common, &plan.common.outlet);
    let names: Vec<String> = plan.places.iter().map(ToString::to_string).collect();
    if let Some(baseline) = plan.baseline.as_ref().filter(|baseline| !names.contains(baseline)) {
        let why = Cause::new(format!("cannot compare: the baseline {baseline} is none of the places"));
        return Err(usage(why.with_hint(format!("--baseline {}", names.join(" or ")))));
    }
    let loads = common.loads.plan()?;
    let mut manner = common.manner(loads, plan.with_and_without)?;
    let told = announced(plan, &mut manner)?;
    if outlet.dry_run {
        foretell(&told, outlet.json);
        return Ok(Exit::Done);
    }
    say(&told.text);
    let settings = common.settings(&manner, plan.baseline.as_deref());
    let mut sitting =
        Sitting::<ReplaySummary>::begin(plan.workload, settings, &volumes(&plan.places), outlet)?;
    manner.id = sitting.id().to_owned();
    let failure = all(plan, manner, &mut sitting).err();
    let baseline = plan.baseline.as_deref();
    sitting.summary.index = baseline.and_then(|baseline| compare(&sitting.summary.passes, baseline));
    let is_interrupted = failure.is_none() && sitting.stop.load(std::sync::atomic::Ordering::Acquire);
    let found = messages::exit(&sitting.summary);
    let exit = sitting.end(failure, is_interrupted)?;
    Ok(if exit == Exit::Done { found } else { exit })
}

/// The directories among places.
fn volumes(places: &[TargetSpec]) -> Vec<PathBuf> {
    let volume = |place: &TargetSpec| match place {
        TargetSpec::Volume(path) => Some(path.clone()),
        _ => None,
    };
    places.iter().filter_map(volume).collect()
}

/// Looks at traces and places, and says what will be done.
fn announced(plan: &Plan<'_>, manner: &mut ReplayOptions) -> anyhow::Result<Forecast> {
    let mut lines = Vec::new();
    let mut whole = Footprint::default();
    for files in &plan.traces {
        let script = script(plan, files, manner)?;
        lines.extend(messages::trace(&script.summary, manner));
        let mut nobody = |_: &ReplayPass| {};
        let one = Replay::new(&script, &plan.places, manner, &mut nobody).plan();
        whole.time += one.time;
        for (volume, bytes) in one.bytes_written {
            *whole.bytes_written.entry(volume).or_default() += bytes;
        }
        for (volume, bytes) in one.space_bytes {
            let most = whole.space_bytes.entry(volume).or_default();
            *most = bytes.max(*most);
        }
    }
    for (volume, bytes) in &whole.space_bytes {
        for checked in check(std::slice::from_ref(volume), *bytes)? {
            checked.warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
        }
    }
    let time = (whole.time > Duration::ZERO).then_some(whole.time);
    lines.extend(announce(&manner.loads, &whole.space_bytes, time)?);
    lines.push(messages::cost(&plan.places, manner, &whole));
    Ok(forecast(&whole, &manner.loads, lines.join("\n")))
}

/// The trace in `files`, ready for all places alike; sets how it is accessed.
fn script(plan: &Plan<'_>, files: &[PathBuf], manner: &mut ReplayOptions) -> anyhow::Result<Script> {
    let common = plan.common;
    let trace = common.hints.open(files)?;
    manner.io.access = common.access(trace.header().level);
    let blocks = plan.places.iter().map(|place| place.block_bytes(manner.io.access));
    let mut choice = common.choice(blocks.max().unwrap_or(1));
    for place in &plan.places {
        let bytes = place.size_bytes()?;
        choice.target_bytes = choice.target_bytes.into_iter().chain(bytes).min();
    }
    let name = files[0].file_name().unwrap_or_default().to_string_lossy();
    let script = Script::load(&name, trace, &choice)?;
    manner.mode.check(&script)?;
    for place in &plan.places {
        check_target(&script, place, manner.io)?;
    }
    Ok(script)
}

/// Replays every trace; what has ended stands, also when a later one fails.
fn all(
    plan: &Plan<'_>,
    mut manner: ReplayOptions,
    sitting: &mut Sitting<ReplaySummary>,
) -> anyhow::Result<()> {
    for files in &plan.traces {
        let script = script(plan, files, &mut manner)?;
        sitting.summary.traces.push(script.summary.clone());
        let is_json = plan.common.outlet.json;
        let mut context = sitting.context();
        let mut tell = |pass: &ReplayPass| {
            sitting.keep(|t_unix_ns| Event::ReplayPass { t_unix_ns, pass: Box::new(pass.clone()) });
            sitting.summary.passes.push(pass.clone());
            if !is_json {
                say(&messages::ended(pass));
            }
        };
        drive(&mut Replay::new(&script, &plan.places, &manner, &mut tell), &mut context)?;
        if context.stop.load(std::sync::atomic::Ordering::Acquire) {
            break;
        }
    }
    Ok(())
}
