//! The end of the terminal's page: the verdict in three lines, what was asked, what held and what limits it.
//!
//! Invariant: the brief page says what was not tested and why a verdict is not FIT; it omits figures only.

use keepup_results::{ResultSummary, Verdict};

use super::{headline, proof};
use crate::format::{digits, plural, rate, seconds, shorten};
use crate::page::{Block, Closed, Fact, Headline, Item};

/// Two stages and a rate fit on a line of 80 columns.
const STAGE_CHARACTERS_MAX: usize = 25;

/// Reasons, what was not tested, and the verdict.
pub(crate) fn brief(summary: &ResultSummary) -> Closed {
    let mut blocks = Vec::new();
    // Those of FIT repeat the lines of the verdict, but for a load that did less than was asked.
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
    Closed { title: headline(summary).title, blocks, verdict: verdict(summary) }
}

/// All blocks of a page, and the verdict below them.
pub(crate) fn full(summary: &ResultSummary, blocks: Vec<Block>) -> Closed {
    let blocks = reasons(summary).into_iter().chain(blocks).collect();
    Closed { title: headline(summary).title, blocks, verdict: verdict(summary) }
}

fn reasons(summary: &ResultSummary) -> Option<Block> {
    let reasons = super::reasons(summary);
    (!reasons.is_empty()).then(|| Block::new("Reasons", vec![Item::List(reasons)]))
}

fn verdict(summary: &ResultSummary) -> Headline {
    let lines = vec![
        Fact::new("asked", asked(summary)),
        Fact::new("held", held(summary)),
        Fact::new("limit", limit(summary)),
    ];
    Headline { title: String::new(), items: vec![Item::Facts(lines)], ..headline(summary) }
}

fn asked(summary: &ResultSummary) -> String {
    let run = summary.required_run_seconds.map(|time| format!(" for {}", seconds(time)));
    let specs: Vec<&str> = summary.loads.iter().map(|load| load.shown.spec.as_str()).collect();
    let loads = match specs.is_empty() {
        true => String::new(),
        false => format!(", beside {}", shorten(&specs.join(" and "), STAGE_CHARACTERS_MAX)),
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
                0 => "no event lost".to_owned(),
                lost => format!("{} lost", plural(lost, "event")),
            };
            let time = seconds(proof::soak_seconds(soak));
            format!("{} for {time}, {lost}: {}x the required rate", rate(qualified), digits(headroom))
        }
        _ => summary.knee_bytes_per_second.map_or_else(
            || "no rate".to_owned(),
            |knee| format!("no rate for a whole soak; {} in short trials", rate(knee)),
        ),
    }
}

fn limit(summary: &ResultSummary) -> String {
    let Some(found) = &summary.bottleneck else { return "not determined".to_owned() };
    let next = found.next.as_ref().map(|next| {
        let at = next.bytes_per_second.map(|value| format!(" at {}", rate(value)));
        format!("; next: {}{}", shorten(&next.stage, STAGE_CHARACTERS_MAX), at.unwrap_or_default())
    });
    format!("{}{}", shorten(&found.stage, STAGE_CHARACTERS_MAX), next.unwrap_or_default())
}
