//! Messages of a trial: plan and finished runs.
use keepup_measure::sum::Sums;
use keepup_results::RecordRun;
use keepup_stream::source::Rate;
use keepup_workload::Footprint;

use super::Plan;
use crate::generator::files_place;

/// Describes the plan.
pub(super) fn plan(plan: &Plan, repeats: u32, footprint: &Footprint) -> String {
    let source = &plan.spec.source;
    let place = match &plan.volumes[..] {
        [] => "without a disk".to_owned(),
        volumes => {
            let names: Vec<String> = volumes.iter().map(|volume| volume.display().to_string()).collect();
            format!("on {}", names.join(" + "))
        }
    };
    let rate = match (source.rate, plan.asked_bytes_per_second) {
        (Rate::EventsPerSecond(_), Some(rate)) => format!("{:.1} MB/s", rate / 1e6),
        _ => "full speed".to_owned(),
    };
    let time = source.duration.map(|time| format!("{} s", time.as_secs_f64()));
    let events = source.events.map(|events| format!("{events} events"));
    let until: Vec<String> = time.into_iter().chain(events).collect();
    let written: u64 = footprint.bytes_written.values().saturating_sum();
    let has_files = plan.spec.generator.file_store().is_some();
    let cost = match plan.volumes.is_empty() {
        true if has_files => "nothing else is written".to_owned(),
        true => "nothing is written".to_owned(),
        false => {
            let all = written as f64 / 1e9 * f64::from(repeats);
            let more = if has_files { ", not counting the files of the source" } else { "" };
            format!("at most {all:.1} GB written in total{more}, removed afterwards")
        }
    };
    let size = match (source.size.max_bytes(), source.uncompressed_bytes()) {
        (bytes, Some(image)) => format!("at most {bytes} bytes (images of {image} bytes, compressed)"),
        (bytes, None) => format!("{bytes} bytes"),
    };
    format!(
        "trial of {} {place}: {repeats} {}, {rate}, {}; {} of {size} over {}, protocol {}{}; {cost}",
        plan.profile.name,
        if repeats == 1 { "run" } else { "runs" },
        until.join(" or "),
        several(source.streams, "stream"),
        several(source.connections, "connection"),
        source.protocol,
        files_place(plan.spec.generator.file_store())
    )
}

fn several(number: u32, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Line of a finished run.
pub(super) fn ended(run: &RecordRun, repeats: u32) -> String {
    let mb = |rate: f64| rate / 1e6;
    let durable = run.durable_bytes_per_second.map(|rate| format!(", durable {:.1} MB/s", mb(rate)));
    let lost = match run.ledger.lost.events {
        0 => String::new(),
        lost => format!(", {lost} events LOST"),
    };
    format!(
        "{}, run {} of {repeats}: received {:.1} MB/s{}{lost}",
        run.place(),
        run.repeat,
        mb(run.achieved_bytes_per_second),
        durable.unwrap_or_default()
    )
}
