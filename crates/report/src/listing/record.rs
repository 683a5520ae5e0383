//! Account of a finished recording, by `record`.

use std::path::Path;

use keepup_measure::sum::Sums;
use keepup_recording::account::{RecordAccount, VolumeAccount, VolumeStalls};
use keepup_stream::ledger::StreamLedger;

use super::{ROWS_SHOWN, megabytes, missing, more, not_recorded, per_gb, recover, render};
use crate::Style;
use crate::format::{bytes, rate, seconds, time};
use crate::page::{Block, Fact, Item};
use crate::table::{Cell, Table, Tone, left, right};

/// Reports the streams, the rate, the volumes and the faults of a recording.
#[must_use]
pub fn record(account: &RecordAccount, style: Style) -> String {
    let title = format!("recording {} ended: {}", account.recording, account.ended);
    let (mut items, mut facts) = (Vec::new(), Vec::new());
    if account.removed {
        items.push(Item::Text("no events received".to_owned()));
        let directories = account.volumes.iter().filter_map(|volume| volume.directory.as_deref());
        facts.extend(directories.map(|directory| path("removed", directory)));
    } else {
        items.push(Item::Table(streams(account)));
        items.extend(more(account.ledger.streams.len(), "streams"));
        facts.extend(missing(account.missing_events.clone()));
        facts.extend(not_recorded(&account.rejected));
        facts.extend(reduced(account));
        facts.extend(rates(account));
        facts.extend(account.volumes.iter().zip(&account.stalls.volumes).flat_map(volume));
        facts.extend(account.master.iter().map(|master| path("for h5py", master)));
        facts.extend(hints(account));
        facts.extend(account.trouble.iter().map(|what| Fact::path("NOT COMPLETE", what)));
    }
    facts.extend(account.after_seal.map(|runs| {
        let (run, failed, skipped) = (runs.succeeded + runs.failed, runs.failed, runs.skipped);
        Fact::new("after seal", format!("{run} commands run, {failed} failed, {skipped} segments skipped"))
    }));
    facts.extend(account.incidents.listed.iter().map(|what| Fact::path("incident", what)));
    items.push(Item::Facts(facts));
    let hidden = account.incidents.total.saturating_sub(account.incidents.listed.len() as u64);
    if hidden > 0 {
        items.push(Item::Text(format!("... and {hidden} more incidents")));
    }
    render(vec![Block::new(title, items)], style)
}

fn path(label: &str, path: &Path) -> Fact {
    Fact::path(label, path.display().to_string())
}

/// Table of streams.
fn streams(account: &RecordAccount) -> Table {
    let row = |name: String, stream: &StreamLedger| -> Vec<Cell> {
        let missing: u64 = stream.gap_events.values().fold(0, |sum, events| sum.saturating_add(*events));
        let is_durable = stream.durable == stream.received
            && stream.reduced.is_none_or(|reduced| reduced.lost_events == 0);
        let (durable, tone) = if is_durable { ("all", Tone::Plain) } else { ("NOT ALL", Tone::Bad) };
        vec![
            name.into(),
            stream.received.events.to_string().into(),
            megabytes(stream.received.bytes).into(),
            megabytes(stream.durable.bytes).into(),
            missing.to_string().into(),
            Cell::toned(durable, tone),
        ]
    };
    let streams = account.ledger.streams.iter().take(ROWS_SHOWN);
    let mut rows: Vec<Vec<Cell>> = streams.map(|(id, stream)| row(id.to_string(), stream)).collect();
    rows.push(row("total".into(), &account.ledger.total()));
    let columns = vec![
        left("stream"),
        right("events"),
        right("MB"),
        right("durable, MB"),
        right("missing"),
        right("durable"),
    ];
    Table { columns, rows }
}

