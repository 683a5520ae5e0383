//! Description and conversion of a block trace, by `trace info` and `trace convert`.

use std::path::Path;

use keepup_measure::histogram::LatencySummary;
use keepup_results::printable::visible;
use keepup_trace::{
    Converted, Corrections, DeviceDetail, DeviceInfo, Origin, StageTimes, TraceClock, TraceHeader, TraceInfo,
};

use super::{ROWS_SHOWN, megabytes, more, render};
use crate::Style;
use crate::chart::size_name;
use crate::format::{bytes, fixed, percent, plural, rate, time};
use crate::page::{Block, Fact, Item};
use crate::table::{Cell, Table, left, right};

/// Describes a trace: source, times, operations, sizes, places and devices.
#[must_use]
pub fn trace(info: &TraceInfo, style: Style) -> String {
    let whole = &info.whole;
    let mut facts = header(&info.header);
    let (requests, devices) = (plural(whole.records, "request"), plural(info.devices.len() as u64, "device"));
    facts.push(Fact::new("requests", format!("{requests}, {} on {devices}", bytes(whole.bytes))));
    let mut blocks = Vec::new();
    if let Some(mix) = &whole.detail {
        facts.extend(times(mix));
        facts.extend(info.stages.iter().flat_map(stages));
        blocks.push(Block::new("", vec![Item::Table(operations(whole))]));
        blocks.push(Block::new("", vec![Item::Table(sizes(mix))]));
    }
    blocks.push(Block::new("", vec![Item::Facts(places(whole))]));
    let mut last = Vec::new();
    if info.devices.len() > 1 {
        last.push(Item::Table(devices_table(&info.devices)));
        last.extend(more(info.devices.len(), "devices"));
        last.push(Item::Text("several devices: use --device NAME to select one".to_owned()));
    }
    last.push(Item::Facts(corrections(&info.corrections)));
    last.push(Item::Text("MB = 10^6 bytes, KiB = 2^10".to_owned()));
    blocks.push(Block::new("", last));
    blocks.insert(0, Block::new(source(&info.header), vec![Item::Facts(facts)]));
    render(blocks, style)
}

/// Describes a conversion to the file `out`.
#[must_use]
pub fn converted(converted: &Converted, out: &Path, style: Style) -> String {
    let (requests, devices) = (plural(converted.records, "request"), plural(converted.devices, "device"));
    let mut facts = vec![
        Fact::path("wrote", out.display().to_string()),
        Fact::new("", format!("{requests} on {devices}")),
    ];
    facts.extend(corrections(&converted.corrections));
    facts.extend(converted.lost.iter().map(|lost| Fact::new("lost", lost)));
    render(vec![Block::new("", vec![Item::Facts(facts)])], style)
}

/// Format and source files. Names are escaped, because they come from the file.
fn source(header: &TraceHeader) -> String {
    let files: Vec<String> = header.source.iter().map(|name| visible(name)).collect();
    // A synthetic trace has no source file.
    let files = if files.is_empty() { "no other file".to_owned() } else { files.join(", ") };
    format!("{}: {files}", header.format.name())
}

fn header(header: &TraceHeader) -> Vec<Fact> {
    let clock = match header.clock {
        TraceClock::Issue => "issue times",
        TraceClock::Completion => "issue times computed from completion times",
        TraceClock::None => "no times, only the order",
    };
    let (level, unit) = (header.level.name(), header.unit.name());
    let resolution = nanoseconds(header.resolution_ns as f64);
    let text = format!("{level}; {clock}, resolution {resolution}; addresses in {unit}");
    let mut facts = vec![Fact::new("recorded", text)];
    if let Origin::Synthetic { personality, seed } = &header.origin {
        facts.push(Fact::new("SYNTHETIC", format!("{personality}, seed {seed}")));
    }
    facts
}

fn times(mix: &DeviceDetail) -> Vec<Fact> {
    let requests = per_second(mix.rate);
    let payload = mix.bytes_per_second.map_or("-".into(), rate);
    let duration = nanoseconds((mix.last_ns - mix.first_ns) as f64);
    let mut facts =
        vec![Fact::new("time", format!("{duration} from first to last issue; {requests}, {payload}"))];
    facts.extend(mix.gaps.map(|gaps| {
        let longest = nanoseconds(mix.gap_max_ns as f64);
        Fact::new("interval", format!("{}, longest {longest}", percentiles(&gaps)))
    }));
    facts.extend(mix.service.map(|service| Fact::new("to completion", percentiles(&service))));
    let outstanding = match &mix.outstanding {
        None => "unknown, without completion times".into(),
        Some(outstanding) => {
            let least = if outstanding.is_peak_bound { "at least " } else { "" };
            format!("mean {}, peak {least}{}", fixed(outstanding.mean, 3), outstanding.peak)
        }
    };
    facts.push(Fact::new("outstanding", outstanding));
    facts
}

