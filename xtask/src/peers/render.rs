//! Markdown document of a campaign: machine, tables of the groups, and claims with their goals.

use super::claims::{Claim, Goal, Verdict};
use super::contestant::Figure;
use super::group::Group;
use super::machine::Row;
use super::runner::Outcome;
use super::summary::{Spread, spread};

/// Method of all campaigns.
const METHOD: &str = "\
- Contestants of a group run alternately, each in an empty directory that is removed afterwards. Figures are
  medians with 95 % bootstrap intervals over the runs; ratios are taken round by round.";

/// Header of the document.
pub(super) struct Head {
    /// Title.
    pub(super) title: &'static str,
    /// Extent of the campaign.
    pub(super) what: String,
    /// Method, as a list.
    pub(super) method: &'static str,
}

/// Results of a group.
pub(super) struct Section {
    /// Group.
    pub(super) group: Group,
    /// Outcomes of its contestants.
    pub(super) outcomes: Vec<Outcome>,
    /// Verdicts on the claims about contestants that took part.
    pub(super) verdicts: Vec<(Claim, Verdict)>,
}

/// Renders the document.
pub(super) fn document(head: &Head, machine: &[Row], sections: &[Section]) -> String {
    let mut text = format!("# {}\n\n{}.\n", head.title, head.what);
    text += "\n## Machine\n\n";
    let rows: Vec<Vec<String>> =
        machine.iter().map(|(name, value)| vec![name.clone(), value.clone()]).collect();
    text += &table(&["what".to_owned(), "this machine".to_owned()], &rows);
    for section in sections {
        text += &group(section);
    }
    text += &claims(sections);
    text + "\n## How it was measured\n\n" + METHOD + "\n" + head.method + "\n"
}

fn group(section: &Section) -> String {
    let group = &section.group;
    let mut text = format!("\n## {}\n\n", group.title);
    if let Some(why) = &group.skipped {
        return text + "SKIPPED: " + &why.replace('\n', " ") + "\n";
    }
    for outcome in &section.outcomes {
        text += &format!("- {}: {}\n", outcome.name, outcome.command);
    }
    text += "\n";
    let has_phases = group.phases.iter().any(|phase| !phase.is_empty());
    let mut headings: Vec<String> = has_phases.then(|| "phase".to_owned()).into_iter().collect();
    headings.push("contestant".to_owned());
    headings.extend(group.figures.iter().map(|figure| figure.heading(group.rate).to_owned()));
    headings.push("runs".to_owned());
    let mut rows = Vec::new();
    for phase in &group.phases {
        let names = has_phases.then(|| phase.clone());
        let row = |outcome| names.iter().cloned().chain(row(outcome, phase, &group.figures)).collect();
        rows.extend(section.outcomes.iter().map(row).collect::<Vec<Vec<String>>>());
    }
    text += &table(&headings, &rows);
    let failures = section
        .outcomes
        .iter()
        .flat_map(|outcome| outcome.failures.iter().map(|why| format!("{}, {why}", outcome.name)));
    let notes: Vec<String> = group.notes.iter().cloned().chain(failures).collect();
    if !notes.is_empty() {
        text += "\n";
    }
    notes.iter().fold(text, |text, note| text + "- " + &note.replace('\n', " ") + "\n")
}

fn row(outcome: &Outcome, phase: &str, figures: &[Figure]) -> Vec<String> {
    let mut cells = vec![outcome.name.clone()];
    if let Some(missing) = &outcome.missing {
        cells.push(missing.clone());
        cells.resize(figures.len() + 1, "-".to_owned());
        cells.push("0".to_owned());
        return cells;
    }
    for figure in figures {
        let values: Vec<f64> = outcome.figures(phase, *figure).into_iter().flatten().collect();
        cells.push(spread(&values).map_or("-".to_owned(), |spread| shown(&spread, figure.decimals())));
    }
    let (gave, all) = (outcome.phase(phase).flatten().count(), outcome.runs.len());
    cells.push(if gave == all { all.to_string() } else { format!("{gave} of {all}") });
    cells
}

fn claims(sections: &[Section]) -> String {
    let rows: Vec<Vec<String>> = sections
        .iter()
        .flat_map(|section| &section.verdicts)
        .map(|(claim, verdict)| judged(claim, verdict))
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let headings = ["what", "measured", "pairs", "goal", ""].map(str::to_owned);
    "\n## Ratios and goals\n\n".to_owned() + &table(&headings, &rows)
}

fn judged(claim: &Claim, verdict: &Verdict) -> Vec<String> {
    let phase = if claim.phase.is_empty() { String::new() } else { format!(", {}", claim.phase) };
    let whose = claim.to.map_or(claim.of.to_owned(), |to| format!("{} to {to}", claim.of));
    let what = format!("{}{phase}: {whose}", claim.what);
    let decimals = if claim.to.is_some() { 2 } else { claim.figure.decimals() };
    let measured = match (&verdict.spread, &verdict.why) {
        (Some(spread), _) => shown(spread, decimals),
        (None, why) => why.clone().unwrap_or_default(),
    };
    let met = match verdict.met {
        Some(true) => "met",
        Some(false) => "not met",
        None => "-",
    };
    let goal = match claim.goal {
        Some(Goal::AtLeast(goal)) => format!(">= {goal:.2}"),
        Some(Goal::AtMost(goal)) => format!("<= {goal:.2}"),
        Some(Goal::Below(goal)) => format!("< {goal:.2}"),
        Some(Goal::Within(goal)) => format!("{:.2} to {:.2}", 1.0 - goal, 1.0 + goal),
        None => "-".to_owned(),
    };
    let pairs = verdict.spread.map_or(0, |spread| spread.count).to_string();
    vec![what, measured, pairs, goal, met.to_owned()]
}

fn shown(spread: &Spread, decimals: usize) -> String {
    let median = format!("{:.decimals$}", spread.median);
    match spread.interval {
        Some((lower, upper)) => format!("{median} [{lower:.decimals$}, {upper:.decimals$}]"),
        None => median,
    }
}

fn table(headings: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule = format!("|{}\n", "---|".repeat(headings.len()));
    rows.iter().fold(line(headings) + &rule, |text, row| text + &line(row))
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
