//! Published figures of CERN-BE-2009-032 with the cost that fits them, by `register replay-note`.

use keepup_measure::stats::{Cost, Timed, fit_cost, pays_from};
use keepup_model::papers::{Paper, PublishedFigure};

use super::render;
use crate::Style;
use crate::format::fixed;
use crate::page::{Block, Fact, Item};
use crate::table::{Cell, Table, left, right};

/// Systems of the note, as its figures name them.
const L865: &str = "L865 (MEN A20), Linux";
const PPC4: &str = "PPC4 (CES 8065DD), LynxOS";
/// Method of each row with the id and the end of the condition of its figures.
const ROWS: [(&str, &str, &str); 6] = [
    ("single access", "C1", "register-specific function"),
    ("single access", "C2", "DriverGen II"),
    ("single access", "C5", "single accesses"),
    ("single access", "C4", "single accesses"),
    ("block transfer", "C4", "block transfer"),
    ("DMA", "C5", "DMA"),
];

/// One row of the note.
struct Row {
    method: &'static str,
    /// Number of words.
    depth: u64,
    word_bytes: f64,
    /// Time per word.
    each_us: f64,
    /// Rate as printed.
    rate: Option<f64>,
}

/// Reports the note's figures, its cost of single accesses, and the lengths from which DMA pays off.
#[must_use]
pub fn register_note(paper: &Paper, style: Style) -> String {
    let rows: Vec<Row> = ROWS.iter().filter_map(|row| row_of(paper, row)).collect();
    let singles = rows.iter().filter(|row| row.method == "single access");
    let points: Vec<Timed> = singles
        .map(|row| Timed { words: row.depth, seconds: vec![row.each_us / 1e6 * row.depth as f64] })
        .collect();
    let single = fit_cost(&points, None);
    let cells = rows.iter().map(|row| cells(row, single.as_ref())).collect();
    let columns = vec![
        left("method"),
        right("depth"),
        right("us/location"),
        right("fit"),
        right("MB/s"),
        right("MiB/s"),
        right("printed"),
    ];
    let table = Item::Table(Table { columns, rows: cells });
    let mut facts = Vec::new();
    if let Some(single) = &single {
        let (set_up_us, each_us) = (single.set_up * 1e6, single.each * 1e6);
        let fit = format!("T(n) = {set_up_us:.2} us + n x {each_us:.3} us; the note's MB/s are MiB/s");
        facts.push(Fact::new("single access", fit));
    }
    facts.extend(break_even(paper, &rows, single.as_ref()).into_iter().flatten());
    render(vec![Block::new("L865, as published", vec![table, Item::Facts(facts)])], style)
}

fn row_of(paper: &Paper, (method, id, condition): &(&'static str, &str, &str)) -> Option<Row> {
    let time = figure(paper, id, L865, condition, "time per word")?;
    let (count, _) = time.condition.split_once(' ')?;
    let depth = match count.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => 1,
    };
    let words: Vec<&str> = time.condition.split([' ', ',']).collect();
    let bytes = words.windows(2).find(|pair| pair[1] == "bytes").and_then(|pair| pair[0].parse().ok());
    Some(Row {
        method,
        depth,
        word_bytes: bytes?,
        each_us: time.value?,
        rate: figure(paper, id, L865, condition, "rate").and_then(|rate| rate.value),
    })
}

/// Figure by its id, its system, the end of its condition, and its quantity.
fn figure<'a>(
    paper: &'a Paper,
    id: &str,
    system: &str,
    condition: &str,
    quantity: &str,
) -> Option<&'a PublishedFigure> {
    paper.figures.iter().find(|figure| {
        (figure.id.as_str(), figure.system.as_str(), figure.quantity.as_str()) == (id, system, quantity)
            && figure.condition.ends_with(condition)
    })
}

fn cells(row: &Row, single: Option<&Cost>) -> Vec<Cell> {
    let fit = single.filter(|_| row.method == "single access");
    let fit_us = fit.map(|single| single.at(row.depth) / row.depth as f64 * 1e6);
    let bytes_per_us = row.word_bytes / row.each_us;
    vec![
        row.method.into(),
        format!("{:#x}", row.depth).into(),
        fixed(Some(row.each_us), 2).into(),
        fixed(fit_us, 2).into(),
        fixed(Some(bytes_per_us), 2).into(),
        fixed(Some(bytes_per_us * 1e6 / 1_048_576.0), 2).into(),
        fixed(row.rate, 2).into(),
    ]
}

/// Number of words from which DMA is faster, under several assumptions, and the note's number.
fn break_even(paper: &Paper, rows: &[Row], single: Option<&Cost>) -> Option<Vec<Fact>> {
    let set_up = figure(paper, "C7", L865, "DMA", "set-up")?.in_base()?;
    let claimed = figure(paper, "C7", L865, "", "break-even")?.value?;
    let ppc_us = figure(paper, "C3", PPC4, "", "time per word")?.value?;
    let dma_us = rows.iter().find(|row| row.method == "DMA")?.each_us;
    let single = single?;
    let dma = |part: f64| Cost { set_up, each: dma_us / 1e6 * part, words_max: None };
    let from = |simple: &Cost, part: f64| {
        pays_from(simple, &dma(part)).map_or_else(|| "-".to_owned(), |words| format!("{words:.0}"))
    };
    let halves = Cost { each: single.each / 2.0, set_up: single.set_up, words_max: None };
    let ppc = Cost { set_up: 0.0, each: ppc_us / 1e6, words_max: None };
    let first = format!(
        "with a set-up of {:.0} ms faster than single access from {} words of 32 bits",
        set_up * 1e3,
        from(single, 1.0)
    );
    Some(vec![
        Fact::new("DMA", first),
        Fact::new("", format!("from {} words of 16 bits at half the time each", from(&halves, 0.5))),
        Fact::new("", format!("from {} words compared with the PPC4's {ppc_us} us", from(&ppc, 1.0))),
        Fact::new(
            "",
            format!("the note says {claimed}, which does not follow from its set-up and times per word"),
        ),
    ])
}

#[cfg(test)]
#[path = "register_note_tests.rs"]
mod tests;
