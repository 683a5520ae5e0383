//! Messages of a replay: plan, finished passes, exit code.
use keepup_measure::sum::Sums;
use keepup_replay::{Mode, ReplayOptions, TargetSpec};
use keepup_results::{ReplayPass, ReplaySummary, ReplayTrace};
use keepup_workload::Footprint;
use keepup_workload::disk::mode::Access;

use crate::exit::Exit;

/// Describes a trace and the changes made to it.
pub(super) fn describe_trace(trace: &ReplayTrace, options: &ReplayOptions) -> Vec<String> {
    let mut lines = vec![format!(
        "{}: {} requests ({} reads, {} writes, {} flushes, {} discards), {:.1} MB read and {:.1} MB \
         written in {:.3} s; {}, {}",
        trace.trace,
        trace.records,
        trace.reads,
        trace.writes,
        trace.flushes,
        trace.discards,
        trace.bytes_read as f64 / 1e6,
        trace.bytes_written as f64 / 1e6,
        trace.span_seconds,
        trace.origin,
        trace.level,
    )];
    let is_cached = options.io.access == Access::Buffered;
    let above = trace.level == "above the file system";
    if is_cached != above && trace.level != "not known" {
        let how = if is_cached { "uses" } else { "bypasses" };
        lines.push(format!(
            "warning: the trace was recorded {}, but the replay {how} the page cache",
            trace.level
        ));
    }
    let map = &trace.map;
    let left_out = [
        (trace.discards_left_out, "discards (--reads-only)"),
        (trace.writes_left_out, "writes and flushes (--reads-only)"),
        (trace.too_long_left_out, "requests longer than 64 MiB"),
        (map.left_out, "requests beyond the end of the target"),
    ];
    for (count, what) in left_out.into_iter().filter(|(count, _)| *count > 0) {
        lines.push(format!("  skipped: {count} {what}"));
    }
    if trace.ordered_writes > 0 {
        lines.push(format!("  {} writes with FUA or a flush before them", trace.ordered_writes));
    }
    for (what, count) in &trace.corrected {
        lines.push(format!("  {count} {what}"));
    }
    if map.moved > 0 {
        let share = |share: Option<f64>| share.map_or_else(|| "-".into(), |s| format!("{:.1} %", 100.0 * s));
        lines.push(format!(
            "  --map {}: {:.1} % of requests moved; sequential {} before, {} after",
            map.policy,
            100.0 * map.moved as f64 / (trace.reads + trace.writes).max(1) as f64,
            share(map.sequential_before),
            share(map.sequential_after)
        ));
    }
    if map.aligned > 0 {
        lines.push(format!(
            "  {} requests rounded to blocks of {} bytes, {:.1} MB more in total",
            map.aligned,
            map.block_bytes,
            map.aligned_bytes as f64 / 1e6
        ));
    }
    if trace.shortened_seconds > 0.0 {
        lines.push(format!("  pauses shortened by {:.3} s in total", trace.shortened_seconds));
    }
    lines
}

/// Describes the cost of all passes.
pub(super) fn cost(targets: &[TargetSpec], options: &ReplayOptions, whole: &Footprint) -> String {
    let names: Vec<String> = targets.iter().map(ToString::to_string).collect();
    let written: u64 = whole.bytes_written.values().saturating_sum();
    let held: u64 = whole.space_bytes.values().copied().max().unwrap_or(0);
    let how = match options.mode {
        Mode::Timed { speed } if speed != 1.0 => format!("timed, {speed} times as fast"),
        Mode::Dep { speed } if speed != 1.0 => format!("dep, {speed} times as fast"),
        Mode::Afap { depth } => format!("afap, queue depth {depth}"),
        Mode::Paced { rate } => format!("paced, {rate} requests/s"),
        mode => mode.name().to_owned(),
    };
    let both = if options.with_and_without { ", without and with the loads" } else { "" };
    let time = match whole.time.as_secs_f64() {
        0.0 => String::new(),
        seconds => format!("about {seconds:.0} s plus the time to fill the files; "),
    };
    format!(
        "{how}, on {}: {} passes each{both}; {time}at most {:.2} GB written in total, {:.2} GB of space per \
         volume, removed afterwards",
        names.join(", "),
        options.passes,
        written as f64 / 1e9,
        held as f64 / 1e9
    )
}

/// Line of a finished pass.
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

/// Exit code of a replay: failed if data was corrupt or a target was slower than the trace in every warm
/// pass, inconclusive if this machine missed the traced times in every warm pass.
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
