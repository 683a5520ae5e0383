//! Passes of a replay: rates and cost, timing accuracy, verification and request latency.

use keepup_measure::stats::median;
use keepup_results::{LatencyFigures, ReplayPass, ReplaySummary, ReplayTimes};

use super::NAME_CHARACTERS_MAX;
use crate::format::{fixed, number, seconds, shorten};
use crate::page::{Block, Item};
use crate::table::{Cell, Table, Tone, left, right};

/// Most passes listed.
const ROWS_MAX: usize = 400;

pub(super) fn blocks(summary: &ReplaySummary) -> Vec<Block> {
    let passes = &summary.passes[..summary.passes.len().min(ROWS_MAX)];
    let mut blocks = vec![rates(passes)];
    blocks.push(Block::new(
        "Timing accuracy",
        vec![Item::Table(kept(passes)), Item::List(passes.iter().filter_map(not_kept).collect())],
    ));
    let problems: Vec<String> = passes.iter().flat_map(problems).collect();
    blocks.push(Block::new(
        "Errors and verification",
        vec![Item::Table(checked(passes)), Item::List(problems)],
    ));
    blocks.push(times(passes));
    blocks
}

/// Trace and place of a pass.
fn name(pass: &ReplayPass) -> String {
    let (trace, place) =
        (shorten(&pass.trace, NAME_CHARACTERS_MAX), shorten(&pass.place, NAME_CHARACTERS_MAX));
    format!("{trace} on {place}")
}

/// Number of a pass, and whether caches were cold.
fn number_of(pass: &ReplayPass) -> String {
    format!("{}{}", pass.pass, if pass.is_cold { " cold" } else { "" })
}

fn rates(passes: &[ReplayPass]) -> Block {
    let row = |pass: &ReplayPass| -> Vec<Cell> {
        let mb = |rate: Option<f64>| Cell::from(fixed(rate.map(|rate| rate / 1e6), 1));
        let tone = if pass.failed > 0 { Tone::Bad } else { Tone::Plain };
        vec![
            name(pass).into(),
            pass.mode.as_str().into(),
            number_of(pass).into(),
            fixed(Some(pass.seconds), 3).into(),
            fixed(pass.requests_per_second(), 0).into(),
            mb(pass.bytes_per_second()),
            mb(pass.busy_bytes_per_second()),
            fixed(Some(pass.cpu_seconds), 3).into(),
            Cell::toned(number(pass.failed), tone),
        ]
    };
    let columns = vec![
        left("trace"),
        left("mode"),
        right("pass"),
        right("time, s"),
        right("requests/s"),
        right("MB/s"),
        right("while busy"),
        right("CPU, s"),
        right("failed"),
    ];
    let warm = passes.iter().filter(|pass| !pass.is_cold);
    let middle = median(&warm.map(|pass| pass.seconds).collect::<Vec<_>>());
    let text =
        middle.map(|middle| Item::Text(format!("Median duration of warm passes: {}.", seconds(middle))));
    let table = Item::Table(Table { columns, rows: passes.iter().map(row).collect() });
    Block::new("Every pass", [table].into_iter().chain(text).collect())
}

/// Duration compared with the trace, lateness, and requests in flight.
fn kept(passes: &[ReplayPass]) -> Table {
    let row = |pass: &ReplayPass| -> Vec<Cell> {
        let kept = pass.fidelity.as_ref();
        let late = |of: fn(&LatencyFigures) -> u64| {
            Cell::from(fixed(pass.lateness.as_ref().map(|times| of(times) as f64 / 1e6), 3))
        };
        let mark = match kept {
            None => "".into(),
            Some(kept) if kept.is_kept => Cell::toned("kept", Tone::Good),
            Some(_) => Cell::toned("NOT KEPT", Tone::Bad),
        };
        vec![
            name(pass).into(),
            number_of(pass).into(),
            fixed(kept.map(|kept| kept.span_asked_seconds), 3).into(),
            fixed(kept.map(|kept| 100.0 * kept.span_error), 3).into(),
            late(|times| times.p99_ns),
            late(|times| times.max_ns),
            format!("{:.2}", pass.outstanding_mean).into(),
            format!("{} of {}", pass.outstanding_max, pass.outstanding_limit).into(),
            number(pass.reordered).into(),
            mark,
        ]
    };
    let columns = vec![
        left("trace"),
        right("pass"),
        right("asked, s"),
        right("error, %"),
        right("late p99, ms"),
        right("longest, ms"),
        right("in flight"),
        right("max"),
        right("out of order"),
        left(""),
    ];
    Table { columns, rows: passes.iter().map(row).collect() }
}

