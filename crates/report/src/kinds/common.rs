//! Common parts of all pages: method, outcome, figures and background loads.

use std::collections::{BTreeMap, BTreeSet};

use keepup_measure::stats::quantile;
use keepup_results::{
    EVIDENCE_SECONDS_MIN, Figure, Figures, Headed, Kind, LoadResult, Quantity, Stored, machine_name,
};

use super::loads;
use crate::chart::{Chart, size_name};
use crate::format::{NOT_MEASURED, bytes, digits, first_line, fixed, number, plural, rate, shorten, time};
use crate::page::{Block, Document, Fact, Headline, Item, Page};
use crate::table::{Cell, Table, Tone, left, right};

/// Most rows in the table of figures.
const ROWS_MAX: usize = 600;
/// Longest name in a table.
const NAME_CHARACTERS_MAX: usize = 60;

/// Content that a kind of result adds to the common page.
#[derive(Default)]
pub(super) struct PageContent {
    /// Answer in two or three words. Default: the name of the test.
    pub(super) answer: Option<(String, Tone)>,
    /// Findings, one sentence each, most important first.
    pub(super) sentences: Vec<String>,
    /// Conditions of the measurement that affect its interpretation.
    pub(super) cautions: Vec<String>,
    /// Block next to the headline, in place of the method.
    pub(super) at_a_glance: Option<Block>,
    /// Charts and tables.
    pub(super) blocks: Vec<Block>,
    /// Background loads of all runs.
    pub(super) loads: Vec<LoadResult>,
    /// Omits the table of all figures.
    pub(super) omits_figures: bool,
}

/// Builds the page of a test.
pub(super) fn document(stored: &Stored, content: PageContent) -> Document {
    let head = stored.head();
    let mut cautions = content.cautions;
    cautions.extend(too_short(&stored.figures()));
    let mut cut = Vec::new();
    cut.extend(head.failure.map(|why| format!("The test failed: {}.", first_line(why))));
    if head.interrupted {
        cut.push("The test was interrupted: the figures cover only its first part.".to_owned());
    }
    // Without an answer, the name of the test is the headline.
    let what = content.answer.as_ref().map_or_else(String::new, |_| format!("{} ", name(stored)));
    let (verdict, tone) = content.answer.unwrap_or_else(|| (name(stored), Tone::Plain));
    let tone = if cut.is_empty() || tone == Tone::Bad { tone } else { Tone::Doubtful };
    let mut items: Vec<Item> = content.sentences.into_iter().map(Item::Text).collect();
    items.extend(cut.into_iter().map(Item::Text));
    let id = if head.id.is_empty() { String::new() } else { format!(", result {}", shorten(head.id, 16)) };
    let title = match head.kind {
        Kind::Compare => format!("{}, {}", name(stored), head.created),
        Kind::QualifyFleet => format!("{}, {}{id}", name(stored), head.created),
        _ => {
            let machine = machine_name(head.environment).unwrap_or_else(|| "this machine".to_owned());
            format!("{what}on {machine}, {}{id}", head.created)
        }
    };
    let method = || Block::new("Method", vec![Item::Facts(method_facts(stored))]).detail();
    let mut glance = vec![content.at_a_glance.unwrap_or_else(method)];
    if cautions.is_empty() {
        cautions.push("None.".to_owned());
        glance.push(Block::new("Cautions", vec![Item::Text(cautions.remove(0))]).detail());
    } else {
        glance.push(Block::new("Cautions", vec![Item::List(cautions)]));
    }
    let mut blocks = content.blocks;
    blocks.extend(loads::block(&content.loads));
    if !content.omits_figures {
        blocks.extend(figures(&stored.figures()));
    }
    let repeat = vec![Fact::command("repeat with", head.command), Fact::new("keepup", head.tool_version)];
    blocks.push(Block::new("How to repeat", vec![Item::Facts(repeat)]));
    let blocks = blocks.into_iter().filter_map(without_empty).collect();
    Document {
        kind: name(stored),
        page: Page { headline: Headline { verdict, tone, title, items }, blocks },
        glance,
        records: vec![
            ("Environment of the measurement", head.environment.clone()),
            ("Plan, as it was run", head.plan.clone()),
        ],
    }
}

