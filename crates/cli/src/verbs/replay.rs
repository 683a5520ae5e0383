//! `keepup replay` and `keepup replay-set`: replay of block traces.
mod flags;
mod messages;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use keepup_campaign::Forecast;
use keepup_error::Cause;
use keepup_replay::{Replay, ReplayOptions, Script, TargetSpec, check_target, compare};
use keepup_results::shell::quoted;
use keepup_results::{Event, ReplayPass, ReplaySummary};
use keepup_workload::preflight::check;
use keepup_workload::{Footprint, Workload, run as drive};

use self::flags::Common;
use crate::exit::{Exit, usage};
use crate::forecast::{forecast, print_plan};
use crate::loads::check_loads;
use crate::output::log;
use crate::verbs::test_session::TestSession;

/// Replay a block trace and compare disks
///
/// Modes: `timed` submits each request at its traced time. `dep` submits a request when the requests it
/// depended on have completed, plus the traced think time. `afap` is as fast as possible. `paced` is a
/// constant rate. Files are filled with incompressible data before they are read.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup replay web.trace --volume /data/a
  keepup replay web.trace --volume /data/a --volume /data/b --baseline /data/a --mode dep
  keepup replay sda-sdb.trace --assign sda=/data/a --assign sdb=/data/b
  keepup replay hm_1.csv --volume /data/a --mode afap --depth 32 --map scale --size 20GB
  keepup replay web.trace --volume /data/a --load disk=25MB/s@/data/a,read")]
pub(crate) struct Args {
    /// Trace files; several blktrace files are one trace, others are replayed in turn
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// Target that counts as 1.00, as given with --volume, --raw or --target, or "DEVICE=DIR + DEVICE=DIR"
    #[arg(long, value_name = "TARGET")]
    baseline: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Replay a set of traces and rank disks by an index against a baseline
///
/// Replays every trace of the directory on every volume in interleaved order. With --load, each replay is
/// measured without and with the loads.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup replay-set traces/ --volume /data/a --volume /data/b --baseline /data/a --mode dep
  keepup replay-set traces/ --volume /data/a --baseline /data/a --load disk=25MB/s@/data/a,read")]
pub(crate) struct SetArgs {
    /// Directory with trace files
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Target that counts as 1.00
    #[arg(long, value_name = "TARGET")]
    baseline: String,
    #[command(flatten)]
    common: Common,
}

/// Plan of a replay.
struct Plan<'a> {
    common: &'a Common,
    traces: Vec<&'a [PathBuf]>,
    targets: Vec<TargetSpec>,
    baseline: Option<String>,
    with_and_without: bool,
    workload: &'static str,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    replay(&Plan {
        common: &args.common,
        traces: args.common.hints.traces(&args.traces)?,
        targets: args.common.targets()?,
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
        targets: args.common.targets()?,
        baseline: Some(args.baseline.clone()),
        with_and_without: true,
        workload: "replay-set",
    })
}

/// Files of a directory, sorted by name.
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
            let why =
                Cause::new(format!("cannot replay {}: the directory has no traces", directory.display()));
            let hint = "`keepup trace make` generates traces, `keepup trace record` records them";
            Err(usage(why.with_hint(hint)))
        }
        false => Ok(files),
    }
}

fn replay(plan: &Plan<'_>) -> anyhow::Result<Exit> {
    let (common, output) = (plan.common, &plan.common.output);
    let names: Vec<String> = plan.targets.iter().map(ToString::to_string).collect();
    let choices: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    if let Some(baseline) = plan.baseline.as_ref().filter(|baseline| !names.contains(baseline)) {
        let why = Cause::new(format!("cannot compare: the baseline {baseline} is not among the targets"));
        return Err(usage(why.with_hint(format!("--baseline {}", choices.join(" or ")))));
    }
    let loads = common.loads.plan()?;
    let mut options = common.options(loads, plan.with_and_without)?;
    let forecast = prepare(plan, &mut options)?;
    if output.dry_run {
        print_plan(&forecast, output.json);
        return Ok(Exit::Done);
    }
    log(&forecast.text);
    let settings = common.settings(&options, plan.baseline.as_deref());
    let mut session =
        TestSession::<ReplaySummary>::start(plan.workload, settings, &volumes(&plan.targets), output)?;
    options.id = session.id().to_owned();
    let failure = replay_all(plan, options, &mut session).err();
    let baseline = plan.baseline.as_deref();
    session.summary.index = baseline.and_then(|baseline| compare(&session.summary.passes, baseline));
    let is_interrupted = failure.is_none() && session.stop.load(std::sync::atomic::Ordering::Acquire);
    let found = messages::exit(&session.summary);
    let exit = session.end(failure, is_interrupted)?;
    Ok(if exit == Exit::Done { found } else { exit })
}

