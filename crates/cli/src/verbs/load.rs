//! `keepup load`: background loads alone, beside any other program.
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use keepup_measure::clock::{Clock, SystemClock};
use keepup_plan::LoadSpec;
use keepup_recording::id::Id;
use keepup_results::LoadResult;
use keepup_workload::Footprint;
use keepup_workload::load::{Loads, run_child};

use crate::args::some_time;
use crate::exit::Exit;
use crate::forecast::{forecast, foretell};
use crate::loads::{announce, lines, load, plan, rate, start, warnings};
use crate::output::{report_error, result, say};
use crate::progress::Status;
use crate::signals::stop_flag;
use crate::verbs::net::credentials;

/// Time between two looks at how the loads do.
const EVERY: Duration = Duration::from_secs(1);

/// Keep network, disk, memory or processors busy at a stated rate, beside any other program
///
/// Runs until Ctrl-C, or for --time, and tells what was achieved of what was asked. Every load is a process
/// of its own. `--load` of the other verbs runs the same beside what they measure.
#[derive(clap::Args)]
#[command(after_help = "Loads:
  net=RATE                                  bytes from one process to itself over loopback
  net=RATE@HOST[:PORT]                      bytes that `keepup net serve` at HOST sends; its token in
                                            the variable KEEPUP_NET_TOKEN
  disk=RATE@DIR[,read|write][,size=SIZE]    one file in a directory of its own below DIR, removed afterwards;
                                            read unless told otherwise, 1 GiB
  memory=RATE                               copies in main memory, bytes read and written together
  cpu=CORES                                 so many processors, as in 0.5 or 2

Examples:
  keepup load net=50MB/s
  keepup load disk=25MB/s@/data/a cpu=0.5 --time 60s
  keepup load memory=2GB/s --json")]
pub(crate) struct Args {
    /// The loads
    #[arg(required = true, value_name = "LOAD", value_parser = load)]
    loads: Vec<LoadSpec>,
    /// How long, from when all have reached their rates [default: until Ctrl-C]
    #[arg(long, value_parser = some_time, value_name = "TIME")]
    time: Option<Duration>,
    /// Say what would be written, and stop
    #[arg(long)]
    dry_run: bool,
    /// Print JSON: a line each second with the rates of that second, and one for the whole time
    #[arg(long)]
    json: bool,
    /// Work off one load until standard input ends, in a directory of this name, and report to the parent
    #[arg(long, hide = true, value_name = "NAME")]
    child: Option<String>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    if let Some(name) = &args.child {
        return child(&args.loads[0], name);
    }
    let plan = plan(&args.loads)?;
    if let Some(told) = announce(&plan, &Default::default(), args.time)? {
        let told = told.replace("beside it: ", "loads: ");
        if args.dry_run {
            let own = Footprint { time: args.time.unwrap_or_default(), ..Footprint::default() };
            foretell(&forecast(&own, &plan, told), args.json);
            return Ok(Exit::Done);
        }
        say(&told);
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
        false => result(&lines(&found).into_iter().chain(warnings(&found)).collect::<Vec<_>>().join("\n")),
    }
    if let Some(failure) = failure {
        let failure = anyhow::Error::from(failure);
        report_error(&failure);
        return Ok(Exit::of(&failure));
    }
    Ok(if is_interrupted { Exit::Interrupted } else { Exit::Done })
}

/// Tells each second how they do, until the end.
fn watch(args: &Args, loads: &Loads, begin_ns: u64, stop: &AtomicBool) {
    let clock = SystemClock;
    let mut status = Status::new();
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
            // One that cannot be printed has nobody who reads it.
            let _ = print_json("second", &found);
            continue;
        }
        let each = |load: &LoadResult| {
            format!("{}: {}", load.spec, load.achieved.map_or("-".to_owned(), |found| rate(load.unit, found)))
        };
        status.show(&found.iter().map(each).collect::<Vec<_>>().join("; "), EVERY);
    }
}

/// One line for all loads over a time.
fn print_json(over: &str, loads: &[LoadResult]) -> anyhow::Result<()> {
    let loads = serde_json::to_value(loads).context("cannot encode the result")?;
    result(&serde_json::json!({"over": over, "loads": loads}).to_string());
    Ok(())
}

/// The process of one load. What it says goes to the parent, errors too.
fn child(spec: &LoadSpec, name: &str) -> anyhow::Result<Exit> {
    let stop = stop_flag()?;
    let parent = Arc::clone(&stop);
    let watching = std::thread::Builder::new().name("ku-parent".into());
    watching
        .spawn(move || {
            // Nothing is ever sent: it ends when the parent does.
            let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
            parent.store(true, Ordering::Release);
        })
        .context("cannot watch the parent")?;
    let mut context = keepup_workload::Context {
        clock: Arc::new(SystemClock),
        stop,
        sample: Box::new(|_, _| {}),
        note: Box::new(say),
    };
    let credentials = credentials(None)?;
    let outcome = run_child(spec, credentials, name, &mut context, &mut std::io::stdout().lock());
    Ok(outcome.map_or_else(|why| Exit::of(&why.into()), |()| Exit::Done))
}
