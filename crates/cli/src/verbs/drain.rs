//! `keepup drain`: copies durable data while recording.
mod archive;

use std::net::Ipv4Addr;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use anyhow::Context;
use keepup_archive::{CONNECTIONS_MAX, is_store_url};
use keepup_error::Cause;
use keepup_measure::clock::SystemClock;
use keepup_peer::{Endpoint, EndpointError};
use keepup_recorder::drain::{DrainCounters, DrainPlan, DrainReport, Missing, drain};
use keepup_recorder::{Recorder, RecorderConfig, Target};
use keepup_recording::id::Id;
use keepup_report::listing;
use keepup_workload::preflight::check;

use super::record::recording_name;
use crate::args::{RecordingDirs, byte_rate};
use crate::exit::{Exit, usage};
use crate::output::{json, log, print_listing, report_error};
use crate::progress::poll_until;
use crate::signals::stop_flag;
use crate::transfer::{Amounts, TransferLine};

/// Limit on listed gaps on stderr; `--json` has more.
const MISSING_SHOWN: usize = 20;

/// Copy a recording to another recorder, a directory or an object store, even while it is being recorded
///
/// Copies durable events, checks every checksum and gives the recorder priority for CPU and disk. Events that
/// cannot be read, for example on a failed volume, are skipped and listed; the exit code is then 1.
///
/// An object store receives the files of the recording unchanged, each segment once it is sealed, and an
/// inventory with their checksums at the end. Segments with damaged blocks are sent and reported; the exit
/// code is then 1. An interrupted copy continues. `keepup restore` is the reverse.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup drain keepup-data/run1 --to tcp://127.0.0.1:7612 --follow --rate '20 MB/s'
  keepup drain keepup-data/run1 --to /tape
  keepup drain keepup-data/run1 --to s3://bucket/beamline --follow --rate '200 MB/s'")]