/// Why the trace timing was not kept.
fn not_kept(pass: &ReplayPass) -> Option<String> {
    let kept = pass.fidelity.as_ref().filter(|kept| !kept.is_kept)?;
    let who = match kept.is_target {
        true => "the target was slower than the trace",
        false => "this machine submitted requests late although the target was not busy (other load?)",
    };
    Some(format!("{}, pass {}: {who}: {}", name(pass), pass.pass, kept.why.join("; ")))
}

/// Blocks verified after a pass.
fn checked(passes: &[ReplayPass]) -> Table {
    let row = |pass: &ReplayPass| -> Option<Vec<Cell>> {
        let check = pass.check.as_ref()?;
        let tone = if check.wrong > 0 { Tone::Bad } else { Tone::Good };
        Some(vec![
            name(pass).into(),
            number_of(pass).into(),
            number(check.blocks).into(),
            Cell::toned(number(check.wrong), tone),
            number(check.ambiguous).into(),
        ])
    };
    let columns =
        vec![left("trace"), right("pass"), right("blocks"), right("wrong"), right("written concurrently")];
    Table { columns, rows: passes.iter().filter_map(row).collect() }
}

/// Failed requests and wrong blocks.
fn problems(pass: &ReplayPass) -> Vec<String> {
    let name = format!("{}, pass {}", name(pass), pass.pass);
    let failure = pass.failure.as_ref();
    let failure =
        failure.map(|why| format!("{name}: {} requests failed; the first: {why}", number(pass.failed)));
    let wrong = pass.check.as_ref().and_then(|check| check.first_wrong.as_ref());
    let wrong = wrong.map(|first| format!("{name}: the first wrong block: {first}"));
    failure.into_iter().chain(wrong).collect()
}

/// Latency by kind of request and by device of the trace, last pass of each trace and place.
fn times(passes: &[ReplayPass]) -> Block {
    let mut last: Vec<(String, &ReplayPass)> = Vec::new();
    for pass in passes {
        let name = name(pass);
        match last.iter_mut().find(|known| known.0 == name) {
            Some(known) => known.1 = pass,
            None => last.push((name, pass)),
        }
    }
    let row = |name: &str, pass: &ReplayPass, what: &str, times: &ReplayTimes| -> Vec<Cell> {
        // Scheduled requests: the response time includes the wait before submission.
        let (of, times) = match pass.fidelity.is_some() {
            true => ("response", &times.response),
            false => ("service", &times.service),
        };
        let ms = |ns: f64| Cell::from(fixed(Some(ns / 1e6), 3));
        vec![
            name.into(),
            format!("{what} {of}").into(),
            ms(times.mean_ns),
            ms(times.p50_ns as f64),
            ms(times.p99_ns as f64),
            ms(times.p99_9_ns as f64),
            ms(times.max_ns as f64),
        ]
    };
    let rows = last.iter().flat_map(|(name, pass)| {
        let kinds = [
            ("read", &pass.reads),
            ("write", &pass.writes),
            ("flush", &pass.flushes),
            ("discard", &pass.discards),
        ];
        // Latencies are not valid if the timing was not kept.
        let is_kept = pass.fidelity.as_ref().is_none_or(|kept| kept.is_kept);
        let kinds = kinds.into_iter().filter_map(|(what, times)| Some((what, times.as_ref()?)));
        let devices = pass.devices.iter().map(|device| (device.device.as_str(), &device.times));
        kinds.chain(devices).filter(move |_| is_kept).map(move |(what, times)| row(name, pass, what, times))
    });
    let columns = vec![
        left("trace"),
        left("time of"),
        right("mean, ms"),
        right("p50"),
        right("p99"),
        right("p99.9"),
        right("max"),
    ];
    let table = Table { columns, rows: rows.collect() };
    Block::new("Request latency, last pass", vec![Item::Table(table)])
}
