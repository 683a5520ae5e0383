//! `keepup source`: simulated detector.
mod serve;

use std::fmt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context;
use keepup_error::Cause;
use keepup_peer::{Endpoint, EndpointError};
use keepup_plan::units::Bytes;
use keepup_report::{listing, plural};
use keepup_results::shell::quoted;
use keepup_sources::path_in_address;
use keepup_stream::client::ClientError;
use keepup_stream::source::{
    DectrisVersion, Destination, Door, Fleet, Folder, Protocol, SourceCounters, SourceError, SourcePlan,
    SourceReport, run as run_source,
};
use keepup_workload::detector::{SourceRate, source_plan};

use self::serve::ServeArgs;
use crate::args::{Cpus, cpus, nonzero_duration, size, source_rate};
use crate::exit::{Exit, UsageError, usage};
use crate::output::{json, log, print_listing, report_error};
use crate::progress::poll_until;
use crate::protocol::ProtocolArgs;
use crate::signals::stop_flag;

/// Simulate a detector and send its events to a recorder
///
/// Open loop: events are due at the detector's times even if the recorder falls behind. Events that overflow
/// the front-end buffer are lost at the source and counted. `--rate max` is a closed loop at full speed
/// instead.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup source csl --to 127.0.0.1:7611
  keepup source csl --to 127.0.0.1:7611 --rate '300 MB/s' --time 60s
  keepup source romanis --to 127.0.0.1:7611 --rate max
  keepup source romanis --to daq1:7611 --to daq2:7611    recorders of a fleet
  keepup source vlbi-mark6 --as vdif --to 127.0.0.1:4001 --rate '100 MB/s'
  keepup source eiger2-16m --as dectris-v2 --listen 127.0.0.1:31001
  keepup source pco-edge-55 --as pvaccess --listen 127.0.0.1:5075
  keepup source pilatus-100k --as files --to dir:/data/in
  keepup source --serve --listen 192.168.1.2       for `keepup qualify --source 192.168.1.2` elsewhere")]
pub(crate) struct Args {
    /// Built-in profile (see `keepup profile list`) or path of a profile file
    #[arg(required_unless_present = "serve")]
    profile: Option<String>,
    /// Address of the recorder; with --as files, dir:PATH
    ///
    /// Repeat it for the recorders of a fleet: one that can be reached is enough to find the others. Events
    /// are then kept in the front-end buffer until they are acknowledged, and sent again when their stream
    /// moves to another recorder.
    #[arg(long, value_name = "HOST:PORT", value_parser = to)]
    to: Vec<To>,
    /// Longest time in which a stream has no recorder or no acknowledgement, with several --to
    #[arg(long, value_name = "TIME", value_parser = nonzero_duration, default_value = "30s")]
    recorder_timeout: Duration,
    /// Rate: "80 MB/s", "305 /s" or "max" [default: the profile's]
    #[arg(long, value_parser = source_rate, value_name = "RATE")]
    rate: Option<SourceRate>,
    /// Duration [default: 10s, or until --events]
    #[arg(long, alias = "duration", value_parser = nonzero_duration, value_name = "TIME")]
    time: Option<Duration>,
    /// Number of events to send, over all streams
    #[arg(long, value_name = "N")]
    events: Option<u64>,
    /// Number of streams [default: the profile's]
    #[arg(long, value_name = "N")]
    streams: Option<u32>,
    /// Number of connections for the streams [default: the profile's]
    #[arg(long, value_name = "N")]
    connections: Option<u32>,
    /// Size of the front-end buffer [default: the profile's]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    buffer: Option<u64>,
    #[command(flatten)]
    protocol: ProtocolArgs,
    /// Payload size of every event [default: the profile's]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    event: Option<u64>,
    /// Id of the first stream
    #[arg(long, value_name = "ID", default_value_t = 0)]
    first_stream: u32,
    /// Seed of event sizes and data
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// CPUs of the sending threads, such as "0,2-3" [default: any]
    #[arg(long, value_parser = cpus, value_name = "LIST")]
    cpus: Option<Cpus>,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    serve: ServeArgs,
}

