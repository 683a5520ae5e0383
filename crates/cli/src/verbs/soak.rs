//! `keepup soak`: bit-error test.
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use keepup_measure::clock::{Clock, SystemClock};
use keepup_measure::errors::ErrorCounter;
use keepup_recording::id::Id;
use keepup_results::{SoakSummary, rfc3339};
use keepup_soak::{
    DigestKind, Limits, Mode, ReferencePlan, Soak, SoakError, SoakMeasured, SoakPlan, SoakStart, SoakState,
    compared, counters,
};
use keepup_workload::preflight::check;
use keepup_workload::{Context, Workload, run as run_workload};

use crate::args::{OutputArgs, duration, size, volumes_or_default};
use crate::exit::{Exit, UsageError, usage};
use crate::forecast::{forecast, print_plan};
use crate::loads::{self, LoadArgs, check_loads};
use crate::output::{command, log};
use crate::progress::StatusLine;
use crate::signals::{self, Stopping};
use crate::verbs::test_session::TestSession;

/// Default copies per reference, as in the paper's script.
const COPIES: u64 = 4000;
/// Default generations of the stamped file.
const GENERATIONS: u64 = 1000;
const MIB: u64 = 1 << 20;
/// Sizes of generated references and of the stamped file, in bytes.
const SIZES: [u64; 3] = [MIB, 16 * MIB, 256 * MIB];
const STAMPED: u64 = 256 * MIB;
/// Sizes with `--quick`.
const QUICK_SIZES: [u64; 3] = [64 << 10, MIB, 16 * MIB];
const QUICK_STAMPED: u64 = 16 * MIB;
const QUICK_ROUNDS: u64 = 48;

/// Test for bit errors with thousands of compared copies or self-describing pages
///
/// Errors are located by file, offset and bits, and attributed to the medium, the page cache or the transfer.
/// The report gives errors per byte, or the 95 % upper bound if there were none. Exit code 1 on any error.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup soak --volume /data/a --quick
  keepup soak --volume /data/a --reference run1.raw --digest md5 --state soak.jsonl
  keepup soak --volume /data/a --volume /data/b --mode burn-in --time '3 d' --state burn-in.jsonl")]