/// Caution about figures that were measured for too short a time.
fn too_short(figures: &[Figure]) -> Option<String> {
    let count = figures.iter().filter(|figure| figure.is_too_short).count();
    (count > 0).then(|| {
        format!(
            "{count} of {} were measured for less than {EVIDENCE_SECONDS_MIN} s: too short to be evidence. \
             They are marked, and have no rank.",
            plural(figures.len() as u64, "figure"),
        )
    })
}

/// Removes empty items. Returns none if nothing is left.
fn without_empty(mut block: Block) -> Option<Block> {
    block.items.retain(|item| !item.is_empty());
    (!block.items.is_empty()).then_some(block)
}

/// Name of the test.
pub(crate) fn name(stored: &Stored) -> String {
    let head = stored.head();
    let workload = head.workload.replace('-', " ");
    match head.kind {
        Kind::Disk => format!("disk {workload}"),
        Kind::Net => format!("network {workload}"),
        // Results of `keepup trial`.
        Kind::Record => "trial".to_owned(),
        Kind::QualifyFleet => fleet_name(stored),
        // Names that users choose.
        Kind::Campaign | Kind::Predict => head.workload.to_owned(),
        Kind::Compare => format!("comparison of {workload}"),
        _ => workload,
    }
}

/// Fleet and profile of a qualification.
fn fleet_name(stored: &Stored) -> String {
    match stored {
        Stored::QualifyFleet(summary) => format!("fleet {} for {}", summary.fleet, summary.workload),
        other => other.head().workload.to_owned(),
    }
}

/// Main settings in the plan.
fn method_facts(stored: &Stored) -> Vec<Fact> {
    let plan = stored.head().plan;
    let mode = plan.get("mode").unwrap_or(plan);
    let text = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => Some(text.clone()),
        serde_json::Value::Null => None,
        other => Some(other.to_string()),
    };
    let size = |value: &serde_json::Value| value.as_u64().map(size_name);
    let mut facts = Vec::new();
    let mut add =
        |label: &str, value: Option<String>| facts.extend(value.map(|value| Fact::new(label, value)));
    for (key, label) in [
        ("access", "access"),
        ("engine", "engine"),
        ("space", "space"),
        ("target", "target"),
        ("baseline", "baseline"),
    ] {
        add(label, mode.get(key).or_else(|| plan.get(key)).and_then(text));
    }
    for (key, label) in [
        ("file_bytes", "file"),
        ("request_bytes", "request"),
        ("event_bytes", "event"),
        ("chunk_bytes", "chunk"),
    ] {
        add(label, plan.get(key).and_then(size));
    }
    add("places", Some(place_list(stored)).filter(|places| !places.is_empty()));
    let repeats = stored.figures().iter().map(|figure| figure.values.len()).max().unwrap_or(0);
    add("repeats", (repeats > 0).then(|| repeats.to_string()));
    facts
}

fn place_list(stored: &Stored) -> String {
    let mut places: Vec<String> = Vec::new();
    for figure in stored.figures() {
        if !figure.place.is_empty() && !places.contains(&figure.place) {
            places.push(figure.place);
        }
    }
    shorten(&places.join(", "), 200)
}

/// Formats a value in the unit of its quantity.
pub(crate) fn format_quantity(quantity: Quantity, value: f64) -> String {
    match quantity {
        Quantity::BytesPerSecond => rate(value),
        Quantity::Bytes => bytes(value as u64),
        Quantity::MeanSeconds
        | Quantity::P99Seconds
        | Quantity::MaxSeconds
        | Quantity::SetUpSeconds
        | Quantity::SecondsPerRegister => time(value),
        Quantity::OperationsPerSecond => format!("{} /s", digits(value)),
        Quantity::Lost => number(value as u64),
        Quantity::CpuSecondsPerGb | Quantity::CoresBusy => format!("{} {}", digits(value), quantity.unit()),
    }
}

