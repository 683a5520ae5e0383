//! Metrics: names and values. Base units only; totals restart with every run.
mod fleet;

use std::collections::BTreeMap;

use keepup_results::live::{
    FleetNow, Moment, ReductionNow, RejectedNow, RunState, RunStatus, StreamNow, VolumeNow,
};

use crate::exposition::MetricKind::{Counter, Gauge};
use crate::exposition::{Exposition, Sample, TextFormat};

/// Most streams with individual metrics; above that only the sums are exported, to protect
/// scrapers.
const STREAMS_MAX: usize = 1024;

/// Renders all metrics.
pub(crate) fn page(
    form: TextFormat,
    run: Option<&RunStatus>,
    moment: Option<&Moment>,
    fleet: Option<&FleetNow>,
) -> String {
    let mut out = Exposition::new(form);
    let version = vec![("version", env!("CARGO_PKG_VERSION"))];
    out.family(Gauge, "keepup_build", "", "The version that runs, always 1.", [(version, 1.0)]);
    if let Some(run) = run {
        put_run(&mut out, run);
    }
    if let Some(moment) = moment {
        put_flow(&mut out, moment);
        put_pool(&mut out, moment);
        put_reduction(&mut out, moment.reduction.as_ref());
        put_volumes(&mut out, &moment.volumes);
        put_machine(&mut out, moment);
        put_streams(&mut out, &moment.streams);
    }
    if let Some(fleet) = fleet {
        fleet::put(&mut out, fleet);
    }
    out.finish()
}

fn put_run(out: &mut Exposition, run: &RunStatus) {
    let states =
        RunState::ALL.map(|state| (vec![("state", state.name())], f64::from(u8::from(state == run.state))));
    out.family(Gauge, "keepup_run_state", "", "State of run control: 1 for the current state.", states);
    out.one(Gauge, "keepup_run_number", "", "Number of the run.", run.run.map(|run| run as f64));
}

fn put_flow(out: &mut Exposition, moment: &Moment) {
    let flow = &moment.flow;
    let stages = [
        ("received", "received whole and in order", flow.received),
        ("written", "with a write confirmed by the kernel", flow.written),
        ("durable", "on stable storage", flow.durable),
    ];
    for (stage, what, count) in stages {
        let name = format!("keepup_{stage}_events");
        out.one(Counter, &name, "", &format!("Events {what}, in this run."), count.events as f64);
        let name = format!("keepup_{stage}_bytes");
        out.one(Counter, &name, "bytes", &format!("Payload {what}, in this run."), count.bytes as f64);
    }
    let drained = flow.drained.map(|drained| drained.events as f64);
    out.one(Counter, "keepup_drained_events", "", "Events that drains marked as durable elsewhere.", drained);
    let missing =
        flow.missing.iter().map(|(cause, events)| (vec![("cause", cause.as_str())], *events as f64));
    out.family(Gauge, "keepup_missing_events", "", "Events missing in this run, by cause.", missing);
    let all = flow.missing_events as f64;
    out.one(Gauge, "keepup_all_missing_events", "", "Events missing in this run.", all);
    let help = "Packets, messages, events or files that arrived in this run and are not recorded.";
    out.family(Counter, "keepup_rejected", "", help, rejected(&flow.rejected));
    out.one(Gauge, "keepup_connections", "", "Connected sources.", flow.connections as f64);
    out.one(Gauge, "keepup_run_seconds", "seconds", "Time since the start of the run.", moment.seconds);
    let busy = flow.intake_busy;
    out.one(Gauge, "keepup_intake_busy_ratio", "ratio", "Busy time of the busiest intake thread.", busy);
    let warnings = moment.warnings.len() as f64;
    out.one(Gauge, "keepup_warnings", "", "Current warnings, listed by /health.", warnings);
}

/// Rejected data by source, reason and kind of sender.
fn rejected(rows: &[RejectedNow]) -> Vec<Sample<'_>> {
    let mut counts: BTreeMap<(&str, &str, bool), u64> = BTreeMap::new();
    for row in rows {
        let count = counts.entry((&row.source, &row.reason, row.foreign)).or_default();
        *count = count.saturating_add(row.count);
    }
    let sample = |((source, reason, is_foreign), count)| {
        let foreign = if is_foreign { "true" } else { "false" };
        (vec![("source", source), ("reason", reason), ("foreign", foreign)], count as f64)
    };
    counts.into_iter().map(sample).collect()
}

fn put_pool(out: &mut Exposition, moment: &Moment) {
    let pool = &moment.pool;
    out.one(Gauge, "keepup_pool_bytes", "bytes", "Size of the block pool.", pool.bytes as f64);
    let help = "Used memory of the block pool.";
    out.one(Gauge, "keepup_pool_used_bytes", "bytes", help, pool.used_bytes as f64);
    let help = "Peak of the used memory of the block pool, in this run.";
    out.one(Gauge, "keepup_pool_used_max_bytes", "bytes", help, pool.used_bytes_max as f64);
    let help = "Stall that the free memory of the block pool bridges at the current rate.";
    out.one(Gauge, "keepup_pool_room_seconds", "seconds", help, pool.room_seconds);
    let help = "Time in which at least one source waited for a free block.";
    out.one(Counter, "keepup_pool_wait_seconds", "seconds", help, pool.wait_seconds);
}