/// Size of reduced events and the CPU cost.
fn reduced(account: &RecordAccount) -> Option<Fact> {
    let streams = account.ledger.streams.values();
    let (mut from, mut to, mut lost) = (0u64, 0u64, 0u64);
    for (received, reduced) in streams.filter_map(|stream| Some((stream.received, stream.reduced?))) {
        (from, to, lost) = (from + received.bytes, to + reduced.durable.bytes, lost + reduced.lost_events);
    }
    let cpu_s = account.reducers_cpu.iter().map(|thread| thread.cpu_ns).saturating_sum::<u64>() as f64 / 1e9;
    let lost = if lost > 0 { format!("; {lost} REDUCED EVENTS LOST") } else { String::new() };
    let cost = if from > 0 { format!(", {} of CPU", per_gb(cpu_s, from)) } else { String::new() };
    let text = format!("{} to {}{cost}{lost}", bytes(from), bytes(to));
    (!account.reducers_cpu.is_empty()).then(|| Fact::new("reduced", text))
}

/// Rate, CPU cost, use of the pool and longest stalls.
fn rates(account: &RecordAccount) -> Vec<Fact> {
    let (received, elapsed) = (account.received.bytes, account.elapsed_seconds);
    let mut facts = Vec::new();
    if elapsed > 0.0 {
        let durable = rate(account.durable.bytes as f64 / elapsed);
        facts.push(Fact::new(
            "rate",
            format!("{} in {}, {durable} durable", bytes(received), seconds(elapsed)),
        ));
    }
    if received > 0 {
        let (path, all) = (per_gb(account.path_cpu_seconds, received), per_gb(account.cpu_seconds, received));
        facts.push(Fact::new("CPU", format!("{path} on the data path, {all} in total, including start-up")));
    }
    let at_rate = (received as f64 / elapsed.max(1e-9)).max(1.0);
    let bridged = |size: u64| time(size as f64 / at_rate);
    let (used, size) = (account.pool_bytes_used_max, account.pool_bytes);
    facts.push(Fact::new(
        "pool",
        format!(
            "at most {} of {} in use, {} of {} at this rate; waited {} for free blocks",
            bytes(used),
            bytes(size),
            bridged(used),
            bridged(size),
            milliseconds(account.pool_wait_ns)
        ),
    ));
    let (intake, pool) = (milliseconds(account.stalls.intake_ns), milliseconds(account.stalls.pool_ns));
    facts.push(Fact::new("longest stalls", format!("intake {intake}, waiting for memory {pool}")));
    facts
}

/// Directory, access and longest stalls of a volume.
fn volume((volume, stalls): (&VolumeAccount, &VolumeStalls)) -> Vec<Fact> {
    let (write, flush) = (milliseconds(stalls.write_ns), milliseconds(stalls.flush_ns));
    let segment = milliseconds(stalls.segment_ns);
    let mut facts = vec![
        match &volume.directory {
            Some(directory) => path("volume", directory),
            None => Fact::new("volume", "none, the data is dropped"),
        },
        Fact::new("", format!("{}, {}, {}", volume.engine, volume.access, volume.buffers)),
        Fact::new("", format!("longest write {write}, flush {flush}, wait for a segment {segment}")),
    ];
    facts.extend(volume.failure.as_ref().map(|failure| Fact::path("FAILED", failure)));
    facts
}

/// Remedies for a full pool and for failed volumes.
fn hints(account: &RecordAccount) -> Vec<Fact> {
    let mut facts = Vec::new();
    if account.pool_wait_ns > 0 && !account.missing_events.is_empty() {
        facts.push(Fact::new(
            "hint",
            "the pool was full because the volumes were slower than the sources: increase --pool for longer \
             stalls, or add a --volume for a higher rate",
        ));
    }
    let failed = account.volumes.iter().filter(|volume| volume.failure.is_some());
    facts.extend(
        failed
            .filter_map(|volume| volume.directory.as_deref())
            .map(|directory| recover("seal with", directory)),
    );
    facts
}

fn milliseconds(ns: u64) -> String {
    format!("{:.1} ms", ns as f64 / 1e6)
}
