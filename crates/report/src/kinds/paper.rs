//! Page of a reproduced paper: its questions with answers, its tables and figures with this machine added,
//! the findings, and its claims recomputed from its own numbers.

use keepup_results::{
    CampaignSummary, PaperAnswer, PaperCell, PaperClaim, PaperCurve, PaperExperiment, PaperPage, PaperRow,
    PaperTable, Stored,
};

use super::common::{self, PageContent, charts};
use crate::chart::{Axis, Chart, Dash, Mark, Series, Symbol, colour, pair, plot};
use crate::format::{digits, plural};
use crate::page::{Block, Document, Fact, Item};
use crate::table::{Cell, Table, Tone, left, right};

/// Ratio of the values of a curve from which its axis is logarithmic: a linear one leaves the smallest a few
/// pixels.
const WIDE: f64 = 50.0;
/// Height of a chart, pixels.
const HEIGHT: u32 = 260;

pub(super) fn document(stored: &Stored, summary: &CampaignSummary, paper: &PaperPage) -> Document {
    let mut blocks = Vec::new();
    if !paper.answers.is_empty() {
        blocks.push(answers(paper));
    }
    blocks.extend(paper.tables.iter().map(table));
    for curve in &paper.curves {
        blocks.extend(charts(&format!("{}: {}", capital(&curve.stands), curve.title), drawn(curve)));
    }
    if !paper.claims.is_empty() {
        blocks.push(claims(&paper.claims));
    }
    if !paper.experiments.is_empty() {
        blocks.push(experiments(paper));
    }
    blocks.push(cells(summary));
    let is_whole = summary.totals.failed == 0 && summary.totals.left == 0;
    let tone = if is_whole { Tone::Plain } else { Tone::Doubtful };
    let mut cautions: Vec<String> = paper.limits.iter().map(|limit| capital(limit)).collect();
    if paper.scale < 1.0 {
        cautions
            .insert(0, format!("The amounts of data are scaled to {} of the paper's.", share(paper.scale)));
    }
    let content = PageContent {
        answer: Some((paper.title.clone(), tone)),
        sentences: paper.findings.clone(),
        cautions,
        blocks,
        omits_figures: true,
        ..PageContent::default()
    };
    let mut document = common::document(stored, content);
    let volumes: Vec<&str> = summary
        .axes
        .iter()
        .filter(|axis| axis.name == "volume")
        .flat_map(|axis| &axis.labels)
        .map(String::as_str)
        .collect();
    let mut facts = vec![
        Fact::new("machine", paper.machine.as_str()),
        Fact::new(
            "order",
            format!(
                "{}, {} of {}",
                summary.order,
                plural(u64::from(summary.repetitions), "run"),
                plural(u64::from(summary.totals.cells), "cell")
            ),
        ),
    ];
    if !volumes.is_empty() {
        facts.push(Fact::new("volumes", volumes.join(", ")));
    }
    document.glance[0] = Block::new("Method", vec![Item::Facts(facts)]);
    document.page.headline.title =
        format!("{}. Reproduced on {}, {}", paper.source, paper.machine, summary.created);
    document
}

