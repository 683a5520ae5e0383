//! Text output of `keepup trace`.
use std::path::Path;

use keepup_measure::histogram::LatencySummary;
use keepup_trace::{
    Converted, Corrections, DeviceDetail, DeviceInfo, Origin, TraceClock, TraceHeader, TraceInfo,
};

/// Limit on listed devices.
const DEVICES_SHOWN: usize = 20;

/// Describes a trace.
pub(super) fn page(info: &TraceInfo) -> String {
    let whole = &info.whole;
    let mut lines = header(&info.header);
    lines.push(format!(
        "{} requests, {} on {} devices",
        whole.records,
        size(whole.bytes),
        info.devices.len()
    ));
    if let Some(mix) = &whole.detail {
        lines.extend(times(mix));
        lines.push(String::new());
        lines.extend(operations(whole));
        lines.push(String::new());
        lines.extend(sizes(mix));
    }
    lines.push(String::new());
    lines.extend(places(whole));
    if info.devices.len() > 1 {
        lines.push(String::new());
        lines.extend(devices(&info.devices));
    }
    lines.extend(corrections(&info.corrections));
    lines.push("MB = 10^6 bytes, KiB = 2^10".into());
    lines.join("\n")
}

/// Describes a conversion.
pub(super) fn converted(converted: &Converted, out: &Path) -> String {
    let mut lines =
        vec![format!("{}: {} requests on {} devices", out.display(), converted.records, converted.devices)];
    lines.extend(corrections(&converted.corrections));
    lines.extend(converted.lost.iter().map(|lost| format!("lost: {lost}")));
    lines.join("\n")
}

fn header(header: &TraceHeader) -> Vec<String> {
    // A synthetic trace has no source file.
    let source = header.source.iter().map(|name| name.escape_debug().to_string()).collect::<Vec<_>>();
    let source = if source.is_empty() { "no other file".to_owned() } else { source.join(", ") };
    let mut lines = vec![format!("{}: {source}", header.format.name())];
    let clock = match header.clock {
        TraceClock::Issue => "issue times",
        TraceClock::Completion => "issue times computed from completion times",
        TraceClock::None => "no times, only the order",
    };
    lines.push(format!(
        "recorded {}; {clock}, resolution {}; addresses in {}",
        header.level.name(),
        time(header.resolution_ns as f64),
        header.unit.name()
    ));
    if let Origin::Synthetic { personality, seed } = &header.origin {
        lines.push(format!("SYNTHETIC: {personality}, seed {seed}"));
    }
    lines
}

fn times(mix: &DeviceDetail) -> Vec<String> {
    let rate = mix.rate.map_or("-".into(), |rate| format!("{rate:.1} /s"));
    let bytes = mix.bytes_per_second.map_or("-".into(), |rate| format!("{:.2} MB/s", rate / 1e6));
    let duration = time((mix.last_ns - mix.first_ns) as f64);
    let mut lines = vec![format!("{duration} from first to last issue; {rate}, {bytes}")];
    lines
        .extend(mix.gaps.map(|gaps| {
            format!("interval: {}, longest {}", percentiles(&gaps), time(mix.gap_max_ns as f64))
        }));
    lines.extend(mix.service.map(|service| format!("to completion: {}", percentiles(&service))));
    lines.push(match &mix.outstanding {
        None => "outstanding: unknown, without completion times".into(),
        Some(outstanding) => {
            let mean = outstanding.mean.map_or("-".into(), |mean| format!("{mean:.3}"));
            let least = if outstanding.is_peak_bound { "at least " } else { "" };
            format!("outstanding: mean {mean}, peak {least}{}", outstanding.peak)
        }
    });
    lines
}

fn percentiles(times: &LatencySummary) -> String {
    let at = |ns: u64| time(ns as f64);
    format!(
        "mean {}, p50 {}, p90 {}, p99 {}, p99.9 {}",
        time(times.mean_ns),
        at(times.p50_ns),
        at(times.p90_ns),
        at(times.p99_ns),
        at(times.p99_9_ns)
    )
}