fn plan(args: &Args, profile: &str) -> anyhow::Result<SourcePlan> {
    let mut profile = keepup_plan::load(profile)?;
    if let Some(bytes) = args.event {
        profile = profile.with_events_of(Bytes(bytes));
    }
    let mut plan = source_plan(&profile, args.rate.unwrap_or(SourceRate::Profile), None);
    plan.duration = match (args.time, args.events) {
        (None, Some(_)) => None,
        (duration, _) => Some(duration.unwrap_or(Duration::from_secs(10))),
    };
    plan.events = args.events;
    plan.streams = args.streams.unwrap_or(plan.streams);
    plan.connections = args.connections.unwrap_or(plan.connections).min(plan.streams.max(1));
    plan.buffer_bytes = args.buffer.unwrap_or(plan.buffer_bytes);
    plan.first_stream = args.first_stream;
    plan.seed = args.seed.unwrap_or(plan.seed);
    plan.cpus = args.cpus.clone().unwrap_or_default().0;
    Ok(args.protocol.apply(plan))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.profile {
        Some(profile) if !args.serve.serve => send(args, profile),
        _ => serve::run(&args.serve),
    }
}

/// Value of `--to`.
#[derive(Clone, Debug)]
enum To {
    Recorder(Endpoint),
    Directory(PathBuf),
}

impl fmt::Display for To {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recorder(endpoint) => endpoint.fmt(f),
            Self::Directory(path) => write!(f, "dir:{}", path.display()),
        }
    }
}

/// Parses `HOST:PORT` or `dir:PATH`.
fn to(text: &str) -> Result<To, UsageError> {
    match text.strip_prefix("dir:") {
        Some("") => Err(UsageError::new(Cause::new("no directory given").with_hint("--to dir:PATH"))),
        Some(path) => Ok(To::Directory(path.into())),
        None => text.parse().map(To::Recorder).map_err(|error: EndpointError| UsageError::of(&error)),
    }
}

/// The recorders of a fleet.
fn fleet(args: &Args, plan: &SourcePlan) -> anyhow::Result<Destination> {
    if plan.protocol != Protocol::Keepup {
        let why = format!("cannot use several --to with --as {}: it has no acknowledgements", plan.protocol);
        return Err(usage(Cause::new(why).with_hint("--as keepup")));
    }
    let recorder = |to: &To| match to {
        To::Recorder(endpoint) => Ok(endpoint.clone()),
        To::Directory(_) => Err(usage("cannot use several --to with dir:PATH")),
    };
    let recorders = args.to.iter().map(recorder).collect::<anyhow::Result<_>>()?;
    Ok(Destination::Fleet(Fleet { recorders, patience: args.recorder_timeout }))
}

/// Where to send, or where to wait for the recorder.
fn destination(args: &Args, plan: &SourcePlan) -> anyhow::Result<Destination> {
    if args.to.len() > 1 {
        return fleet(args, plan);
    }
    match (args.to.first(), plan.protocol) {
        (Some(To::Directory(path)), Protocol::Files) => {
            let prefix = Path::new(args.profile.as_deref().unwrap_or("event"));
            let prefix = prefix.file_stem().map_or("event".into(), |stem| stem.to_string_lossy());
            let folder = Folder::open(path, &prefix, args.protocol.keep_files()).map_err(|source| {
                ClientError::File { action: "write files to", path: path.clone(), source }
            })?;
            let from = quoted(&format!("dir:{}", path_in_address(&path.display().to_string())));
            log(&format!("to record these files: `keepup record --from {from}`"));
            Ok(Destination::Directory(folder))
        }
        (_, Protocol::Files) => {
            Err(usage(Cause::new("cannot write files: no directory given").with_hint("--to dir:PATH")))
        }
        (Some(To::Directory(_)), protocol) => {
            let why = Cause::new(format!("cannot use --to dir:PATH with --as {protocol}"));
            Err(usage(why.with_hint("--as files")))
        }
        (Some(To::Recorder(to)), protocol) if !protocol.waits_for_recorder() => {
            Ok(Destination::Recorder(to.clone()))
        }
        (None, protocol @ (Protocol::Dectris(_) | Protocol::PvAccess)) => {
            let listen = args.serve.listen.as_deref().unwrap_or("127.0.0.1");
            let at = Endpoint::with_default_port(listen, waiting_port(protocol))?.address();
            let door = Door::open(at, None).with_context(|| format!("cannot listen on {at}"))?;
            let from = plan.received_at(door.address()).unwrap_or_default();
            log(&format!("waiting for a recorder: `keepup record --from {from}`"));
            Ok(Destination::Accept(door))
        }
        (Some(_), protocol) => {
            let why = Cause::new(format!("cannot use --to with --as {protocol}: the recorder connects"));
            Err(usage(why.with_hint("--listen HOST[:PORT]; by default 127.0.0.1")))
        }
        (None, protocol) => {
            let what = match args.serve.listen {
                Some(_) => {
                    format!("cannot use --listen with --as {protocol}: the source connects to the recorder")
                }
                None => "cannot send: no recorder address given".to_owned(),
            };
            Err(usage(Cause::new(what).with_hint("--to HOST:PORT")))
        }
    }
}