pub(crate) struct Args {
    #[command(flatten)]
    recording: RecordingDirs,
    /// tcp://HOST:PORT of a sink or recorder, a directory, or s3://BUCKET/PREFIX
    ///
    /// Other object stores: gs://BUCKET/PREFIX, az://CONTAINER/PREFIX and file:///DIRECTORY. The archive is
    /// made below this address, under the recording's name. Credentials come from the environment (AWS_...,
    /// GOOGLE_..., AZURE_...), those of S3 also from ~/.aws. AWS_ENDPOINT_URL is the address of another
    /// server.
    #[arg(long, value_name = "DESTINATION")]
    to: String,
    /// Limit on the payload rate, such as "20 MB/s" [default: none]
    #[arg(long, value_parser = byte_rate, value_name = "RATE")]
    rate: Option<f64>,
    /// Continue until the recording has ended
    #[arg(long)]
    follow: bool,
    /// Read every object back, even if the store has confirmed its checksum
    #[arg(long)]
    read_back: bool,
    /// Parts of 8 MiB in flight to an object store [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=CONNECTIONS_MAX as i64))]
    connections: Option<u16>,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

/// Parses `tcp://HOST:PORT` or `HOST:PORT`.
pub(super) fn tcp_endpoint(text: &str) -> Result<Endpoint, EndpointError> {
    text.strip_prefix("tcp://").unwrap_or(text).parse()
}

/// Whether the text is probably a misspelt address: it has a port or another scheme.
fn is_like_an_address(text: &str) -> bool {
    let has_port = |rest: &str| rest.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    text.contains("://") || (has_port(text) && !text.contains('/'))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    if is_store_url(&args.to) {
        return archive::run(args);
    }
    if args.read_back || args.connections.is_some() {
        let why = Cause::new("--read-back and --connections are for object stores");
        return Err(usage(why.with_hint("--to s3://BUCKET/PREFIX")));
    }
    if args.to.starts_with("tcp://") {
        let to = tcp_endpoint(&args.to).map_err(|why| usage(Cause::of(&why)))?;
        return drain_to(args, to);
    }
    let volume = PathBuf::from(&args.to);
    if !volume.exists() && is_like_an_address(&args.to) {
        let address = args.to.split_once("://").map_or(args.to.as_str(), |(_, address)| address);
        let why = Cause::new(format!(
            "cannot drain to {:?}: it is neither tcp://HOST:PORT, an object store nor an existing directory",
            args.to
        ));
        let hint = format!("--to tcp://{address} for a sink or recorder at this address");
        return Err(usage(why.with_hint(hint)));
    }
    for checked in check(std::slice::from_ref(&volume), 2 << 30)? {
        checked.warnings.iter().for_each(|warning| log(&format!("warning: {warning}")));
    }
    let id = Id::random().context("cannot read random bytes")?;
    let listen = Endpoint::from((Ipv4Addr::LOCALHOST, 0));
    let mut config =
        RecorderConfig::new(listen, Target::Volumes(vec![volume]), recording_name(None, id, None));
    config.is_copy = true;
    let recorder = Recorder::start(config, id, Arc::new(SystemClock))?;
    for directory in recorder.directories() {
        log(&format!("writing to {}", directory.display()));
    }
    let outcome = drain_to(args, recorder.address().into());
    recorder.stopper().stop();
    recorder.join_unless_empty()?;
    outcome
}

fn drain_to(args: &Args, to: Endpoint) -> anyhow::Result<Exit> {
    let stop = stop_flag()?;
    let plan = DrainPlan {
        recording: args.recording.directories.clone(),
        to,
        rate: args.rate,
        follow: args.follow,
        finish_timeout: Duration::from_secs(60),
    };
    let live = DrainCounters::default();
    let outcome = std::thread::scope(|scope| {
        let running = scope.spawn(|| drain(&plan, &SystemClock, &stop, &live));
        let mut text = TransferLine::new("drained");
        poll_until(&|| running.is_finished(), &mut |line, passed| {
            warnings(&live).for_each(|warning| line.log(&warning));
            line.show(&text.text(amounts(&live), passed), passed);
        });
        running.join()
    });
    warnings(&live).for_each(|warning| log(&warning));
    let report = match outcome.unwrap_or_else(|panic| resume_unwind(panic)) {
        Err(error) if stop.load(Ordering::Acquire) => {
            report_error(&error.into());
            return Ok(Exit::Interrupted);
        }
        outcome => outcome?,
    };
    for Missing { stream, first_sequence, events, cause } in report.missing.iter().take(MISSING_SHOWN) {
        log(&format!("warning: stream {stream}: {events} events missing from {first_sequence}: {cause}"));
    }
    print(&report, args.json)?;
    let has_all = report.missing_events == 0 && report.faults.total == 0;
    let whole = report.is_complete && report.durable == report.sent && has_all;
    Ok(match whole {
        true => Exit::Done,
        false if !report.is_complete && stop.load(Ordering::Acquire) => Exit::Interrupted,
        false => Exit::Failed,
    })
}

/// Warnings since the last call.
fn warnings(live: &DrainCounters) -> impl Iterator<Item = String> {
    let warnings = std::mem::take(&mut *live.warnings.lock().unwrap_or_else(PoisonError::into_inner));
    warnings.into_iter().map(|what| format!("warning: {what}"))
}

/// What the drain has done so far, in bytes of segments.
fn amounts(live: &DrainCounters) -> Amounts {
    let done_bytes = live.passed_bytes.load(Ordering::Relaxed);
    Amounts {
        done_bytes,
        known_bytes: 0,
        total_bytes: done_bytes.saturating_add(live.behind_bytes.load(Ordering::Relaxed)),
        is_growing: live.is_growing.load(Ordering::Relaxed),
    }
}

/// Prints the account.
fn print(report: &DrainReport, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        json(&serde_json::to_value(report).context("cannot encode the account")?);
        return Ok(());
    }
    let drained = listing::Drained {
        sent: report.sent,
        durable: report.durable,
        missing_events: report.missing_events,
        is_complete: report.is_complete,
        seconds: report.elapsed_ns as f64 / 1e9,
    };
    print_listing(|style| listing::drain(&drained, style));
    Ok(())
}