fn operations(whole: &DeviceInfo) -> Vec<String> {
    let mut lines =
        vec![format!("{:<12} {:>14} {:>8} {:>14} {:>8}", "operation", "requests", "share", "MB", "share")];
    lines.extend(whole.operations.iter().map(|part| {
        format!(
            "{:<12} {:>14} {:>8} {:>14.3} {:>8}",
            part.operation.name(),
            part.records,
            share(part.records, whole.records),
            part.bytes as f64 / 1e6,
            share(part.bytes, whole.bytes)
        )
    }));
    lines
}

fn sizes(mix: &DeviceDetail) -> Vec<String> {
    let (records, bytes) = mix.sizes.iter().fold((0, 0), |sum, c| (sum.0 + c.records, sum.1 + c.bytes));
    let mut lines =
        vec![format!("{:<12} {:>14} {:>8} {:>14} {:>8}", "size from", "requests", "share", "MB", "share")];
    lines.extend(mix.sizes.iter().map(|class| {
        format!(
            "{:<12} {:>14} {:>8} {:>14.3} {:>8}",
            binary(class.from_bytes),
            class.records,
            share(class.records, records),
            class.bytes as f64 / 1e6,
            share(class.bytes, bytes)
        )
    }));
    lines
}

fn places(whole: &DeviceInfo) -> Vec<String> {
    let mut lines = vec![format!(
        "footprint: {} read or written, in whole pages of {}; up to byte {}",
        size(whole.footprint_bytes),
        binary(whole.footprint_page_bytes),
        whole.end_bytes
    )];
    if let Some(jumps) = &whole.jumps {
        let median = jumps.median_jump_bytes.map_or("-".into(), binary);
        lines.push(format!(
            "sequential: {} start at the end of the previous request, {} at the end of one of the last 32",
            share(jumps.sequential, jumps.records),
            share(jumps.in_streams, jumps.records)
        ));
        lines.push(format!(
            "random: {} start more than 128 KiB away; median jump {median}",
            share(jumps.random, jumps.records)
        ));
    }
    lines
}

fn devices(devices: &[DeviceInfo]) -> Vec<String> {
    let mut lines = vec![format!(
        "{:<20} {:>12} {:>12} {:>12} {:>12} {:>10} {:>6}",
        "device", "requests", "MB", "footprint", "rate", "sequential", "peak"
    )];
    lines.extend(devices.iter().take(DEVICES_SHOWN).map(|device| {
        let rate = device.detail.as_ref().and_then(|mix| mix.rate);
        let peak = device.detail.as_ref().and_then(|mix| mix.outstanding.as_ref()).map(|o| o.peak);
        format!(
            "{:<20} {:>12} {:>12.3} {:>12} {:>12} {:>10} {:>6}",
            // Names are escaped, because they come from the file.
            device.name.as_deref().unwrap_or_default().escape_debug().to_string(),
            device.records,
            device.bytes as f64 / 1e6,
            size(device.footprint_bytes),
            rate.map_or("-".into(), |rate| format!("{rate:.1} /s")),
            device.jumps.as_ref().map_or("-".into(), |jumps| share(jumps.sequential, jumps.records)),
            peak.map_or("-".into(), |peak| peak.to_string())
        )
    }));
    if devices.len() > DEVICES_SHOWN {
        lines.push(format!("… and {} more devices (--json has all)", devices.len() - DEVICES_SHOWN));
    }
    if devices.len() > 1 {
        lines.push("several devices: use --device NAME to select one".into());
    }
    lines
}

fn corrections(corrections: &Corrections) -> Vec<String> {
    let list = corrections.describe();
    if list.is_empty() {
        return vec!["corrected or skipped: nothing".into()];
    }
    list.into_iter().map(|(count, what)| format!("corrected or skipped: {count} {what}")).collect()
}

fn share(part: u64, all: u64) -> String {
    if all == 0 { "-".into() } else { format!("{:.1} %", part as f64 / all as f64 * 100.0) }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000_000 => format!("{:.3} MB", bytes as f64 / 1e6),
        _ => format!("{:.3} GB", bytes as f64 / 1e9),
    }
}

fn binary(bytes: u64) -> String {
    let steps = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let step = (bytes.max(1).ilog2() / 10) as usize;
    format!("{} {}", bytes >> (10 * step), steps[step])
}

fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{:.2} us", ns / 1e3),
        ns if ns < 1e9 => format!("{:.3} ms", ns / 1e6),
        ns => format!("{:.3} s", ns / 1e9),
    }
}
