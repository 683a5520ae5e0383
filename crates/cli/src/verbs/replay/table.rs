//! What a replay found, for people.
use keepup_results::{
    LatencyFigures, LoadResult, ReplayIndex, ReplayMetric, ReplayPass, ReplayPlace, ReplaySummary,
    ReplayTrace,
};
use keepup_workload::Footprint;
use keepup_workload::disk::mode::Access;
use keepup_workload::replay::{Manner, Mode, Place};

use crate::exit::Exit;
use crate::loads;

fn ms(ns: f64) -> String {
    format!("{:.3}", ns / 1e6)
}

/// What a trace is, and what becomes of it.
pub(super) fn trace(told: &ReplayTrace, manner: &Manner) -> Vec<String> {
    let mut lines = vec![format!(
        "{}: {} requests ({} reads, {} writes, {} flushes), {:.1} MB read and {:.1} MB written in {:.3} s; \
         {}, {}",
        told.trace,
        told.records,
        told.reads,
        told.writes,
        told.flushes,
        told.bytes_read as f64 / 1e6,
        told.bytes_written as f64 / 1e6,
        told.span_seconds,
        told.origin,
        told.level,
    )];
    let is_cached = manner.means.access == Access::Buffered;
    let above = told.level == "above the file system";
    if is_cached != above && told.level != "not known" {
        let how = if is_cached { "through" } else { "past" };
        lines.push(format!("warning: it was taken {}, and is replayed {how} the page cache", told.level));
    }
    let map = &told.map;
    let left_out = [
        (told.discards_left_out, "discards: none is made"),
        (told.writes_left_out, "writes and flushes, as asked"),
        (told.too_long_left_out, "requests longer than 64 MiB"),
        (map.left_out, "requests that the target has no room for"),
    ];
    for (count, what) in left_out.into_iter().filter(|(count, _)| *count > 0) {
        lines.push(format!("  left out: {count} {what}"));
    }
    if told.orders_not_kept > 0 {
        let count = told.orders_not_kept;
        lines.push(format!(
            "  {count} writes were to be durable at once or after others: made as ordinary ones"
        ));
    }
    for (what, count) in &told.corrected {
        lines.push(format!("  {count} {what}"));
    }
    if map.moved > 0 {
        let share = |share: Option<f64>| share.map_or_else(|| "-".into(), |s| format!("{:.1} %", 100.0 * s));
        lines.push(format!(
            "  --map {}: {:.1} % of requests lie elsewhere; sequential {} before, {} after",
            map.policy,
            100.0 * map.moved as f64 / (told.reads + told.writes).max(1) as f64,
            share(map.sequential_before),
            share(map.sequential_after)
        ));
    }
    if map.aligned > 0 {
        lines.push(format!(
            "  {} requests were rounded to blocks of {} bytes, {:.1} MB more in all",
            map.aligned,
            map.block_bytes,
            map.aligned_bytes as f64 / 1e6
        ));
    }
    if told.shortened_seconds > 0.0 {
        lines.push(format!("  pauses were shortened by {:.3} s in all", told.shortened_seconds));
    }
    lines
}

/// What all passes will do.
pub(super) fn cost(places: &[Place], manner: &Manner, whole: &Footprint) -> String {
    let names: Vec<String> = places.iter().map(ToString::to_string).collect();
    let written: u64 = whole.bytes_written.values().sum();
    let held: u64 = whole.space_bytes.values().copied().max().unwrap_or(0);
    let how = match manner.mode {
        Mode::Timed { speed } if speed != 1.0 => format!("timed, {speed} times as fast"),
        Mode::Dep { speed } if speed != 1.0 => format!("dep, {speed} times as fast"),
        Mode::Afap { depth } => format!("afap, {depth} under way"),
        Mode::Paced { rate } => format!("paced, {rate} requests/s"),
        mode => mode.name().to_owned(),
    };
    let both = if manner.with_and_without { ", without and with the loads" } else { "" };
    let time = match whole.time.as_secs_f64() {
        0.0 => String::new(),
        seconds => format!("about {seconds:.0} s and the time to fill; "),
    };
    format!(
        "{how}, on {}: {} passes on each{both}; {time}at most {:.2} GB written in all, {:.2} GB held on a \
         volume, removed afterwards",
        names.join(", "),
        manner.passes,
        written as f64 / 1e9,
        held as f64 / 1e9
    )
}