fn put_reduction(out: &mut Exposition, reduction: Option<&ReductionNow>) {
    let Some(now) = reduction else { return };
    let help = "Events reduced before they are written, in this run.";
    out.one(Counter, "keepup_reduced_events", "", help, now.events as f64);
    let help = "Payload of the reduced events before reduction.";
    out.one(Counter, "keepup_reduction_input_bytes", "bytes", help, now.input_bytes as f64);
    let help = "Payload of the reduced events after reduction.";
    out.one(Counter, "keepup_reduction_output_bytes", "bytes", help, now.output_bytes as f64);
    let help = "Payload waiting for reduction.";
    out.one(Gauge, "keepup_reduction_waiting_bytes", "bytes", help, now.waiting_bytes as f64);
    let threads: Vec<(String, f64)> =
        now.busy.iter().enumerate().map(|(at, busy)| (at.to_string(), *busy)).collect();
    let samples = threads.iter().map(|(at, busy)| (vec![("thread", at.as_str())], *busy));
    let help = "Busy time of a reducer thread.";
    out.family(Gauge, "keepup_reduction_busy_ratio", "ratio", help, samples);
}

/// Metric of a volume: type, name suffix, unit, help text, and value.
type VolumeFigure =
    (crate::exposition::MetricKind, &'static str, &'static str, &'static str, fn(&VolumeNow) -> Option<f64>);

const VOLUME_FIGURES: [VolumeFigure; 13] = [
    (Counter, "written_bytes", "bytes", "Whole blocks with a write confirmed by the kernel.", |v| {
        Some(v.written_bytes as f64)
    }),
    (Counter, "durable_bytes", "bytes", "Payload on stable storage.", |v| Some(v.durable_bytes as f64)),
    (Gauge, "queue_bytes", "bytes", "Waiting for the kernel's confirmation.", |v| Some(v.queue_bytes as f64)),
    (Gauge, "full_ratio", "ratio", "Share of time at the full queue depth.", |v| Some(v.full)),
    (Gauge, "stalled_seconds", "seconds", "Age of the oldest write or flush in flight.", |v| {
        Some(v.stalled_seconds)
    }),
    (Gauge, "write_max_seconds", "seconds", "Longest write in this run.", |v| Some(v.write_seconds_max)),
    (Gauge, "flush_max_seconds", "seconds", "Longest flush in this run.", |v| Some(v.flush_seconds_max)),
    (Counter, "flushes", "", "Flushes to stable storage.", |v| Some(v.flushes as f64)),
    (Counter, "segments", "", "Segments started.", |v| Some(v.segments as f64)),
    (Counter, "rests", "", "Times that it was taken out of rotation for being slow.", |v| {
        Some(v.rests as f64)
    }),
    (Gauge, "failed", "", "1 when it takes no more data.", |v| {
        Some(f64::from(u8::from(v.failure.is_some())))
    }),
    (Gauge, "free_bytes", "bytes", "Free space on its file system.", |v| v.free_bytes.map(|b| b as f64)),
    (Gauge, "size_bytes", "bytes", "Size of its file system.", |v| v.total_bytes.map(|b| b as f64)),
];

fn put_volumes(out: &mut Exposition, volumes: &[VolumeNow]) {
    for (kind, name, unit, help, value) in VOLUME_FIGURES {
        let samples = volumes
            .iter()
            .filter_map(|volume| Some((vec![("volume", volume.path.as_str())], value(volume)?)));
        out.family(kind, &format!("keepup_volume_{name}"), unit, help, samples);
    }
}

fn put_machine(out: &mut Exposition, moment: &Moment) {
    let cores: Vec<(String, f64)> =
        moment.cores.iter().map(|core| (core.core.to_string(), core.busy)).collect();
    let samples = cores.iter().map(|(core, busy)| (vec![("core", core.as_str())], *busy));
    let help = "Busy time of the core.";
    out.family(Gauge, "keepup_core_busy_ratio", "ratio", help, samples);
    let help = "CPU use of the recorder's process: 1 is one core.";
    out.one(Gauge, "keepup_process_cores_ratio", "ratio", help, moment.process_cores);
    let margin = moment.margin.as_ref();
    let qualified = margin.map(|margin| margin.qualified_bytes_per_second);
    let help = "Rate in bytes per second for which this machine was qualified.";
    out.one(Gauge, "keepup_qualified_rate", "", help, qualified);
    let failed = margin.and_then(|margin| margin.failed_above.as_ref()).map(|above| above.bytes_per_second);
    let help = "Lowest rate in bytes per second above the qualified one that failed.";
    out.one(Gauge, "keepup_qualified_failed_rate", "", help, failed);
    let help = "Current rate relative to the qualified one; above 1 it is not proven.";
    out.one(Gauge, "keepup_qualified_used_ratio", "ratio", help, margin.map(|margin| margin.used));
}

fn put_streams(out: &mut Exposition, streams: &[StreamNow]) {
    out.one(Gauge, "keepup_streams", "", "Streams declared in this run.", streams.len() as f64);
    let ids: Vec<String> = streams.iter().take(STREAMS_MAX).map(|stream| stream.id.to_string()).collect();
    let samples = |value: fn(&StreamNow) -> u64| -> Vec<Sample<'_>> {
        let labelled = ids.iter().zip(streams).map(|(id, stream)| {
            (vec![("stream", id.as_str()), ("name", stream.name.as_str())], value(stream) as f64)
        });
        labelled.collect()
    };
    let help = "Events of the stream received whole and in order.";
    out.family(Counter, "keepup_stream_received_events", "", help, samples(|s| s.received.events));
    let help = "Payload of the stream received whole and in order.";
    out.family(Counter, "keepup_stream_received_bytes", "bytes", help, samples(|s| s.received.bytes));
    let help = "Events of the stream on stable storage.";
    out.family(Counter, "keepup_stream_durable_events", "", help, samples(|s| s.durable.events));
    let help = "Missing events of the stream.";
    out.family(Gauge, "keepup_stream_missing_events", "", help, samples(|s| s.missing_events));
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
