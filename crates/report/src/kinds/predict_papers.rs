//! Page of the predictions for five papers: published and predicted figures.

use keepup_results::{
    ContradictedClaim, OpenCell, Origin, PredictedCell, PredictedPapers, Skill, SkillWithout,
};

use super::common::PageContent;
use crate::format::{digits, percent, plural};
use crate::page::{Block, Item};
use crate::table::{Cell, Table, Tone, left, right};

pub(super) fn content(papers: &PredictedPapers) -> PageContent {
    let mut blocks: Vec<Block> = Vec::new();
    let beside = papers.skill.iter().filter(|skill| skill.of.starts_with("disks"));
    blocks.extend(beside.filter_map(left_out));
    let mut names: Vec<&str> = Vec::new();
    for cell in &papers.cells {
        if !names.contains(&cell.paper.as_str()) {
            names.push(&cell.paper);
        }
    }
    blocks.extend(names.iter().map(|name| cells(papers, name)));
    if !papers.open.is_empty() {
        blocks.push(open(&papers.open));
    }
    if !papers.contradicted.is_empty() {
        blocks.push(contradicted(&papers.contradicted));
    }
    PageContent {
        answer: Some(answer(papers)),
        sentences: sentences(papers),
        cautions: cautions(papers),
        blocks,
        ..PageContent::default()
    }
}

fn is_met(cell: &PredictedCell) -> bool {
    cell.error.abs() <= cell.target
}

fn answer(papers: &PredictedPapers) -> (String, Tone) {
    let judged = papers.cells.iter().filter(|cell| cell.origin.is_test());
    let (met, all) = judged.fold((0, 0), |(met, all), cell| (met + u32::from(is_met(cell)), all + 1));
    let tone = if met == all { Tone::Good } else { Tone::Doubtful };
    (format!("{met} OF {all} CELLS MET"), tone)
}

fn sentences(papers: &PredictedPapers) -> Vec<String> {
    let of = |origin| papers.cells.iter().filter(|cell| cell.origin == origin).count() as u64;
    let mut sentences = vec![format!(
        "{} follow from protocols and counts; {} are predicted with constants fitted to other figures.",
        plural(of(Origin::Derived), "figure"),
        of(Origin::Predicted),
    )];
    sentences.extend(papers.skill.iter().filter(|skill| skill.of.starts_with("disks")).filter_map(over_null));
    let missed = papers.cells.iter().filter(|cell| cell.origin.is_test() && !is_met(cell));
    let missed: Vec<String> = missed.map(|cell| format!("{} {}", cell.id, cell.quantity)).collect();
    if !missed.is_empty() {
        sentences.push(format!("Missed targets (see the tables for reasons): {}.", missed.join(", ")));
    }
    sentences
}

/// Skill over "nothing changes", and the machine without which it is lowest.
fn over_null(skill: &Skill) -> Option<String> {
    let over = skill.over_unchanged?;
    let than = if over > 0.0 { "better" } else { "worse" };
    let whole = format!(
        "{}: {than} than \"nothing changes\", with {}x its squared error",
        skill.of,
        digits(1.0 - over)
    );
    let known = skill.left_out.iter().filter_map(|without| Some((without, without.over_unchanged?)));
    let lowest = known.min_by(|(_, a), (_, b)| a.total_cmp(b));
    let lowest = lowest.map(|(without, over)| {
        format!("; without {}, {}x its squared error", machine(without), digits(1.0 - over))
    });
    Some(format!("{whole}{}.", lowest.unwrap_or_default()))
}

fn machine(without: &SkillWithout) -> &str {
    without.machine.strip_prefix("papers/").unwrap_or(&without.machine)
}

fn cautions(papers: &PredictedPapers) -> Vec<String> {
    let of = |origin| papers.cells.iter().filter(|cell| cell.origin == origin).count() as u64;
    vec![
        format!(
            "{} were fitted to {}, and {} on assumptions chosen with the figure in view. These figures prove \
             nothing and are not counted.",
            plural(u64::from(papers.fitted_constants), "constant"),
            plural(of(Origin::Fitted), "figure"),
            match of(Origin::Assumed) {
                1 => "1 rests".to_owned(),
                assumed => format!("{assumed} rest"),
            }
        ),
        format!("{} cannot be predicted.", plural(papers.open.len() as u64, "row")),
    ]
}

/// Formats a relative error, or nothing.
fn error(error: Option<f64>) -> String {
    error.map_or_else(String::new, |error| percent(100.0 * error))
}

