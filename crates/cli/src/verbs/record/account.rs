//! Report of a recording as text and JSON.
use keepup_measure::cpu::ProcessCpu;
use keepup_recorder::report::RecordReport;

use crate::output::missing;

/// CPU time of the data path threads, in seconds.
fn path_cpu_seconds(report: &RecordReport) -> f64 {
    report.threads().map(|thread| thread.cpu_ns).sum::<u64>() as f64 / 1e9
}

/// CPU time of the process, including kernel workers and the clearing of the pool, in seconds.
fn cpu_seconds() -> f64 {
    ProcessCpu::now().ns as f64 / 1e9
}

/// Report as text.
pub(super) fn text(report: &RecordReport) -> String {
    let mut lines = vec![format!("recording {} ended: {}", report.recording, report.why_ended())];
    if report.removed {
        let directories = report.volumes.iter().filter_map(|volume| volume.directory.as_ref());
        let removed: Vec<String> = directories.map(|directory| directory.display().to_string()).collect();
        lines.push(format!("no events received: removed {}", removed.join(", ")));
        lines.extend(report.incidents.listed.iter().map(|incident| format!("incident: {incident}")));
        return lines.join("\n");
    }
    lines.extend(streams(report));
    lines.extend(rates(report));
    lines.extend(volumes(report));
    lines.extend(report.master.iter().map(|path| format!("as one file, for h5py: {}", path.display())));
    lines.extend(report.trouble.iter().map(|what| format!("NOT COMPLETE: {what}")));
    lines.extend(report.incidents.listed.iter().map(|incident| format!("incident: {incident}")));
    let hidden = report.incidents.total - report.incidents.listed.len() as u64;
    if hidden > 0 {
        lines.push(format!("… and {hidden} more incidents"));
    }
    lines.join("\n")
}

/// Table of streams.
fn streams(report: &RecordReport) -> Vec<String> {
    const STREAMS_SHOWN: usize = 20;
    let total = report.ledger.total();
    let mut lines = vec![format!(
        "{:<10} {:>12} {:>16} {:>16} {:>12} {:>9}",
        "stream", "events", "bytes", "durable bytes", "missing", "durable"
    )];
    let row = |name: String, s: &keepup_stream::ledger::StreamLedger| {
        let missing: u64 = s.gap_events.values().sum();
        let durable = if s.durable == s.received && s.reduced.is_none_or(|r| r.lost_events == 0) {
            "all"
        } else {
            "NOT ALL"
        };
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
    lines.extend(reduced(report));
    lines.extend(missing(total.gap_events.clone()));
    lines
}

/// Size of reduced events and the CPU cost.
fn reduced(report: &RecordReport) -> Option<String> {
    let streams = report.ledger.streams.values();
    let (mut from, mut to, mut lost) = (0u64, 0u64, 0u64);
    for (received, reduced) in streams.filter_map(|stream| Some((stream.received, stream.reduced?))) {
        (from, to, lost) = (from + received.bytes, to + reduced.durable.bytes, lost + reduced.lost_events);
    }
    let cpu_s = report.reducers_cpu.iter().map(|thread| thread.cpu_ns).sum::<u64>() as f64 / 1e9;
    let lost = if lost > 0 { format!("; {lost} REDUCED EVENTS LOST") } else { String::new() };
    (!report.reducers_cpu.is_empty()).then(|| {
        let (from_gb, to_gb) = (from as f64 / 1e9, to as f64 / 1e9);
        let cost = if from > 0 { format!(", CPU {:.3} s/GB", cpu_s / from_gb) } else { String::new() };
        format!("reduced: {from_gb:.3} GB to {to_gb:.3} GB{cost}{lost}")
    })
}

/// Rate, CPU cost and use of the pool.
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
            "CPU: {:.3} s/GB on the data path, {:.3} s/GB in total, including start-up",
            path_cpu_seconds(report) / gb,
            cpu_seconds() / gb
        ));
    }
    let rate = (total.received.bytes as f64 / seconds.max(1e-9)).max(1.0);
    lines.push(format!(
        "pool: at most {:.0} of {:.0} MB in use, {:.3} of {:.3} s at this rate; \
         waited {:.0} ms for free blocks",
        report.pool_bytes_used_max as f64 / 1e6,
        report.pool_bytes as f64 / 1e6,
        report.pool_bytes_used_max as f64 / rate,
        report.pool_bytes as f64 / rate,
        report.pool_wait_ns as f64 / 1e6
    ));
    if report.pool_wait_ns > 0 && !total.gap_events.is_empty() {
        lines.push("hint: the pool was full because the volumes were slower than the sources:".into());
        lines.push("hint: increase --pool for longer stalls, or add a --volume for a higher rate".into());
    }
    lines
}

/// Longest stalls and state of every volume.
fn volumes(report: &RecordReport) -> Vec<String> {
    let stalls = &report.stalls;
    let mut lines = vec![format!(
        "longest stalls: intake {}, waiting for memory {}",
        milliseconds(stalls.intake_ns),
        milliseconds(stalls.pool_ns)
    )];
    for (volume, stalls) in report.volumes.iter().zip(&stalls.volumes) {
        let place =
            volume.directory.as_ref().map_or("no volume (dropped)".into(), |d| d.display().to_string());
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
    let failed = report.volumes.iter().filter(|volume| volume.failure.is_some());
    lines.extend(failed.filter_map(|volume| volume.directory.as_ref()).map(|directory| {
        format!("hint: seal the segments of that volume: keepup recover {}", directory.display())
    }));
    lines
}

fn milliseconds(ns: u64) -> String {
    format!("{:.1} ms", ns as f64 / 1e6)
}

/// Report as JSON.
pub(super) fn json(report: &RecordReport) -> serde_json::Value {
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
        "ended": report.why_ended(),
        "master": report.master,
        "whole": report.is_whole(),
        "removed": report.removed,
        "received": total.received,
        "written": total.written,
        "durable": total.durable,
        "missing_events": total.gap_events,
        "ledger": report.ledger,
        "elapsed_seconds": report.elapsed_ns as f64 / 1e9,
        "cpu_seconds": cpu_seconds(),
        "path_cpu_seconds": path_cpu_seconds(report),
        "intake_cpu": report.intake_cpu,
        "reducers_cpu": report.reducers_cpu,
        "stored": report.ledger.stored(),
        "pool_bytes": report.pool_bytes,
        "pool_bytes_used_max": report.pool_bytes_used_max,
        "pool_wait_ns": report.pool_wait_ns,
        "stalls": report.stalls,
        "volumes": volumes.collect::<Vec<_>>(),
        "incidents": report.incidents,
        "trouble": report.trouble,
    })
}
