//! Metrics of a recording on several hosts: those of one recorder with the label `host`, and the state of
//! each host. Nothing is summed up: a query can do that, and a sum beside its parts would be counted twice.
use keepup_results::live::{FleetHost, FleetHostState, FleetNow, FleetVolume};

use crate::exposition::MetricKind::{Counter, Gauge};
use crate::exposition::{Exposition, MetricKind};

/// Metric of a host or volume: type, name, unit, help text, and value.
type Figure<T> = (MetricKind, &'static str, &'static str, &'static str, fn(&T) -> Option<f64>);

const HOST_FIGURES: [Figure<FleetHost>; 14] = [
    (Counter, "received_events", "", "Events received whole and in order, in this run.", |h| {
        Some(h.flow.received.events as f64)
    }),
    (Counter, "received_bytes", "bytes", "Payload received whole and in order, in this run.", |h| {
        Some(h.flow.received.bytes as f64)
    }),
    (Counter, "durable_events", "", "Events on stable storage, in this run.", |h| {
        Some(h.flow.durable.events as f64)
    }),
    (Counter, "durable_bytes", "bytes", "Payload on stable storage, in this run.", |h| {
        Some(h.flow.durable.bytes as f64)
    }),
    (Gauge, "all_missing_events", "", "Events missing in this run.", |h| Some(h.flow.missing_events as f64)),
    (Gauge, "connected_streams", "", "Streams whose client is connected.", |h| {
        Some(h.flow.connected_streams as f64)
    }),
    (Gauge, "ended_streams", "", "Streams whose client has sent end.", |h| Some(h.flow.ended_streams as f64)),
    (Gauge, "pool_bytes", "bytes", "Size of the block pool.", |h| h.pool.map(|pool| pool.bytes as f64)),
    (Gauge, "pool_used_bytes", "bytes", "Used memory of the block pool.", |h| {
        h.pool.map(|pool| pool.used_bytes as f64)
    }),
    (
        Gauge,
        "pool_room_seconds",
        "seconds",
        "Stall that the free memory of the block pool bridges at the current rate.",
        |h| h.pool?.room_seconds,
    ),
    (
        Counter,
        "pool_wait_seconds",
        "seconds",
        "Time in which at least one source waited for a free block.",
        |h| h.pool.map(|pool| pool.wait_seconds),
    ),
    (Gauge, "host_heartbeat_age_seconds", "seconds", "Age of the latest heartbeat of the host.", |h| {
        h.heartbeat_age_seconds
    }),
    (Gauge, "host_clock_offset_seconds", "seconds", "The controller's clock less that of the host.", |h| {
        h.clock_offset_seconds
    }),
    (Gauge, "host_clock_error_seconds", "seconds", "Largest error of the clock offset.", |h| {
        h.clock_error_seconds
    }),
];

const VOLUME_FIGURES: [Figure<FleetVolume>; 6] = [
    (Counter, "written_bytes", "bytes", "Whole blocks with a write confirmed by the kernel.", |v| {
        Some(v.written_bytes as f64)
    }),
    (Gauge, "stalled_seconds", "seconds", "Age of the oldest write or flush in flight.", |v| {
        Some(v.stalled_seconds)
    }),
    (Gauge, "longest_seconds", "seconds", "Longest write or flush in this run.", |v| Some(v.longest_seconds)),
    (Gauge, "failed", "", "1 when it takes no more data.", |v| Some(f64::from(u8::from(v.failed)))),
    (Gauge, "free_bytes", "bytes", "Free space on its file system.", |v| v.free_bytes.map(|b| b as f64)),
    (Gauge, "size_bytes", "bytes", "Size of its file system.", |v| v.total_bytes.map(|b| b as f64)),
];

/// Puts the metrics of all hosts.
pub(super) fn put(out: &mut Exposition, fleet: &FleetNow) {
    out.one(Gauge, "keepup_run_seconds", "seconds", "Time since the start of the run.", fleet.seconds);
    let warnings = fleet.warnings.len() as f64;
    out.one(Gauge, "keepup_warnings", "", "Current warnings, listed by /health.", warnings);
    let help = "Lost recorders whose streams moved to other hosts, in this run.";
    out.one(Counter, "keepup_stream_moves", "", help, fleet.moves.len() as f64);
    let states = fleet.hosts.iter().flat_map(|host| {
        FleetHostState::ALL.map(|state| {
            let labels =
                vec![("host", host.name.as_str()), ("role", host.role.as_str()), ("state", state.name())];
            (labels, f64::from(u8::from(state == host.state)))
        })
    });
    out.family(Gauge, "keepup_host_state", "", "State of the host: 1 for the current state.", states);
    for (kind, name, unit, help, value) in HOST_FIGURES {
        let samples =
            fleet.hosts.iter().filter_map(|host| Some((vec![("host", host.name.as_str())], value(host)?)));
        out.family(kind, &format!("keepup_{name}"), unit, help, samples);
    }
    let missing = fleet.hosts.iter().flat_map(|host| {
        let labels = |cause| vec![("host", host.name.as_str()), ("cause", cause)];
        host.flow.missing.iter().map(move |(cause, events)| (labels(cause.as_str()), *events as f64))
    });
    out.family(Gauge, "keepup_missing_events", "", "Events missing in this run, by cause.", missing);
    let rejected = fleet.hosts.iter().flat_map(|host| {
        let labels =
            |reason, foreign| vec![("host", host.name.as_str()), ("reason", reason), ("foreign", foreign)];
        let of_sources = host.flow.rejected.iter().map(|row| (row, "false"));
        let all = of_sources.chain(host.flow.foreign.iter().map(|row| (row, "true")));
        all.map(move |((reason, count), foreign)| (labels(reason.as_str(), foreign), *count as f64))
    });
    let help = "Packets, messages, events or files that arrived in this run and are not recorded.";
    out.family(Counter, "keepup_rejected", "", help, rejected);
    for (kind, name, unit, help, value) in VOLUME_FIGURES {
        let samples = fleet.hosts.iter().flat_map(|host| {
            let labels = |volume| vec![("host", host.name.as_str()), ("volume", volume)];
            let volumes = host.volumes.iter();
            volumes.filter_map(move |volume| Some((labels(volume.path.as_str()), value(volume)?)))
        });
        out.family(kind, &format!("keepup_volume_{name}"), unit, help, samples);
    }
}

#[cfg(test)]
#[path = "fleet_tests.rs"]
mod tests;
