//! Verdict at the end of a terminal page in three lines: the requirement, what held and what failed, the
//! bottleneck. A fourth is for volumes that do not hold a run.
//!
//! Invariant: the brief page omits only figures, never what was not tested or why a verdict is not FIT.

use keepup_results::{Bottleneck, ResultSummary, TrialResult, Verdict};

use super::bottleneck::doubt;
use super::{headline, proof};
use crate::format::{bytes, digits, plural, rate, rates, seconds, shorten};
use crate::page::{Block, Fact, Headline, Item, VerdictLast};

/// Two stages and a rate fit on a line of 80 columns.
const STAGE_CHARACTERS_MAX: usize = 25;

/// Short terminal page: reasons, what was not tested, verdict.
pub(crate) fn brief(summary: &ResultSummary) -> VerdictLast {
    let mut blocks = Vec::new();
    // The first reason of FIT repeats the verdict.
    let fell_short = summary.loads.iter().any(|load| load.shown.fell_short);
    if summary.verdict != Verdict::Fit || summary.verdict_reasons.len() > 1 || fell_short {
        blocks.extend(reasons(summary));
    }
    let mut untested = vec![Item::List(summary.limits.clone())];
    untested.retain(|_| !summary.limits.is_empty());
    untested.push(Item::Facts(vec![
        Fact::path("result", summary.result_directory.clone()),
        Fact::new("details", "keepup report RESULT --full"),
    ]));
    let title = if summary.limits.is_empty() { "Result" } else { "Not tested" };
    blocks.push(Block::new(title, untested));
    VerdictLast { title: headline(summary).title, blocks, verdict: verdict(summary) }
}

/// Full terminal page: all blocks, then the verdict.
pub(crate) fn full(summary: &ResultSummary, blocks: Vec<Block>) -> VerdictLast {
    let blocks = reasons(summary).into_iter().chain(blocks).collect();
    VerdictLast { title: headline(summary).title, blocks, verdict: verdict(summary) }
}

fn reasons(summary: &ResultSummary) -> Option<Block> {
    let reasons = super::reasons(summary);
    (!reasons.is_empty()).then(|| Block::new("Reasons", vec![Item::List(reasons)]))
}

fn verdict(summary: &ResultSummary) -> Headline {
    let mut lines = vec![
        Fact::new("asked", asked(summary)),
        Fact::new("held", held(summary)),
        Fact::new("limit", limit(summary)),
    ];
    lines.extend(space(summary));
    Headline { title: String::new(), items: vec![Item::Facts(lines)], ..headline(summary) }
}

/// When the volumes are full, if they do not hold one run.
fn space(summary: &ResultSummary) -> Option<Fact> {
    let storage = &summary.storage;
    let (run, usable) = storage.run_bytes.zip(storage.usable_bytes)?;
    let full = storage.hours_of_storage_left_at_required.filter(|_| run > usable)? * 3600.0;
    Some(Fact::new("space", format!("full after {}: {} of {}", seconds(full), bytes(usable), bytes(run))))
}

fn asked(summary: &ResultSummary) -> String {
    let run = summary.required_run_seconds.map(|time| format!(" for {}", seconds(time)));
    let specs: Vec<&str> = summary.loads.iter().map(|load| load.shown.spec.as_str()).collect();
    let loads = match specs.is_empty() {
        true => String::new(),
        false => format!(", with {}", shorten(&specs.join(" and "), STAGE_CHARACTERS_MAX)),
    };
    format!(
        "{}{} without loss, with {}x headroom{loads}",
        rate(summary.required_bytes_per_second),
        run.unwrap_or_default(),
        digits(summary.headroom_wanted)
    )
}

fn held(summary: &ResultSummary) -> String {
    match (summary.qualified_bytes_per_second, &summary.soak, summary.headroom) {
        (Some(qualified), Some(soak), Some(headroom)) => {
            let lost = match summary.ledger.lost.events {
                0 => "without loss".to_owned(),
                lost => format!("with {} lost", plural(lost, "event")),
            };
            let time = seconds(proof::soak_seconds(soak));
            let failed = failed(summary);
            let upper = failed.as_ref().map_or(qualified, |(rate, _)| *rate);
            let [held, upper] = rates([qualified, upper]);
            let failed = failed.map_or_else(|| nothing_failed(summary), |(_, how)| format!("{upper} {how}"));
            let is_open = summary.failed_above.as_ref().is_some_and(|above| above.is_far_above(qualified));
            let open = if is_open { ", between them not resolved" } else { "" };
            format!("{held} ({}x) for {time} {lost}; {failed}{open}", digits(headroom))
        }
        _ => summary.knee_bytes_per_second.map_or_else(
            || "no rate".to_owned(),
            |knee| format!("no rate passed a whole soak; {} in short trials", rate(knee)),
        ),
    }
}

/// The lowest rate that failed above the one that held, bytes per second, and how.
fn failed(summary: &ResultSummary) -> Option<(f64, String)> {
    let above = summary.failed_above.as_ref().map(|above| (above.bytes_per_second, above.outcome()));
    // Results of earlier versions.
    let upper = || summary.knee_interval?.upper_bytes_per_second.map(|upper| (upper, "failed".to_owned()));
    above.or_else(upper)
}

/// What is known above the rate that held, if the machine failed at no higher one.
fn nothing_failed(summary: &ResultSummary) -> String {
    let held = summary.qualified_bytes_per_second.unwrap_or(0.0);
    let is_above = |trial: &TrialResult| trial.asked_bytes_per_second > held && !trial.is_unthrottled();
    // The source may have failed.
    let has_failed = summary.trials.iter().any(|trial| !trial.passed && is_above(trial));
    let text = if has_failed { "the machine's limit was not found" } else { "no higher rate failed" };
    text.to_owned()
}

fn limit(summary: &ResultSummary) -> String {
    let Some(found) = &summary.bottleneck else { return "not determined".to_owned() };
    let next = found.next.as_ref().map(|next| {
        let at = next.bytes_per_second.map(|value| format!(" at {}", rate(value)));
        format!("; next: {}{}", shorten(&next.stage, STAGE_CHARACTERS_MAX), at.unwrap_or_default())
    });
    if found.stage == Bottleneck::NOT_RESOLVED {
        return format!("{}; {}", found.stage, found.evidence);
    }
    let stage = shorten(&found.stage, STAGE_CHARACTERS_MAX);
    format!("{stage}{}{}", doubt(found), next.unwrap_or_default())
}
