//! `keepup record`: records what detectors send to disks.
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context;
use keepup_measure::clock::{Clock, SystemClock};
use keepup_measure::cpu::ProcessCpu;
use keepup_recorder::counters::Counters;
use keepup_recorder::report::{Ended, RecordReport};
use keepup_recorder::{Recorder, RecorderConfig, Target};
use keepup_recording::id::Id;
use keepup_workload::preflight::check;

use crate::args::{Recording, default_volume, size};
use crate::exit::{Exit, UsageError};
use crate::output::{json, result, say};
use crate::progress::watch;
use crate::signals::stop_flag;

/// Record what detectors send, until they say end
///
/// Listens for the wire protocol of docs/wire-protocol.md. Ctrl-C and SIGTERM end it cleanly: everything
/// received becomes durable.
#[derive(clap::Args)]
#[command(after_help = "Example, in three terminals:
  keepup record --volume /data/a --volume /data/b
  keepup source csl --to 127.0.0.1:7611
  keepup drain /data/a/keepup-… --follow --to tcp://127.0.0.1:7612")]
pub(crate) struct Args {
    /// Address to listen on; loopback unless told otherwise
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7611")]
    listen: SocketAddr,
    /// Directory on the disk to record to; once for each disk [default: ./keepup-data]
    #[arg(long, value_name = "DIR", conflicts_with = "to_null")]
    volume: Vec<PathBuf>,
    /// Seal and checksum blocks, then drop them: the path without the disk
    #[arg(long)]
    to_null: bool,
    /// Take block, segment, placement and largest event from a profile
    #[arg(long, value_name = "PROFILE")]
    profile: Option<String>,
    /// Name of the recording's directory on every volume [default: keepup-TIME-ID]
    #[arg(long)]
    name: Option<String>,
    /// Largest event accepted
    #[arg(long, value_parser = size, value_name = "SIZE")]
    max_event: Option<u64>,
    /// Connections served at a time
    #[arg(long, value_name = "N")]
    max_connections: Option<usize>,
    /// Go on when the last source has ended, until stopped
    #[arg(long)]
    stay: bool,
    /// Print the account as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    recording: Recording,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let target = target(args.to_null, &args.volume)?;
    let id = Id::random().context("cannot read random bytes")?;
    let mut config = RecorderConfig::new(args.listen, target, name(args.name.as_deref(), id));
    if let Some(profile) = &args.profile {
        config = keepup_workload::detector::recorder_config(&keepup_plan::load(profile)?, &config);
    }
    args.recording.apply(&mut config);
    config.event_bytes_max = args.max_event.unwrap_or(config.event_bytes_max);
    config.connections_max = args.max_connections.unwrap_or(config.connections_max);
    config.stay = args.stay;
    record(config, id, args.json)
}

/// The volumes given, the default one, or none at all.
pub(super) fn target(to_null: bool, volumes: &[PathBuf]) -> anyhow::Result<Target> {
    if to_null {
        return Ok(Target::Null);
    }
    if !volumes.is_empty() {
        return Ok(Target::Volumes(volumes.to_vec()));
    }
    let volume = default_volume();
    std::fs::create_dir_all(&volume).with_context(|| format!("cannot make {}", volume.display()))?;
    Ok(Target::Volumes(vec![volume]))
}

/// The name given, or one that tells when and which.
pub(super) fn name(given: Option<&str>, id: Id) -> String {
    let compact = |time: String| time.replace(['-', ':'], "").to_lowercase();
    given.map_or_else(
        || {
            format!(
                "keepup-{}-{}",
                compact(keepup_results::rfc3339(SystemClock.unix_ns())),
                &id.to_string()[..6]
            )
        },
        str::to_owned,
    )
}

/// Records until the end and prints the account.
pub(super) fn record(config: RecorderConfig, id: Id, as_json: bool) -> anyhow::Result<Exit> {
    if let Target::Volumes(volumes) = &config.target {
        for volume in check(volumes, 2 * config.segment_bytes)? {
            volume.warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
        }
    }
    if !config.listen.ip().is_loopback() {
        say(&format!(
            "warning: {} can be reached from outside; whoever connects may write here",
            config.listen
        ));
    }
    let stop = stop_flag()?;
    let recorder = Recorder::start(config, id, Arc::new(SystemClock))?;
    say(&format!("listening on {}", recorder.address()));
    for directory in recorder.directories() {
        say(&format!("recording to {}", directory.display()));
    }
    say(&format!("writing with {}", recorder.engine()));
    recorder.notes().iter().for_each(|note| say(&format!("note: {note}")));
    let pool_bytes = recorder.pool_bytes();
    let (counters, mut before) = (recorder.counters(), [0; 5]);
    watch(&|| recorder.is_ended() || stop.load(Ordering::Acquire), &mut |passed| {
        status(&counters, &mut before, passed, pool_bytes)
    });
    recorder.stopper().stop();
    let report = recorder.join()?;
    match as_json {
        true => json(&account_json(&report)),
        false => result(&account(&report)),
    }
    Ok(exit(&report))
}