/// Accuracy by kind of figure.
pub(super) fn skill(all: &[Skill]) -> Block {
    let row = |one: &Skill| -> Vec<Cell> {
        let tone = if one.met == one.cells { Tone::Good } else { Tone::Doubtful };
        let over = one.over_unchanged.map_or_else(|| "no baseline".to_owned(), digits);
        vec![
            one.of.as_str().into(),
            one.cells.to_string().into(),
            Cell::toned(one.met.to_string(), tone),
            percent(100.0 * one.median_error).into(),
            error(one.median_error_unchanged).into(),
            error(one.median_error_of_others).into(),
            percent(100.0 * one.worst_error).into(),
            over.into(),
        ]
    };
    let columns = vec![
        left("figures"),
        right("count"),
        right("within target"),
        right("median error"),
        right("\"nothing changes\""),
        right("median of others"),
        right("worst"),
        right("skill"),
    ];
    let table = Item::Table(Table { columns, rows: all.iter().map(row).collect() });
    let how = "Skill = 1 - squared error of the model / squared error of \"nothing changes\". 1 is perfect; \
               below 0 is worse than assuming that a load changes nothing.";
    Block::new("Accuracy", vec![table, Item::Text(how.to_owned())])
}

/// Errors of the model and of two simple ones, with each machine left out.
fn left_out(skill: &Skill) -> Option<Block> {
    let row = |one: &SkillWithout| -> Vec<Cell> {
        let over = one.over_unchanged;
        let tone = if over.is_some_and(|over| over <= 0.0) { Tone::Doubtful } else { Tone::Plain };
        vec![
            machine(one).into(),
            one.cells.to_string().into(),
            percent(100.0 * one.median_error).into(),
            percent(100.0 * one.median_error_unchanged).into(),
            error(one.median_error_of_others).into(),
            Cell::toned(over.map_or_else(String::new, digits), tone),
        ]
    };
    let columns = vec![
        left("without"),
        right("figures"),
        right("model"),
        right("nothing changes"),
        right("median of others"),
        right("skill"),
    ];
    let table = Item::Table(Table { columns, rows: skill.left_out.iter().map(row).collect() });
    let how = "Median errors. \"Median of others\": the median change of the same quantity on all other \
               machines. A machine without which the skill is gone is the only evidence for it.";
    let title = format!("One machine left out: {}", skill.of);
    (!skill.left_out.is_empty()).then(|| Block::new(title, vec![table, Item::Text(how.to_owned())]))
}

fn cells(papers: &PredictedPapers, paper: &str) -> Block {
    let mut reasons: Vec<&str> = Vec::new();
    let shown = papers.cells.iter().filter(|cell| cell.paper == paper);
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for cell in shown {
        let known = reasons.iter().position(|reason| *reason == cell.because);
        let number = known.unwrap_or_else(|| {
            reasons.push(&cell.because);
            reasons.len() - 1
        });
        rows.push(row(cell, number + 1));
    }
    let columns = vec![
        left("id"),
        right("published"),
        right("model"),
        right("error"),
        right("no change"),
        left("origin"),
        left("what"),
    ];
    let reasons = (1..).zip(reasons).map(|(number, reason): (usize, _)| format!("[{number}] {reason}"));
    Block::new(paper, vec![Item::Table(Table { columns, rows }), Item::List(reasons.collect())])
}

/// Row of a figure. `reason` is the number of its explanation.
fn row(cell: &PredictedCell, reason: usize) -> Vec<Cell> {
    let unit = if cell.unit.is_empty() { String::new() } else { format!(" {}", cell.unit) };
    let interval = cell.lower.zip(cell.upper).filter(|(lower, upper)| lower < upper);
    let interval = interval.map(|(lower, upper)| format!(" ({} to {})", digits(lower), digits(upper)));
    let (missed, tone) = match (cell.origin.is_test(), is_met(cell)) {
        (false, _) => ("", Tone::Plain),
        (true, false) => (", MISSED", Tone::Bad),
        (true, true) => ("", Tone::Good),
    };
    let words = [cell.condition.as_str(), cell.quantity.as_str()];
    let what: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    vec![
        cell.id.as_str().into(),
        format!("{}{unit}", digits(cell.published)).into(),
        format!("{}{}", digits(cell.predicted), interval.unwrap_or_default()).into(),
        Cell::toned(format!("{:+.1} %{missed}", 100.0 * cell.error), tone),
        cell.unchanged.map_or_else(String::new, digits).into(),
        cell.origin.name().into(),
        format!("{} [{reason}]", what.join(", ")).into(),
    ]
}

fn open(all: &[OpenCell]) -> Block {
    let row = |one: &OpenCell| -> Vec<Cell> {
        vec![one.paper.as_str().into(), one.id.as_str().into(), format!("{}: {}", one.what, one.why).into()]
    };
    let columns = vec![left("paper"), left("id"), left("figure, and why it cannot be predicted")];
    Block::new("Not predicted", vec![Item::Table(Table { columns, rows: all.iter().map(row).collect() })])
}

fn contradicted(all: &[ContradictedClaim]) -> Block {
    let row = |one: &ContradictedClaim| -> Vec<Cell> {
        vec![
            one.paper.as_str().into(),
            one.place.as_str().into(),
            format!("{}: {}", one.says, one.arithmetic).into(),
        ]
    };
    let columns = vec![left("paper"), left("where"), left("claim, and what its numbers give")];
    Block::new(
        "Contradicted claims",
        vec![Item::Table(Table { columns, rows: all.iter().map(row).collect() })],
    )
}
