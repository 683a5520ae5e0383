//! What a replay will do, how each of its passes ended, and with which exit code the whole ends.
use keepup_results::{ReplayPass, ReplaySummary, ReplayTrace};
use keepup_workload::Footprint;
use keepup_workload::disk::mode::Access;
use keepup_workload::replay::{Mode, ReplayOptions, TargetSpec};

use crate::exit::Exit;

/// What a trace is, and what becomes of it.
pub(super) fn trace(told: &ReplayTrace, manner: &ReplayOptions) -> Vec<String> {
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
    let is_cached = manner.io.access == Access::Buffered;
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
pub(super) fn cost(places: &[TargetSpec], manner: &ReplayOptions, whole: &Footprint) -> String {
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

/// A line on a pass that has ended.
pub(super) fn ended(pass: &ReplayPass) -> String {
    let cold = if pass.is_cold { ", cold" } else { "" };
    format!(
        "{} on {}, {} pass {}{cold}: {:.3} s, {:.1} MB/s, {} failed",
        pass.trace,
        pass.place,
        pass.mode,
        pass.pass,
        pass.seconds,
        pass.bytes_per_second().unwrap_or(0.0) / 1e6,
        pass.failed
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