fn share(scale: f64) -> String {
    format!("{} %", digits(100.0 * scale))
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn answers(paper: &PaperPage) -> Block {
    let here = if paper.fleet.is_some() { "this fleet" } else { "this machine" };
    let items = |answer: &PaperAnswer| {
        let facts =
            vec![Fact::new("the paper", answer.published.as_str()), Fact::new(here, answer.here.as_str())];
        [Item::Text(answer.question.clone()), Item::Facts(facts)]
    };
    Block::new("Questions of the paper", paper.answers.iter().flat_map(items).collect())
}

fn table(table: &PaperTable) -> Block {
    let mut columns = vec![left(table.head.as_str())];
    columns.extend(table.columns.iter().map(|column| match column.unit.is_empty() {
        true => right(column.title.as_str()),
        false => right(format!("{}, {}", column.title, column.unit)),
    }));
    let mut notes: Vec<String> = Vec::new();
    let mut row = |row: &PaperRow| -> Vec<Cell> {
        let mark = row.note.as_ref().map_or_else(String::new, |note| {
            let known = notes.iter().position(|known| known == note);
            let number = known.unwrap_or_else(|| {
                notes.push(note.clone());
                notes.len() - 1
            });
            format!(" [{}]", number + 1)
        });
        let name =
            if row.is_here { format!("▶ {}{mark}", row.name) } else { format!("{}{mark}", row.name) };
        let cells = row.cells.iter().map(|cell| Cell::from(cell_text(cell)));
        std::iter::once(Cell::from(name)).chain(cells).collect()
    };
    let rows = table.rows.iter().map(&mut row).collect();
    let mut items = vec![Item::Table(Table { columns, rows })];
    if !notes.is_empty() {
        let numbered = notes.iter().enumerate().map(|(n, note)| format!("[{}] {note}", n + 1));
        items.push(Item::List(numbered.collect()));
    }
    Block::new(format!("{}: {}", capital(&table.stands), table.title), items)
}

/// Median of a cell, with minimum and maximum if they differ.
fn cell_text(cell: &PaperCell) -> String {
    let number = cell.value.map(digits);
    let spread = match (cell.lowest, cell.highest) {
        (Some(lowest), Some(highest)) if digits(lowest) != digits(highest) => {
            format!(" ({} to {})", digits(lowest), digits(highest))
        }
        _ => String::new(),
    };
    match (number, &cell.note) {
        (Some(number), Some(note)) => format!("{note} {number}{spread}"),
        (Some(number), None) => format!("{number}{spread}"),
        (None, Some(note)) => note.clone(),
        (None, None) => "-".to_owned(),
    }
}

fn drawn(curve: &PaperCurve) -> Option<Chart> {
    let series = (0..).zip(&curve.series).map(|(number, series)| {
        let points: Vec<_> = series.points.iter().map(|(x, y)| pair(*x, Some(*y))).collect();
        let is_dense = points.len() > 60;
        // Published curves are dashed, curves of this machine solid.
        let dash = if series.is_here { Dash::Solid } else { Dash::Dashed };
        let mark = Mark::Line(dash, (!is_dense).then(|| Symbol::of(number)));
        Series::new(series.name.clone(), colour(number), mark, points)
    });
    let series: Vec<Series> = series.collect();
    let rows = curve.series.iter().flat_map(|series| {
        series.points.iter().map(move |(x, y)| -> Vec<Cell> {
            vec![series.name.as_str().into(), digits(*x).into(), digits(*y).into()]
        })
    });
    let name = |column: &keepup_results::PaperColumn| format!("{}, {}", column.title, column.unit);
    let across = if curve.is_log_x { Axis::log(name(&curve.x)) } else { Axis::linear(name(&curve.x)) };
    let up = match curve.is_log_x && is_wide(curve) {
        true => Axis::log(name(&curve.y)),
        false => Axis::linear(name(&curve.y)),
    };
    (!series.is_empty()).then(|| Chart {
        title: format!("{} against {}", name(&curve.y), name(&curve.x)),
        note: curve.note.clone().unwrap_or_default(),
        table: Table {
            columns: vec![left("curve"), right(name(&curve.x)), right(name(&curve.y))],
            rows: rows.collect(),
        },
        ..plot(&across, &up, &series, HEIGHT)
    })
}

/// Whether the values of a curve over a logarithmic axis differ so much that a linear one would hide the
/// small ones.
fn is_wide(curve: &PaperCurve) -> bool {
    let values = || curve.series.iter().flat_map(|series| series.points.iter().map(|point| point.1));
    let ends = values().reduce(f64::min).zip(values().reduce(f64::max));
    ends.is_some_and(|(least, most)| least > 0.0 && most / least > WIDE)
}

/// Claims of the paper next to what follows from its numbers.
fn claims(claims: &[PaperClaim]) -> Block {
    let row = |claim: &PaperClaim| -> Vec<Cell> {
        let mark = match (claim.is_contradicted, claim.is_confirmed) {
            (true, _) => Cell::toned("contradicted", Tone::Bad),
            (_, true) => Cell::toned("confirmed", Tone::Plain),
            (false, false) => Cell::toned("-", Tone::Plain),
        };
        vec![claim.says.as_str().into(), claim.stands.as_str().into(), claim.follows.as_str().into(), mark]
    };
    let columns = vec![left("the paper says"), left("where"), left("its numbers give"), left("")];
    let table = Table { columns, rows: claims.iter().map(row).collect() };
    Block::new("Claims, recomputed", vec![Item::Table(table)])
}

/// Experiments of the paper and what repeats them.
fn experiments(paper: &PaperPage) -> Block {
    let row = |experiment: &PaperExperiment| -> Vec<Cell> {
        let cells: Vec<String> = experiment.cells.iter().map(u32::to_string).collect();
        let tone = match experiment.status.as_str() {
            "same" | "nearest" | "model only" => Tone::Plain,
            _ => Tone::Doubtful,
        };
        vec![
            format!("{}, {}", experiment.id, experiment.stands).into(),
            experiment.measures.as_str().into(),
            Cell::toned(experiment.status.as_str(), tone),
            if cells.is_empty() { "-".into() } else { cells.join(", ").into() },
            experiment.difference.as_deref().unwrap_or("-").into(),
        ]
    };
    let columns = vec![left("place"), left("experiment"), left("status"), left("cells"), left("difference")];
    let table = Table { columns, rows: paper.experiments.iter().map(row).collect() };
    Block::new("Experiments of the paper", vec![Item::Table(table)])
}

/// Cells of the campaign with their commands.
fn cells(summary: &CampaignSummary) -> Block {
    let rows = summary.cells.iter().map(|cell| -> Vec<Cell> {
        let failed: Vec<&str> = cell.runs.iter().filter_map(|run| run.why.as_deref()).collect();
        let state = match (failed.first(), &cell.skipped) {
            (Some(why), _) => Cell::toned(*why, Tone::Bad),
            (None, Some(why)) => Cell::toned(format!("skipped: {why}"), Tone::Doubtful),
            (None, None) => Cell::from(format!("{} runs", cell.runs.len())),
        };
        vec![
            cell.number.to_string().into(),
            cell.name(&summary.axes).into(),
            cell.command.as_str().into(),
            state,
        ]
    });
    let columns = vec![right("cell"), left("settings"), left("command"), left("")];
    let table = Table { columns, rows: rows.collect() };
    Block::new("Runs", vec![Item::Table(table)])
}