fn status(counters: &Counters, before: &mut [u64; 5], passed: Duration, pool_bytes: u64) -> String {
    let now = figures(counters);
    let before = std::mem::replace(before, now);
    let rate = |at: usize| (now[at] - before[at]) as f64 / passed.as_secs_f64() / 1e6;
    format!(
        "in {:.0} MB/s, written {:.0} MB/s, durable {:.0} MB/s, {:.2} GB so far, \
         pool {:.0} % full{}, {} connections",
        rate(0),
        rate(1),
        rate(2),
        now[2] as f64 / 1e9,
        now[3] as f64 / pool_bytes.max(1) as f64 * 100.0,
        room_left(pool_bytes.saturating_sub(now[3]), rate(0) * 1e6),
        now[4]
    )
}

/// For how long the free part of the pool bridges a stall at the present rate.
fn room_left(free_bytes: u64, rate_bytes_per_s: f64) -> String {
    let seconds = free_bytes as f64 / rate_bytes_per_s;
    if seconds.is_finite() { format!(" (room for {seconds:.1} s)") } else { String::new() }
}

/// Payload received, written, durable; pool in use; connections.
fn figures(counters: &Counters) -> [u64; 5] {
    let intake = &counters.intake;
    [
        intake.received_bytes.load(Ordering::Relaxed),
        counters.written_payload_bytes(),
        counters.durable_payload_bytes(),
        intake.pool_bytes_used.load(Ordering::Relaxed),
        intake.connections.load(Ordering::Relaxed),
    ]
}

fn exit(report: &RecordReport) -> Exit {
    let missing: u64 = report.ledger.total().gap_events.values().sum();
    if report.is_whole() && missing == 0 { Exit::Done } else { Exit::Failed }
}

fn ended(report: &RecordReport) -> String {
    match &report.ended {
        Ended::EndOfRun => "every source said end".into(),
        Ended::Stopped => "stopped on request".into(),
        Ended::VolumesFailed(why) => format!("no volume takes data any more: {why}"),
    }
}

/// CPU of the threads of the data path, in seconds.
fn path_cpu_seconds(report: &RecordReport) -> f64 {
    let threads = report.volumes.iter().map(|v| v.cpu.cpu_ns).sum::<u64>() + report.intake_cpu.cpu_ns;
    threads as f64 / 1e9
}

/// CPU of the whole process so far, its kernel workers and the clearing of the pool included, in seconds.
fn cpu_seconds() -> f64 {
    ProcessCpu::now().ns as f64 / 1e9
}

/// The account for people.
fn account(report: &RecordReport) -> String {
    let mut lines = vec![format!("recording {} ended: {}", report.recording, ended(report))];
    lines.extend(streams(report));
    lines.extend(rates(report));
    lines.extend(volumes(report));
    lines.extend(report.incidents.listed.iter().map(|incident| format!("incident: {incident}")));
    let hidden = report.incidents.total - report.incidents.listed.len() as u64;
    if hidden > 0 {
        lines.push(format!("… and {hidden} more incidents"));
    }
    lines.join("\n")
}

/// What became of every stream.
fn streams(report: &RecordReport) -> Vec<String> {
    const STREAMS_SHOWN: usize = 20;
    let total = report.ledger.total();
    let mut lines = vec![format!(
        "{:<10} {:>12} {:>16} {:>16} {:>12} {:>9}",
        "stream", "events", "bytes", "durable bytes", "missing", "durable"
    )];
    let row = |name: String, s: &keepup_stream::ledger::StreamLedger| {
        let missing: u64 = s.gap_events.values().sum();
        let durable = if s.durable == s.received { "all" } else { "NOT ALL" };
        format!(
            "{name:<10} {:>12} {:>16} {:>16} {missing:>12} {durable:>9}",
            s.received.events, s.received.bytes, s.durable.bytes
        )
    };
    for (id, stream) in report.ledger.streams.iter().take(STREAMS_SHOWN) {
        lines.push(row(id.to_string(), stream));
    }
    if report.ledger.streams.len() > STREAMS_SHOWN {
        lines.push(format!("… and {} more streams", report.ledger.streams.len() - STREAMS_SHOWN));
    }
    lines.push(row("total".into(), &total));
    lines.extend(total.gap_events.iter().map(|(cause, events)| format!("missing: {events} events, {cause}")));
    lines
}