/// One pass.
pub(super) fn pass(pass: &ReplayPass) -> String {
    let cold = if pass.is_cold { ", cold" } else { "" };
    let mut lines = vec![format!(
        "{} on {}, {} pass {}{cold}: {:.3} s, {:.0} requests/s, {:.1} MB/s ({:.1} while busy), CPU {:.3} s",
        pass.trace,
        pass.place,
        pass.mode,
        pass.pass,
        pass.seconds,
        pass.requests_per_second().unwrap_or(0.0),
        pass.bytes_per_second().unwrap_or(0.0) / 1e6,
        pass.busy_bytes_per_second().unwrap_or(0.0) / 1e6,
        pass.cpu_seconds
    )];
    let is_kept = pass.fidelity.as_ref().is_none_or(|fidelity| fidelity.is_kept);
    for (name, times) in [("read", pass.reads), ("write", pass.writes), ("flush", pass.flushes)] {
        let Some(times) = times else { continue };
        let is_open = pass.fidelity.is_some();
        let (what, of) = if is_open { ("response", &times.response) } else { ("service", &times.service) };
        if is_kept {
            lines.push(format!("  {name} {what} ms: {}", figures(of)));
        }
    }
    lines.push(format!(
        "  under way: {:.2} in the mean, {} at most, of {}{}",
        pass.outstanding_mean,
        pass.outstanding_max,
        pass.outstanding_limit,
        if pass.reordered > 0 { format!("; {} ended out of order", pass.reordered) } else { String::new() }
    ));
    if let (Some(fidelity), Some(late)) = (&pass.fidelity, &pass.lateness) {
        lines.push(format!(
            "  time: span {:.4} s of {:.4} s asked ({:.3} % off); requests late by ms: {}",
            fidelity.span_seconds,
            fidelity.span_asked_seconds,
            100.0 * fidelity.span_error,
            figures(late)
        ));
        if !fidelity.is_kept {
            let who = match fidelity.is_target {
                true => "TARGET SLOWER THAN THE TRACE",
                false => "TIME NOT KEPT, though the target took all requests (other work on this machine?)",
            };
            lines.push(format!("  {who}: {}", fidelity.why.join("; ")));
        }
    }
    if let Some(failure) = &pass.failure {
        lines.push(format!("  FAILED: {} requests; the first: {failure}", pass.failed));
    }
    if let Some(check) = &pass.check {
        lines.push(format!(
            "  read back: {} blocks, {} wrong, {} not told (written by several at the same time)",
            check.blocks, check.wrong, check.ambiguous
        ));
        lines.extend(check.first_wrong.iter().map(|first| format!("  WRONG: {first}")));
    }
    lines.join("\n")
}

fn figures(of: &LatencyFigures) -> String {
    format!(
        "mean {}, p50 {}, p99 {}, p99.9 {}, max {}",
        ms(of.mean_ns),
        ms(of.p50_ns as f64),
        ms(of.p99_ns as f64),
        ms(of.p99_9_ns as f64),
        ms(of.max_ns as f64)
    )
}

/// What the whole comes to: failed when something was not what was written, or a target was slower than a
/// trace in every warm pass; inconclusive when this machine could not keep a trace's time in any.
pub(super) fn exit(summary: &ReplaySummary) -> Exit {
    let wrong = |pass: &ReplayPass| pass.check.as_ref().is_some_and(|check| check.wrong > 0);
    let mut exit = if summary.passes.iter().any(wrong) { Exit::Failed } else { Exit::Done };
    let warm = || summary.passes.iter().filter(|pass| !pass.is_cold);
    for pass in warm() {
        let same = |other: &&ReplayPass| other.trace == pass.trace && other.place == pass.place;
        if warm().filter(same).any(ReplayPass::is_usable) || exit == Exit::Failed {
            continue;
        }
        let is_target = |other: &ReplayPass| other.fidelity.as_ref().is_some_and(|kept| kept.is_target);
        exit = if warm().filter(same).any(is_target) { Exit::Failed } else { Exit::Inconclusive };
    }
    exit
}

/// All passes, and how places compare.
pub(super) fn page(summary: &ReplaySummary) -> String {
    let beside: Vec<&[LoadResult]> =
        summary.passes.iter().map(|pass| &pass.loads[..]).filter(|loads| !loads.is_empty()).collect();
    let mut lines = loads::over_runs(&beside);
    if let Some(index) = &summary.index {
        lines.extend(compared(index));
    }
    lines.join("\n")
}

fn compared(index: &ReplayIndex) -> Vec<String> {
    let what = match index.metric {
        ReplayMetric::MeanService => "mean service time",
        ReplayMetric::MeanResponse => "mean response time",
    };
    let width = index.places.iter().map(|place| place.place.len()).max().unwrap_or(0).max(8);
    let mut lines = vec![
        format!(
            "\nindex: geometric mean over traces of 1 / {what}, {} = 1.00; mode {}",
            index.baseline, index.mode
        ),
        format!(
            "{:<width$} {:>7} {:>17} {:>7} {:>8}  best and worst trace",
            "place", "index", "95 % interval", "arithm.", "loss %"
        ),
    ];
    for place in &index.places {
        lines.push(row(place, width));
    }
    lines.push(format!(
        "\n{:<width$} {:<28} {:>7} {:>10} {:>8} {:>6}",
        "place", "trace", "ratio", "mean ms", "+/- ms", "passes"
    ));
    for place in &index.places {
        for ratio in &place.ratios {
            let noisy = if ratio.is_noisy { "  noisy: passes differ by more than 5 %" } else { "" };
            let why = ratio.why.as_ref().map(|why| format!("  {why}")).unwrap_or_default();
            lines.push(format!(
                "{:<width$} {:<28} {:>7} {:>10} {:>8} {:>6}{noisy}{why}",
                place.place,
                ratio.trace,
                number(ratio.ratio, 3),
                number(ratio.mean_ns.map(|ns| ns / 1e6), 3),
                number(ratio.half_width_ns.map(|ns| ns / 1e6), 3),
                ratio.passes
            ));
        }
    }
    lines
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".into(), |value| format!("{value:.digits$}"))
}

fn row(place: &ReplayPlace, width: usize) -> String {
    let interval = place.lower.zip(place.upper);
    let interval = interval.map_or_else(|| "-".into(), |(lower, upper)| format!("{lower:.3} to {upper:.3}"));
    let extremes = match (&place.best, &place.worst) {
        (Some(best), Some(worst)) => format!("{best}, {worst}"),
        _ => "-".into(),
    };
    format!(
        "{:<width$} {:>7} {interval:>17} {:>7} {:>8}  {extremes}",
        place.place,
        number(place.index, 3),
        number(place.arithmetic_mean, 3),
        number(place.loss_percent, 1)
    )
}