/// Median with minimum and maximum, if there are several values.
fn spread(figure: &Figure) -> String {
    let at = |q: f64| quantile(&figure.values, q).map(|value| format_quantity(figure.quantity, value));
    let Some(middle) = at(0.5) else { return NOT_MEASURED.to_owned() };
    match (at(0.0), at(1.0)) {
        (Some(least), Some(most)) if least != most => {
            // A common unit is printed once.
            let without = |text: &str| match (text.rsplit_once(' '), middle.rsplit_once(' ')) {
                (Some((figure, unit)), Some((_, same))) if unit == same => figure.to_owned(),
                _ => text.to_owned(),
            };
            format!("{middle} ({} to {})", without(&least), without(&most))
        }
        _ => middle,
    }
}

/// Table of all figures: a row for each item and place, a column for each quantity.
fn figures(figures: &[Figure]) -> Option<Block> {
    let mut quantities: Vec<Quantity> = figures.iter().map(|figure| figure.quantity).collect();
    quantities.sort_unstable();
    quantities.dedup();
    let mut rows: Vec<(&str, &str)> = Vec::new();
    let mut known = BTreeSet::new();
    let mut cells: BTreeMap<(&str, &str, Quantity), &Figure> = BTreeMap::new();
    for figure in figures {
        let row = (figure.place.as_str(), figure.what.as_str());
        if known.insert(row) {
            rows.push(row);
        }
        cells.insert((row.0, row.1, figure.quantity), figure);
    }
    if rows.is_empty() {
        return None;
    }
    let with_vertical_line = rows.iter().any(|row| row.0 != rows[0].0);
    let mut columns = if with_vertical_line { vec![left("place"), left("what")] } else { vec![left("what")] };
    columns.extend(quantities.iter().map(|quantity| right(quantity.name())));
    let row = |(place, what): &(&str, &str)| -> Vec<Cell> {
        let mut row: Vec<Cell> = Vec::new();
        if with_vertical_line {
            row.push(shorten(place, NAME_CHARACTERS_MAX).into());
        }
        let mark = quantities.iter().filter_map(|quantity| cells.get(&(*place, *what, *quantity)));
        let mark = if mark.into_iter().any(|figure| figure.is_too_short) { " (too short)" } else { "" };
        row.push((shorten(what, NAME_CHARACTERS_MAX) + mark).into());
        let of = |quantity: &Quantity| cells.get(&(*place, *what, *quantity)).map(|figure| spread(figure));
        row.extend(quantities.iter().map(|quantity| of(quantity).unwrap_or_default().into()));
        row
    };
    let drawn = rows.iter().take(ROWS_MAX).map(row).collect();
    let mut items = vec![Item::Table(Table { columns, rows: drawn })];
    if rows.len() > ROWS_MAX {
        items.push(Item::Text(format!("{} more rows are in result.json.", rows.len() - ROWS_MAX)));
    }
    Some(Block::new("All figures: median (minimum to maximum)", items).detail())
}

/// Table with one row for each figure, over all its repeats, with its unit.
pub(super) fn figure_rows(figures: &[Figure]) -> Table {
    let row = |figure: &Figure| -> Vec<Cell> {
        let (scale, unit, digits) = match figure.quantity {
            Quantity::BytesPerSecond => (1e6, "MB/s", 1),
            Quantity::Lost => (1.0, "events", 0),
            other => (1.0, other.unit(), 3),
        };
        let values: Vec<f64> = figure.values.iter().map(|value| value / scale).collect();
        vec![
            figure.place.as_str().into(),
            figure.what.as_str().into(),
            format!("{}, {unit}", figure.quantity.name()).into(),
            values.len().to_string().into(),
            fixed(quantile(&values, 0.5), digits).into(),
            fixed(values.iter().copied().reduce(f64::min), digits).into(),
            fixed(values.iter().copied().reduce(f64::max), digits).into(),
        ]
    };
    let columns = vec![
        left("place"),
        left("what"),
        left("figure"),
        right("runs"),
        right("median"),
        right("lowest"),
        right("highest"),
    ];
    Table { columns, rows: figures.iter().map(row).collect() }
}

/// Wraps a chart as an item.
pub(super) fn item(chart: Chart) -> Item {
    Item::Chart(Box::new(chart))
}

/// Block of charts, `None` if empty.
pub(super) fn charts(title: &str, charts: impl IntoIterator<Item = Chart>) -> Option<Block> {
    let items: Vec<Item> = charts.into_iter().map(item).collect();
    (!items.is_empty()).then(|| Block::new(title, items))
}