/// How fast, at what cost, and how near the end of the memory.
fn rates(report: &RecordReport) -> Vec<String> {
    let total = report.ledger.total();
    let seconds = report.elapsed_ns as f64 / 1e9;
    let gb = total.received.bytes as f64 / 1e9;
    let mut lines = Vec::new();
    if seconds > 0.0 {
        let rate = total.durable.bytes as f64 / seconds / 1e6;
        lines.push(format!("{gb:.3} GB in {seconds:.2} s: {rate:.1} MB/s durable"));
    }
    if gb > 0.0 {
        lines.push(format!(
            "CPU: {:.3} s/GB on the data path, {:.3} s/GB in all, with the start",
            path_cpu_seconds(report) / gb,
            cpu_seconds() / gb
        ));
    }
    let rate = (total.received.bytes as f64 / seconds.max(1e-9)).max(1.0);
    lines.push(format!(
        "pool: at most {:.0} of {:.0} MB in use, {:.3} of {:.3} s at this rate; waited {:.0} ms for room",
        report.pool_bytes_used_max as f64 / 1e6,
        report.pool_bytes as f64 / 1e6,
        report.pool_bytes_used_max as f64 / rate,
        report.pool_bytes as f64 / rate,
        report.pool_wait_ns as f64 / 1e6
    ));
    lines
}

/// How every stage and every volume did.
fn volumes(report: &RecordReport) -> Vec<String> {
    let stalls = &report.stalls;
    let mut lines = vec![format!(
        "longest stalls: intake {}, waiting for memory {}",
        milliseconds(stalls.intake_ns),
        milliseconds(stalls.pool_ns)
    )];
    for (volume, stalls) in report.volumes.iter().zip(&stalls.volumes) {
        let place = volume.directory.as_ref().map_or("nowhere (dropped)".into(), |d| d.display().to_string());
        let failure = volume.failure.as_ref().map_or(String::new(), |f| format!("; FAILED: {f}"));
        lines.push(format!(
            "{place}: {}, {}, {}; longest write {}, flush {}, wait for a segment {}{failure}",
            volume.engine,
            volume.access,
            volume.buffers,
            milliseconds(stalls.write_ns),
            milliseconds(stalls.flush_ns),
            milliseconds(stalls.segment_ns)
        ));
    }
    lines
}

fn milliseconds(ns: u64) -> String {
    format!("{:.1} ms", ns as f64 / 1e6)
}

/// The account for programs.
fn account_json(report: &RecordReport) -> serde_json::Value {
    let volumes = report.volumes.iter().map(|volume| {
        serde_json::json!({
            "directory": volume.directory,
            "engine": volume.engine,
            "buffers": volume.buffers,
            "access": volume.access,
            "note": volume.note,
            "failure": volume.failure,
            "write_latency": volume.write_latency.summary(),
            "cpu": volume.cpu,
        })
    });
    let total = report.ledger.total();
    serde_json::json!({
        "recording": report.recording,
        "ended": ended(report),
        "whole": report.is_whole(),
        "received": total.received,
        "written": total.written,
        "durable": total.durable,
        "missing_events": total.gap_events,
        "ledger": report.ledger,
        "elapsed_seconds": report.elapsed_ns as f64 / 1e9,
        "cpu_seconds": cpu_seconds(),
        "path_cpu_seconds": path_cpu_seconds(report),
        "intake_cpu": report.intake_cpu,
        "pool_bytes": report.pool_bytes,
        "pool_bytes_used_max": report.pool_bytes_used_max,
        "pool_wait_ns": report.pool_wait_ns,
        "stalls": report.stalls,
        "volumes": volumes.collect::<Vec<_>>(),
        "incidents": report.incidents,
    })
}

/// A slip in the command, as an error.
pub(super) fn usage(what: impl Into<String>) -> anyhow::Error {
    UsageError(what.into()).into()
}
