//! `keepup load`: background loads for any other program.
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use keepup_measure::clock::{Clock, SystemClock};
use keepup_plan::LoadSpec;
use keepup_recording::id::Id;
use keepup_report::listing;
use keepup_results::LoadResult;
use keepup_workload::Footprint;
use keepup_workload::load::{Loads, run_child};

use crate::args::nonzero_duration;
use crate::exit::Exit;
use crate::forecast::{forecast, print_plan};
use crate::loads::{check_loads, format_rate, parse_load, plan, start};
use crate::output::{log, print_listing, report_error, result};
use crate::progress::StatusLine;
use crate::signals::{stop_flag, stop_flag_of_child};
use crate::stdout;
use crate::token::net_credentials;

/// Interval between reports.
const EVERY: Duration = Duration::from_secs(1);

/// Load network, disk, memory or CPU at a given rate
///
/// Runs until Ctrl-C or for --time, and prints the achieved rates. Each load is a separate process. `--load`
/// of the other commands runs the same loads during their measurement.
#[derive(clap::Args)]
#[command(after_help = "Loads:
  net=RATE                                  traffic of one process with itself over loopback
  net=RATE@HOST[:PORT]                      traffic from `keepup net serve` at HOST; its token in
                                            the variable KEEPUP_NET_TOKEN
  disk=RATE@DIR[,read|write][,size=SIZE]    I/O on one file in a new directory below DIR, removed
                                            afterwards; default: read, 1 GiB
  memory=RATE                               copies in main memory; reads and writes count
  cpu=CORES                                 CPU time in cores, such as 0.5 or 2

Examples:
  keepup load net=50MB/s
  keepup load disk=25MB/s@/data/a cpu=0.5 --time 60s
  keepup load memory=2GB/s --json")]
pub(crate) struct Args {
    /// Load specification, see below
    #[arg(required = true, value_name = "LOAD", value_parser = parse_load)]
    loads: Vec<LoadSpec>,
    /// Duration, from when all loads have reached their rates [default: until Ctrl-C]
    #[arg(long, value_parser = nonzero_duration, value_name = "TIME")]
    time: Option<Duration>,
    /// Print what would be written, then exit
    #[arg(long)]
    dry_run: bool,
    /// Print JSON: one line per second, then one for the whole time
    #[arg(long)]
    json: bool,
    /// Run one load until standard input closes, in a directory of this name, and report to the parent
    #[arg(long, hide = true, value_name = "NAME")]
    child: Option<String>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    if let Some(name) = &args.child {
        return child(&args.loads[0], name);
    }
    let plan = plan(&args.loads)?;
    if let Some(text) = check_loads(&plan, &Default::default(), args.time)? {
        let text = text.replace("beside it: ", "loads: ");
        if args.dry_run {
            let own = Footprint { time: args.time.unwrap_or_default(), ..Footprint::default() };
            print_plan(&forecast(&own, &plan, text), args.json);
            return Ok(Exit::Done);
        }
        log(&text);
    }
    let stop = stop_flag()?;
    let id = Id::random().context("cannot read random bytes")?.to_string();
    let mut loads = start(&plan, &id[..8], &stop)?;
    let begin_ns = SystemClock.now_ns();
    watch(args, &loads, begin_ns, &stop);
    let is_interrupted = stop.load(Ordering::Acquire) && args.time.is_some();
    let failure = loads.failure();
    let found = loads.over(begin_ns, SystemClock.now_ns());
    drop(loads);
    match args.json {
        true => print_json("whole", &found)?,
        false => print_listing(|style| listing::loads(&found, style)),
    }
    if let Some(failure) = failure {
        let failure = anyhow::Error::from(failure);
        report_error(&failure);
        return Ok(Exit::of(&failure));
    }
    Ok(if is_interrupted { Exit::Interrupted } else { Exit::Done })
}

/// Reports the rates every second until the end.
fn watch(args: &Args, loads: &Loads, begin_ns: u64, stop: &AtomicBool) {
    let clock = SystemClock;
    let mut status = StatusLine::new();
    let end_ns = args.time.map_or(u64::MAX, |time| begin_ns.saturating_add(time.as_nanos() as u64));
    let mut from_ns = begin_ns;
    while !stop.load(Ordering::Acquire) && clock.now_ns() < end_ns {
        let until_ns = end_ns.min(from_ns + EVERY.as_nanos() as u64);
        while !stop.load(Ordering::Acquire) && clock.now_ns() < until_ns {
            clock.sleep_until_ns(until_ns.min(clock.now_ns() + 50_000_000));
        }
        let found = loads.over(from_ns, until_ns);
        from_ns = until_ns;
        if args.json {
            // A closed pipe must not stop the loads.
            let _ = print_json("second", &found);
            continue;
        }
        let each = |load: &LoadResult| {
            format!(
                "{}: {}",
                load.spec,
                load.achieved.map_or("-".to_owned(), |found| format_rate(load.unit, found))
            )
        };
        status.show(&found.iter().map(each).collect::<Vec<_>>().join("; "), EVERY);
    }
}

/// Prints the rates of all loads over an interval as one line.
fn print_json(over: &str, loads: &[LoadResult]) -> anyhow::Result<()> {
    let loads = serde_json::to_value(loads).context("cannot encode the result")?;
    result(&serde_json::json!({"over": over, "loads": loads}).to_string());
    Ok(())
}

/// Main function of the process of one load. The parent reads its output, including errors.
fn child(spec: &LoadSpec, name: &str) -> anyhow::Result<Exit> {
    let stop = stop_flag_of_child()?;
    let parent = Arc::clone(&stop);
    let watching = std::thread::Builder::new().name("ku-parent".into());
    watching
        .spawn(move || {
            // The parent sends nothing. The pipe closes when the parent ends.
            let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
            parent.store(true, Ordering::Release);
        })
        .context("cannot watch the parent")?;
    let mut context = keepup_workload::Context {
        clock: Arc::new(SystemClock),
        stop,
        sample: Box::new(|_, _| {}),
        note: Box::new(log),
    };
    let credentials = net_credentials(None)?;
    let outcome = run_child(spec, credentials, name, &mut context, &mut stdout::lock());
    Ok(outcome.map_or_else(|why| Exit::of(&why.into()), |()| Exit::Done))
}
