//! Verdict at the end of a terminal page in three lines: the requirement, what held and what failed, the
//! bottleneck. A fourth is for volumes that do not hold a run.
//!
//! Invariant: the brief page omits only figures, never what was not tested or why a verdict is not FIT.

use keepup_results::{Bottleneck, ResultSummary, Verdict};

use super::{headline, proof};
use crate::format::{bytes, digits, plural, rate, rate_like, seconds, shorten};
use crate::page::{Block, Fact, Headline, Item, VerdictLast};

/// Two stages and a rate fit on a line of 80 columns.
const STAGE_CHARACTERS_MAX: usize = 25;

/// Short terminal page: reasons, what was not tested, verdict.
pub(crate) fn brief(summary: &ResultSummary) -> VerdictLast {
    let mut blocks = Vec::new();
    // The reasons of FIT repeat the verdict, except for a load that missed its rate.
    if summary.verdict != Verdict::Fit || summary.loads.iter().any(|load| load.shown.fell_short) {
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
            format!("{} ({}x) for {time} {lost}; {}", rate(qualified), digits(headroom), failed(summary))
        }
        _ => summary.knee_bytes_per_second.map_or_else(
            || "no rate".to_owned(),
            |knee| format!("no rate passed a whole soak; {} in short trials", rate(knee)),
        ),
    }
}

/// The lowest rate that failed above the one that held.
fn failed(summary: &ResultSummary) -> String {
    let rate = |failed: f64| rate_like(failed, summary.qualified_bytes_per_second.unwrap_or(failed));
    let upper = || summary.knee_interval?.upper_bytes_per_second;
    match (&summary.failed_above, upper()) {
        (Some(above), _) => format!("{} {}", rate(above.bytes_per_second), above.outcome()),
        // Results of earlier versions.
        (None, Some(upper)) => format!("{} failed", rate(upper)),
        (None, None) => "no higher rate failed".to_owned(),
    }
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
    // Results of earlier versions have no counter-trials.
    let is_doubtful = !found.counter_trials.is_empty() && !found.is_confirmed();
    let doubt = if is_doubtful { " (not confirmed)" } else { "" };
    format!("{}{doubt}{}", shorten(&found.stage, STAGE_CHARACTERS_MAX), next.unwrap_or_default())
}