pub(crate) struct Args {
    /// Directory on the disk to test; repeatable [default: ./keepup-data]
    #[arg(long, value_name = "DIR")]
    volume: Vec<PathBuf>,
    /// Test mode
    #[arg(long, value_enum, default_value_t = ModeArg::Copy)]
    mode: ModeArg,
    /// File to copy; repeatable [default: generated files of random data]
    #[arg(long, value_name = "FILE", conflicts_with = "sizes")]
    reference: Vec<PathBuf>,
    /// Sizes of generated files [default: 1 MiB,16 MiB,256 MiB]
    ///
    /// The stamped file has the largest of these sizes.
    #[arg(long = "size", value_parser = size, value_name = "SIZES", value_delimiter = ',')]
    sizes: Vec<u64>,
    /// Digest to compare
    #[arg(long, value_enum, default_value_t = DigestArg::Blake3)]
    digest: DigestArg,
    /// Rounds per volume, over all sessions [default: depends on --mode]
    ///
    /// A round is a copy of each file or a generation of the stamped file. The default is 4000 copies, 1000
    /// generations, or no limit for burn-in.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    copies: Option<u64>,
    /// Duration over all sessions [default: no limit]
    #[arg(long, value_parser = duration, value_name = "TIME")]
    time: Option<Duration>,
    /// State file: resume the soak in it, or create it
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Short test with small files and few rounds
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    loads: LoadArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ModeArg {
    /// Copy files and compare digests
    Copy,
    /// Write self-describing pages, to find misplaced, stale and torn writes
    Stamp,
    /// Alternate both, with all combinations of write, flush and read modes
    BurnIn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DigestArg {
    /// BLAKE3
    Blake3,
    /// MD5, as in the paper
    Md5,
}

impl Args {
    fn plan(&self) -> anyhow::Result<SoakPlan> {
        let volumes = volumes_or_default(&self.volume)?;
        // Absolute, so that the soak can be resumed from another directory.
        let real = |path: &PathBuf| std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        let sizes = match (&self.sizes[..], self.quick) {
            ([], true) => &QUICK_SIZES[..],
            ([], false) => &SIZES,
            (given, _) => given,
        };
        if sizes.contains(&0) {
            return Err(usage("cannot use --size 0"));
        }
        let stamped = match self.sizes.iter().max() {
            Some(size) => *size,
            None if self.quick => QUICK_STAMPED,
            None => STAMPED,
        };
        let made = || sizes.iter().map(|bytes| ReferencePlan::Made { bytes: *bytes }).collect();
        let references = match (self.mode, &self.reference[..]) {
            (ModeArg::Stamp, []) => Vec::new(),
            (ModeArg::Stamp, _) => {
                return Err(usage("cannot use --reference with --mode stamp: it copies no files"));
            }
            (_, []) => made(),
            (_, given) => given.iter().map(reference).collect::<anyhow::Result<_>>()?,
        };
        Ok(SoakPlan {
            mode: match self.mode {
                ModeArg::Copy => Mode::Copy,
                ModeArg::Stamp => Mode::Stamp,
                ModeArg::BurnIn => Mode::BurnIn,
            },
            digest: if self.digest == DigestArg::Md5 { DigestKind::Md5 } else { DigestKind::Blake3 },
            volumes: volumes.iter().map(real).collect(),
            references,
            stamped_bytes: if self.mode == ModeArg::Copy { 0 } else { stamped },
        })
    }

    fn limits(&self) -> Limits {
        let rounds = match (self.mode, self.time) {
            (_, Some(_)) => None,
            _ if self.quick => Some(QUICK_ROUNDS),
            (ModeArg::Copy, None) => Some(COPIES),
            (ModeArg::Stamp, None) => Some(GENERATIONS),
            (ModeArg::BurnIn, None) => None,
        };
        Limits { rounds: self.copies.or(rounds), time: self.time }
    }
}

/// Checks a file to copy.
fn reference(path: &PathBuf) -> anyhow::Result<ReferencePlan> {
    let wrong = |why: String| UsageError::new(format!("cannot copy {}: {why}", path.display()));
    let real = std::fs::canonicalize(path).map_err(|e| wrong(e.to_string()))?;
    match std::fs::metadata(&real) {
        Ok(found) if found.is_file() && found.len() > 0 => Ok(ReferencePlan::File { path: real }),
        Ok(_) => Err(wrong("it is empty or not a regular file".into()).into()),
        Err(e) => Err(wrong(e.to_string()).into()),
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let (plan, limits) = (args.plan()?, args.limits());
    let space = plan.footprint(limits).space_bytes.values().max().copied().unwrap_or(0);
    for checked in check(&plan.volumes, space)? {
        checked.warnings.iter().for_each(|warning| log(&format!("warning: {warning}")));
    }
    let load_plan = args.loads.plan()?;
    let footprint = plan.footprint(limits);
    let time = (limits != Limits::default()).then_some(footprint.time);
    let text = std::iter::once(describe(&plan, limits)).chain(check_loads(
        &load_plan,
        &footprint.space_bytes,
        time,
    )?);
    let text = text.collect::<Vec<_>>().join("\n");
    if args.output.dry_run {
        print_plan(&forecast(&footprint, &load_plan, text), args.output.json);
        return Ok(Exit::Done);
    }
    log(&text);
    let volumes = plan.volumes.clone();
    let settings = serde_json::to_value(&plan).context("cannot encode the plan")?;
    let id = Id::random().context("cannot read random bytes")?;
    let before = counters(&volumes);
    let state = state(args, SoakStart::new(id, SystemClock.unix_ns(), plan, before.clone()))?;
    let mut session = TestSession::<SoakSummary>::start("soak", settings, &volumes, &args.output)?;
    let mut context = Context { sample: progress(args.output.json), ..session.context() };
    let resume = args.state.is_some().then(command);
    signals::describe(move || Stopping {
        left: "end the current turn".into(),
        after_cut_off: resume.clone(),
    });
    let mut soak = Soak::new(state, limits);
    let mut loads = loads::start(&load_plan, session.id(), &session.stop)?;
    let begin_ns = SystemClock.now_ns();
    let failure = run_workload(&mut soak, &mut context).err();
    let loads_done = loads.over(begin_ns, SystemClock.now_ns());
    let failure = failure.or_else(|| loads.failure().map(SoakError::from)).map(anyhow::Error::from);
    drop(loads);
    // Removes the progress line.
    drop(context);
    // Findings are kept even if the soak failed.
    fill(&mut session.summary, soak.measured()?, &before, &counters(&volumes))?;
    session.summary.loads = loads_done;
    let damage = &session.summary.damage;
    let is_damaged = damage.mismatches + damage.references > 0;
    let interrupted = failure.is_none() && session.stop.load(Ordering::Acquire);
    let exit = session.end(failure, interrupted)?;
    Ok(if is_damaged { Exit::Failed } else { exit })
}

/// Opens the state file, if any.
fn state(args: &Args, start: SoakStart) -> anyhow::Result<SoakState> {
    let Some(path) = &args.state else { return Ok(SoakState::without_state(start)) };
    let state = SoakState::open(path, start)?;
    if state.torn_bytes > 0 {
        let torn = state.torn_bytes;
        log(&format!("warning: removed an incomplete last line of {torn} bytes from the state file"));
    }
    if state.account.sessions > 0 {
        let (turns, sessions) = (state.account.totals.turns, state.account.sessions);
        log(&format!("resuming after {turns} turns, session {}", sessions + 1));
    }
    Ok(state)
}

/// Fills the summary with the findings of all sessions.
fn fill(
    summary: &mut SoakSummary,
    done: SoakMeasured,
    before: &[ErrorCounter],
    after: &[ErrorCounter],
) -> anyhow::Result<()> {
    let account = done.account;
    summary.created = rfc3339(account.start.time_unix_ns);
    summary.id = account.start.id.to_string();
    summary.plan = serde_json::to_value(&account.start.plan).context("cannot encode the plan")?;
    summary.digests.clone_from(&account.digests);
    summary.sittings = account.sessions;
    summary.totals = account.totals;
    summary.rate = account.rate();
    summary.counters = compared(&account.start.counters, before, after);
    summary.damage = account.damage;
    summary.mismatches = account.mismatches;
    summary.notes = done.notes;
    Ok(())
}

/// Describes the plan.
fn describe(plan: &SoakPlan, limits: Limits) -> String {
    let footprint = plan.footprint(limits);
    let places: Vec<String> = plan.volumes.iter().map(|volume| volume.display().to_string()).collect();
    let mode = match plan.mode {
        Mode::Copy => format!("{} files copied", plan.references.len()),
        Mode::Stamp => format!("{:.1} MB stamped", plan.stamped_bytes as f64 / 1e6),
        Mode::BurnIn => "alternating copies and stamped pages".to_owned(),
    };
    let end = match (limits.rounds, limits.time) {
        (None, None) => "until stopped".to_owned(),
        (rounds, time) => {
            let rounds = rounds.map(|rounds| format!("{rounds} rounds"));
            let time = time.map(|time| format!("{} s", time.as_secs_f64()));
            rounds.into_iter().chain(time).collect::<Vec<_>>().join(" or ")
        }
    };
    let written: u64 = footprint.bytes_written.values().fold(0, |sum, bytes| sum.saturating_add(*bytes));
    let amount = match (limits.rounds, limits.time) {
        (None, None) => "writes at full speed".to_owned(),
        _ => format!(
            "at most {:.1} GB written in total, about {:.0} s on a slow disk",
            written as f64 / 1e9,
            footprint.time.as_secs_f64()
        ),
    };
    let space: u64 = footprint.space_bytes.values().max().copied().unwrap_or(0);
    format!(
        "soak on {}: {mode}, {end}; {amount}; {:.1} MB of space per volume, removed afterwards",
        places.join(", "),
        space as f64 / 1e6
    )
}

/// Progress line.
fn progress(quiet: bool) -> Box<dyn FnMut(u64, std::collections::BTreeMap<String, f64>) + Send> {
    let mut status = StatusLine::new();
    Box::new(move |_, readings| {
        let reading = |name: &str| readings.get(name).copied().unwrap_or(0.0);
        let text = format!(
            "soak: {:.0} turns, {:.2} GB read back, {:.0} mismatches",
            reading("turns"),
            reading("read_bytes") / 1e9,
            reading("mismatches")
        );
        if !quiet {
            status.show(&text, Duration::from_secs(1));
        }
    })
}
