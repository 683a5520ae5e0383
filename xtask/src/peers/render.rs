//! A campaign as Markdown: the machine, a table for each group, and the claims beside their goals.

use super::claims::{Claim, Goal, Verdict};
use super::contestant::Figure;
use super::groups::Group;
use super::machine::Row;
use super::runner::Outcome;
use super::summary::{Spread, spread};

/// How the figures came about; what a reader must know to judge them.
const METHOD: &str = "\
- Contestants of a group run in turns, each in an empty directory that is removed afterwards. Figures are
  medians with 95 % bootstrap intervals over the runs; ratios are taken round by round.
- Rate: bytes that arrived, over the time from the start of the sender's process until everything is durable
  (or dropped, where nothing is written) and the receiver has ended; in short runs starting and ending weigh.
  An fsync of the file of iperf3 and mbuffer is within that time. iperf3's server drops what is still on its
  way when its client says that it is done; only what arrived counts. For fio it is the runtime of its job,
  the last fsync included, and nothing else.
- Accepted: by the sender's own clock; it does not wait for the disk, and buffers make it look fast.
- CPU: of the receiving process from start to end, by the kernel's account (wait4), io_uring's workers
  included; not of the kernel's own threads, which write the page cache out for those who use it. Running:
  without what was used before the sender started (nothing is taken off for fio).
- The recorder checksums every byte and keeps an account of every event; the peers do neither.";

/// A group that has run.
pub(super) struct Section {
    /// Which group it was.
    pub(super) group: Group,
    /// What its contestants gave.
    pub(super) outcomes: Vec<Outcome>,
    /// What the claims came to; none about those who did not take part.
    pub(super) verdicts: Vec<(Claim, Verdict)>,
    /// What else there is to say.
    pub(super) notes: Vec<String>,
}

/// The whole document. `bytes` and `rounds` are those of each contestant.
pub(super) fn document(machine: &[Row], sections: &[Section], bytes: u64, rounds: usize) -> String {
    let plural = if rounds == 1 { "" } else { "s" };
    let mut text = "# The recorder beside its peers\n\n".to_owned();
    text += &format!("{:.2} GB and {rounds} round{plural} each, over the loopback.\n", bytes as f64 / 1e9);
    text += "\n## Machine\n\n";
    let rows: Vec<Vec<String>> =
        machine.iter().map(|(name, value)| vec![name.clone(), value.clone()]).collect();
    text += &table(&["what".to_owned(), "this machine".to_owned()], &rows);
    for section in sections {
        text += &group(section);
    }
    text += &claims(sections);
    text + "\n## How it was measured\n\n" + METHOD + "\n"
}

fn group(section: &Section) -> String {
    let group = &section.group;
    let mut text = format!("\n## {}\n\n", group.title);
    for outcome in &section.outcomes {
        text += &format!("- {}: {}\n", outcome.name, outcome.command);
    }
    text += "\n";
    let mut headings = vec!["contestant".to_owned()];
    headings.extend(group.figures.iter().map(|figure| heading(*figure, group.rate)));
    headings.push("runs".to_owned());
    let rows: Vec<Vec<String>> =
        section.outcomes.iter().map(|outcome| row(outcome, &group.figures)).collect();
    text += &table(&headings, &rows);
    let failures = section
        .outcomes
        .iter()
        .flat_map(|outcome| outcome.failures.iter().map(|why| format!("{}, {why}", outcome.name)));
    let notes: Vec<String> = section.notes.iter().cloned().chain(failures).collect();
    if !notes.is_empty() {
        text += "\n";
    }
    notes.iter().fold(text, |text, note| text + "- " + &note.replace('\n', " ") + "\n")
}

fn row(outcome: &Outcome, figures: &[Figure]) -> Vec<String> {
    let mut cells = vec![outcome.name.clone()];
    if let Some(missing) = &outcome.missing {
        cells.push(missing.clone());
        cells.resize(figures.len() + 1, "-".to_owned());
        cells.push("0".to_owned());
        return cells;
    }
    for figure in figures {
        let values: Vec<f64> = outcome.figures(*figure).into_iter().flatten().collect();
        cells.push(spread(&values).map_or("-".to_owned(), |spread| shown(&spread, decimals(*figure))));
    }
    let succeeded = outcome.runs.iter().flatten().count();
    let failed = outcome.runs.len() - succeeded;
    cells.push(if failed == 0 { succeeded.to_string() } else { format!("{succeeded}, {failed} failed") });
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
    let what = match claim.to {
        Some(to) => format!("{}: {} to {to}", claim.what, claim.of),
        None => format!("{}: {}", claim.what, claim.of),
    };
    let decimals = if claim.to.is_some() { 2 } else { decimals(claim.figure) };
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
        None => "-".to_owned(),
    };
    let pairs = verdict.spread.map_or(0, |spread| spread.count).to_string();
    vec![what, measured, pairs, goal, met.to_owned()]
}

fn heading(figure: Figure, rate: &str) -> String {
    match figure {
        Figure::Rate => rate,
        Figure::Accepted => "accepted MB/s",
        Figure::Events => "10^6 events/s",
        Figure::Cpu => "CPU s/GB",
        Figure::CpuRunning => "CPU s/GB, running",
        Figure::SenderCpu => "sender's CPU s/GB",
        Figure::Memory => "peak memory MB",
    }
    .to_owned()
}

fn decimals(figure: Figure) -> usize {
    match figure {
        Figure::Rate | Figure::Accepted | Figure::Memory => 0,
        Figure::Events => 2,
        Figure::Cpu | Figure::CpuRunning | Figure::SenderCpu => 3,
    }
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