/// Parts of the time to completion, with the names of blktrace's events.
fn stages(stages: &StageTimes) -> [Fact; 2] {
    let share =
        stages.q2d_share.map_or(String::new(), |share| format!("; {} of the time", percent(share * 100.0)));
    [
        Fact::new("Q to D (kernel)", format!("{}{share}", percentiles(&stages.q2d))),
        Fact::new("D to C (device)", percentiles(&stages.d2c)),
    ]
}

fn percentiles(times: &LatencySummary) -> String {
    let at = |ns: u64| nanoseconds(ns as f64);
    format!(
        "mean {}, p50 {}, p90 {}, p99 {}, p99.9 {}",
        nanoseconds(times.mean_ns),
        at(times.p50_ns),
        at(times.p90_ns),
        at(times.p99_ns),
        at(times.p99_9_ns)
    )
}

/// Table of requests and bytes with their shares. A part has a name, requests and bytes.
fn shares(title: &str, parts: Vec<(String, u64, u64)>) -> Table {
    let (records, size) = parts.iter().fold((0, 0), |sum, part| (sum.0 + part.1, sum.1 + part.2));
    let row = |(name, requests, size_of_part): (String, u64, u64)| -> Vec<Cell> {
        vec![
            name.into(),
            requests.to_string().into(),
            share(requests, records).into(),
            megabytes(size_of_part).into(),
            share(size_of_part, size).into(),
        ]
    };
    let columns = vec![left(title), right("requests"), right("share"), right("MB"), right("share")];
    Table { columns, rows: parts.into_iter().map(row).collect() }
}

fn operations(whole: &DeviceInfo) -> Table {
    let parts = whole.operations.iter();
    shares("operation", parts.map(|p| (p.operation.name().to_owned(), p.records, p.bytes)).collect())
}

fn sizes(mix: &DeviceDetail) -> Table {
    let classes = mix.sizes.iter();
    shares("size from", classes.map(|c| (size_name(c.from_bytes), c.records, c.bytes)).collect())
}

fn places(whole: &DeviceInfo) -> Vec<Fact> {
    let page = size_name(whole.footprint_page_bytes);
    let footprint = format!(
        "{} read or written, in whole pages of {page}; up to byte {}",
        bytes(whole.footprint_bytes),
        whole.end_bytes
    );
    let mut facts = vec![Fact::new("footprint", footprint)];
    if let Some(jumps) = &whole.jumps {
        let of = |count| share(count, jumps.records);
        let (sequential, in_streams, random) = (of(jumps.sequential), of(jumps.in_streams), of(jumps.random));
        let sequential = format!(
            "{sequential} start at the end of the previous request, {in_streams} at the end of one of the \
             last 32"
        );
        let median = jumps.median_jump_bytes.map_or("-".into(), bytes);
        let random = format!("{random} start more than 128 KiB away; median jump {median}");
        facts.extend([Fact::new("sequential", sequential), Fact::new("random", random)]);
    }
    facts
}

fn devices_table(devices: &[DeviceInfo]) -> Table {
    let row = |device: &DeviceInfo| -> Vec<Cell> {
        let detail = device.detail.as_ref();
        let peak = detail.and_then(|mix| mix.outstanding.as_ref()).map(|outstanding| outstanding.peak);
        let sequential = device.jumps.as_ref().map(|jumps| share(jumps.sequential, jumps.records));
        vec![
            // Names are escaped, because they come from the file.
            visible(device.name.as_deref().unwrap_or_default()).into(),
            device.records.to_string().into(),
            megabytes(device.bytes).into(),
            megabytes(device.footprint_bytes).into(),
            fixed(detail.and_then(|mix| mix.rate), 1).into(),
            sequential.unwrap_or_else(|| "-".into()).into(),
            peak.map_or("-".into(), |peak| peak.to_string()).into(),
        ]
    };
    let columns = vec![
        left("device"),
        right("requests"),
        right("MB"),
        right("footprint, MB"),
        right("requests/s"),
        right("sequential"),
        right("peak"),
    ];
    Table { columns, rows: devices.iter().take(ROWS_SHOWN).map(row).collect() }
}

fn corrections(corrections: &Corrections) -> Vec<Fact> {
    let list = corrections.describe();
    if list.is_empty() {
        return vec![Fact::new("corrected or skipped", "nothing")];
    }
    let fact = |(count, what)| Fact::new("corrected or skipped", format!("{count} {what}"));
    list.into_iter().map(fact).collect()
}

fn per_second(requests: Option<f64>) -> String {
    requests.map_or("-".into(), |requests| format!("{requests:.1} /s"))
}

fn share(part: u64, all: u64) -> String {
    if all == 0 { "-".into() } else { percent(part as f64 / all as f64 * 100.0) }
}

fn nanoseconds(ns: f64) -> String {
    time(ns / 1e9)
}
