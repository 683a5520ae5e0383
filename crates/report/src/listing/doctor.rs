//! Findings on the settings of a host, by `doctor`.

use keepup_results::{DoctorCounts, DoctorFinding, DoctorSeverity, DoctorSummary};

use super::render;
use crate::Style;
use crate::page::{Block, Fact, Item};

/// Reports the assumptions, every setting that needs attention, and the number of the others.
#[must_use]
pub fn doctor(summary: &DoctorSummary, style: Style) -> String {
    let of = |severity| summary.findings.iter().filter(move |finding| finding.severity == severity);
    let mut blocks = vec![Block::new("", summary.notes.iter().cloned().map(Item::Text).collect())];
    for (severity, title) in
        [(DoctorSeverity::Harmful, "HARMFUL"), (DoctorSeverity::WorthALook, "WORTH A LOOK")]
    {
        blocks.extend(
            of(severity).map(|found| {
                Block::new(format!("{title}  {}", found.setting), vec![Item::Facts(facts(found))])
            }),
        );
    }
    let DoctorCounts { harmful, worth_a_look, not_judged, fine } = summary.counts;
    let counts = format!(
        "{harmful} harmful, {worth_a_look} worth a look, {not_judged} not judged, {fine} fine; \
         nothing was changed"
    );
    let mut facts: Vec<Fact> = of(DoctorSeverity::NotJudged)
        .map(|finding| Fact::new("not judged", format!("{}: {}", finding.setting, finding.why)))
        .collect();
    let value = |finding: &DoctorFinding| finding.value.clone().unwrap_or_default();
    let fine: Vec<String> =
        of(DoctorSeverity::Fine).map(|finding| format!("{} {}", finding.setting, value(finding))).collect();
    if !fine.is_empty() {
        facts.push(Fact::new("fine", fine.join("; ")));
    }
    blocks.push(Block::new(counts, vec![Item::Facts(facts)]));
    render(blocks, style)
}

/// Value, wanted value, reason, source and remedy of a finding.
pub(super) fn facts(finding: &DoctorFinding) -> Vec<Fact> {
    let mut facts = Vec::new();
    facts.extend(finding.value.as_ref().map(|value| Fact::new("is", value)));
    facts.extend(finding.wanted.as_ref().map(|wanted| Fact::new("wanted", wanted)));
    facts.push(Fact::new("why", &finding.why));
    facts.push(Fact::new("source", &finding.source));
    facts.extend(finding.command.as_ref().map(|command| Fact::path("command", command)));
    facts
}
