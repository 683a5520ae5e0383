//! Page of the predictions for five papers: published and predicted figures.

use keepup_results::{ContradictedClaim, OpenCell, Origin, PredictedCell, PredictedPapers, Skill};

use super::common::PageContent;
use crate::format::{digits, percent, plural};
use crate::page::{Block, Cell, Item, Table, Tone, left, right};

pub(super) fn content(papers: &PredictedPapers) -> PageContent {
    let mut blocks = Vec::new();
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
    let judged = papers.cells.iter().filter(|cell| cell.origin != Origin::Fitted);
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
    for skill in papers.skill.iter().filter(|skill| skill.of.starts_with("disks")) {
        let Some(over) = skill.over_unchanged else { continue };
        let than = if over > 0.0 { "better" } else { "worse" };
        sentences.push(format!(
            "{}: {than} than \"nothing changes\", with {}x its squared error.",
            skill.of,
            digits(1.0 - over)
        ));
    }
    let missed = papers.cells.iter().filter(|cell| cell.origin != Origin::Fitted && !is_met(cell));
    let missed: Vec<String> = missed.map(|cell| format!("{} {}", cell.id, cell.quantity)).collect();
    if !missed.is_empty() {
        sentences.push(format!("Missed targets (see the tables for reasons): {}.", missed.join(", ")));
    }
    sentences
}

fn cautions(papers: &PredictedPapers) -> Vec<String> {
    let fitted = papers.cells.iter().filter(|cell| cell.origin == Origin::Fitted).count() as u64;
    vec![
        format!(
            "{} were fitted to {}. The fitted figures are not counted and appear only in the JSON output.",
            plural(u64::from(papers.fitted_constants), "constant"),
            plural(fitted, "figure")
        ),
        format!("{} cannot be predicted.", plural(papers.open.len() as u64, "row")),
    ]
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
            percent(100.0 * one.worst_error).into(),
            over.into(),
        ]
    };
    let columns = vec![
        left("figures"),
        right("count"),
        right("within target"),
        right("median error"),
        right("worst"),
        right("skill over \"nothing changes\""),
    ];
    let table = Item::Table(Table { columns, rows: all.iter().map(row).collect() });
    let how = "Skill = 1 - squared error of the model / squared error of \"nothing changes\". 1 is perfect; \
               below 0 is worse than assuming that a load changes nothing.";
    Block::new("Accuracy", vec![table, Item::Text(how.to_owned())])
}

fn cells(papers: &PredictedPapers, paper: &str) -> Block {
    let mut reasons: Vec<&str> = Vec::new();
    let shown = papers.cells.iter().filter(|cell| cell.paper == paper && cell.origin != Origin::Fitted);
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
        right("unchanged"),
        left(""),
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
    let (origin, tone) = match cell.origin {
        _ if !is_met(cell) => ("MISSED", Tone::Bad),
        Origin::Derived => ("derived", Tone::Good),
        Origin::Predicted | Origin::Fitted => ("predicted", Tone::Good),
    };
    let words = [cell.condition.as_str(), cell.quantity.as_str()];
    let what: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    vec![
        cell.id.as_str().into(),
        format!("{}{unit}", digits(cell.published)).into(),
        format!("{}{}", digits(cell.predicted), interval.unwrap_or_default()).into(),
        format!("{:+.1} %", 100.0 * cell.error).into(),
        cell.unchanged.map_or_else(String::new, digits).into(),
        Cell::toned(origin, tone),
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