/// Directories among the targets.
fn volumes(targets: &[TargetSpec]) -> Vec<PathBuf> {
    let volumes = |target: &TargetSpec| match target {
        TargetSpec::Volume(path) => vec![path.clone()],
        TargetSpec::Assigned(places) => places.iter().map(|(_, path)| path.clone()).collect(),
        _ => Vec::new(),
    };
    targets.iter().flat_map(volumes).collect()
}

/// Checks traces and targets and describes the replay.
fn prepare(plan: &Plan<'_>, options: &mut ReplayOptions) -> anyhow::Result<Forecast> {
    let mut lines = Vec::new();
    let mut whole = Footprint::default();
    for files in &plan.traces {
        let script = script(plan, files, options)?;
        lines.extend(messages::describe_trace(&script.summary, options));
        let mut ignore = |_: &ReplayPass| {};
        let one = Replay::new(&script, &plan.targets, options, &mut ignore).plan();
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
            checked.warnings.iter().for_each(|warning| log(&format!("warning: {warning}")));
        }
    }
    let time = (whole.time > Duration::ZERO).then_some(whole.time);
    lines.extend(check_loads(&options.loads, &whole.space_bytes, time)?);
    lines.push(messages::cost(&plan.targets, options, &whole));
    Ok(forecast(&whole, &options.loads, lines.join("\n")))
}

/// Loads the trace in `files` so that it fits all targets, and sets the access mode.
fn script(plan: &Plan<'_>, files: &[PathBuf], options: &mut ReplayOptions) -> anyhow::Result<Script> {
    let common = plan.common;
    let trace = common.hints.open(files)?;
    options.io.access = common.access(trace.header().level);
    let blocks = plan.targets.iter().map(|target| target.block_bytes(options.io.access));
    let mut choice = common.script_options(blocks.max().unwrap_or(1));
    for target in &plan.targets {
        let bytes = target.size_bytes()?;
        choice.target_bytes = choice.target_bytes.into_iter().chain(bytes).min();
    }
    let name = files[0].file_name().unwrap_or_default().to_string_lossy();
    let script = Script::load(&name, trace, &choice)?;
    options.mode.check(&script)?;
    for target in &plan.targets {
        check_target(&script, target, options.io)?;
    }
    Ok(script)
}

/// Replays every trace. Finished passes are kept if a later one fails.
fn replay_all(
    plan: &Plan<'_>,
    mut options: ReplayOptions,
    session: &mut TestSession<ReplaySummary>,
) -> anyhow::Result<()> {
    for files in &plan.traces {
        let script = script(plan, files, &mut options)?;
        session.summary.traces.push(script.summary.clone());
        let is_json = plan.common.output.json;
        let mut context = session.context();
        let mut on_pass = |pass: &ReplayPass| {
            session.log_event(|t_unix_ns| Event::ReplayPass { t_unix_ns, pass: Box::new(pass.clone()) });
            session.summary.passes.push(pass.clone());
            if !is_json {
                log(&messages::ended(pass));
            }
        };
        drive(&mut Replay::new(&script, &plan.targets, &options, &mut on_pass), &mut context)?;
        if context.stop.load(std::sync::atomic::Ordering::Acquire) {
            break;
        }
    }
    Ok(())
}