/// Target for the first log line.
fn target(to: &[To]) -> String {
    match to {
        [] => String::new(),
        [to] => format!(" to {to}"),
        all => {
            format!(" to a fleet, found at {}", all.iter().map(To::to_string).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Port at which a detector waits.
fn waiting_port(protocol: Protocol) -> u16 {
    match protocol {
        Protocol::Dectris(DectrisVersion::V1) => 9999,
        Protocol::Dectris(DectrisVersion::V2) => 31_001,
        _ => 5075,
    }
}

fn send(args: &Args, profile: &str) -> anyhow::Result<Exit> {
    let plan = plan(args, profile)?;
    plan.check()?;
    let to = destination(args, &plan)?;
    let stop = stop_flag()?;
    let live = SourceCounters::default();
    log(&format!(
        "sending {} as {} over {}{}",
        profile,
        plural(plan.streams.into(), "stream"),
        plural(plan.connections.into(), "connection"),
        target(&args.to)
    ));
    let outcome = std::thread::scope(|scope| {
        let running = scope.spawn(|| run_source(&plan, to.clone(), &stop, &live));
        let mut sent_before = 0;
        poll_until(&|| running.is_finished(), &mut |line, passed| {
            line.show(&status(&live, &mut sent_before, passed), passed);
        });
        running.join()
    });
    match outcome.unwrap_or_else(|panic| resume_unwind(panic)) {
        Ok(report) => {
            print(&report, args.json);
            let lost = report.total(|s| s.lost).events;
            let sent = report.total(|s| s.sent).events;
            let is_whole = lost == 0 && (!report.is_acknowledged || report.durable_events >= sent);
            Ok(if is_whole { Exit::Done } else { Exit::Failed })
        }
        Err(SourceError::Broken { connection, error, report }) => {
            print(&report, args.json);
            let error = anyhow::Error::new(error).context(format!("cannot send on connection {connection}"));
            report_error(&error);
            Ok(Exit::Failed)
        }
        Err(error) => Err(error.into()),
    }
}

fn status(live: &SourceCounters, sent_before: &mut u64, passed: Duration) -> String {
    let sent = live.sent_bytes.load(Ordering::Relaxed);
    let rate = (sent - std::mem::replace(sent_before, sent)) as f64 / passed.as_secs_f64();
    format!(
        "sent {:.0} MB/s, {:.2} GB so far, {:.1} MB waiting, {} events lost",
        rate / 1e6,
        sent as f64 / 1e9,
        live.backlog_bytes.load(Ordering::Relaxed) as f64 / 1e6,
        live.lost_events.load(Ordering::Relaxed)
    )
}

fn print(report: &SourceReport, as_json: bool) {
    match as_json {
        true => json(&report.to_json()),
        false => print_listing(|style| listing::source(report, style)),
    }
}
