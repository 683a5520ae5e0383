//! Page of a campaign: cells, their figures, and their ratios to the baseline.

use std::collections::BTreeSet;

use keepup_measure::stats::median;
use keepup_results::{CampaignCell, CampaignSummary, Figure, Quantity, Stored};
use serde_json::json;

use super::common::{self, PageContent, charts, format_quantity};
use super::forest::{self, Effect, Ratio};
use crate::chart::{
    Axis, Chart, HeatMap, Mark, Scale, Series, TEXT, colour, figure, heat_map, plot, rate_scale, short,
    time_scale,
};
use crate::format::{NOT_MEASURED, plural, seconds, shorten};
use crate::page::{Block, Document, Fact, Item};
use crate::table::{Cell, Table, Tone, left, right};

/// Most cells drawn as bars. More are drawn as a heat map or listed only.
const BARS_MAX: usize = 60;
/// Most metrics drawn.
const CHARTS_MAX: usize = 6;
/// Metrics with a column in the table of cells.
const COLUMNS: usize = 3;
/// Most metrics considered.
const METRICS_MAX: usize = 200;
const ROWS_MAX: usize = 600;
const NAME_CHARACTERS_MAX: usize = 40;

/// Metric that several cells measured. Cells match if their names differ only in numbers, which an axis may
/// vary, and their places are the same or each cell has a single place.
#[derive(PartialEq)]
struct Metric<'a> {
    place: Option<&'a str>,
    what: String,
    quantity: Quantity,
    /// Whether `what` is a name without its numbers.
    is_family: bool,
}

impl Metric<'_> {
    fn of<'f>(&self, cell: &'f CampaignCell) -> Option<&'f Figure> {
        cell.figures.iter().find(|figure| {
            figure.quantity == self.quantity
                && self.place.is_none_or(|place| figure.place == place)
                && if self.is_family { family(&figure.what) == self.what } else { figure.what == self.what }
        })
    }

    fn value(&self, cell: &CampaignCell) -> Option<f64> {
        median(&self.of(cell)?.values)
    }

    fn name(&self) -> String {
        let place = self.place.filter(|place| !place.is_empty());
        let place = place.map(|place| format!(" on {}", shorten(place, 28))).unwrap_or_default();
        format!("{}, {}{place}", shorten(&self.what, NAME_CHARACTERS_MAX), self.quantity.name())
    }
}

/// Replaces the numbers in a name: "write 65536 B depth 4" becomes "write # B depth #".
fn family(what: &str) -> String {
    let mut family = String::new();
    for c in what.chars() {
        match (c.is_ascii_digit(), family.ends_with('#')) {
            (true, true) => {}
            (true, false) => family.push('#'),
            (false, _) => family.push(c),
        }
    }
    family
}

pub(super) fn document(stored: &Stored, summary: &CampaignSummary) -> Document {
    let totals = &summary.totals;
    let mut content = PageContent {
        answer: Some((summary.name.clone(), Tone::Plain)),
        sentences: vec![
            summary.title.clone(),
            format!(
                "{} of {} runs over {} in {}; {} failed, {} not needed, {} remaining.",
                totals.runs,
                totals.planned,
                plural(u64::from(totals.cells), "cell"),
                seconds(totals.seconds),
                totals.failed,
                totals.spared,
                totals.left
            ),
        ],
        cautions: cautions(summary),
        at_a_glance: Some(axes(summary)),
        ..PageContent::default()
    };
    let metrics = metrics(summary);
    let drawn = (0..CHARTS_MAX).zip(&metrics).filter_map(|(number, metric)| {
        Some(Chart { is_in_table: number < COLUMNS, ..metric_chart(summary, metric)? })
    });
    let measured = charts("Measured values", drawn.collect::<Vec<_>>());
    content.blocks.extend(measured.map(|block| Block { is_side_by_side: true, ..block }));
    content.blocks.extend(charts("Ratio to the baseline", ratios(summary)));
    content.blocks.push(cells(summary, &metrics));
    common::document(stored, content)
}

/// Axes, baseline and order.
fn axes(summary: &CampaignSummary) -> Block {
    let mut facts: Vec<Fact> = summary
        .axes
        .iter()
        .map(|axis| Fact::new(axis.name.clone(), shorten(&axis.labels.join(", "), 200)))
        .collect();
    let baseline: Vec<String> =
        summary.baseline.iter().map(|(axis, label)| format!("{axis} {label}")).collect();
    if !baseline.is_empty() {
        facts.push(Fact::new("baseline", baseline.join(", ")));
    }
    facts.push(Fact::new("order", summary.order.clone()));
    facts.push(Fact::new("runs per cell", summary.repetitions.to_string()));
    Block::new("Axes", vec![Item::Facts(facts)])
}

/// Short name of a cell: its labels on axes with several values.
fn short_name(summary: &CampaignSummary, cell: &CampaignCell) -> String {
    let varying = summary.axes.iter().filter(|axis| axis.labels.len() > 1);
    let labels: Vec<String> =
        varying.filter_map(|axis| Some(shorten(cell.coordinates.get(&axis.name)?, 16))).collect();
    if labels.is_empty() { format!("cell {}", cell.number) } else { labels.join(", ") }
}

fn cautions(summary: &CampaignSummary) -> Vec<String> {
    let mut cautions: Vec<String> =
        summary.totals.stopped.iter().map(|why| format!("Stopped early: {why}.")).collect();
    let confounded: Vec<String> = summary
        .cells
        .iter()
        .filter(|cell| cell.confounded)
        .take(20)
        .map(|cell| format!("cell {}: {}", cell.number, confounded(cell)))
        .collect();
    if !confounded.is_empty() {
        cautions.push(format!(
            "Ratios of these cells cannot be attributed to one setting: {}.",
            confounded.join("; ")
        ));
    }
    if summary.totals.skipped > 0 {
        cautions
            .push(format!("{} skipped; see the table.", plural(u64::from(summary.totals.skipped), "cell")));
    }
    if summary.totals.failed > 0 {
        cautions.push(format!("{} failed; see the table.", plural(u64::from(summary.totals.failed), "run")));
    }
    if summary.repetitions < 5 && !summary.baseline.is_empty() {
        cautions.push(
            "With fewer than five runs per cell, differences are not tested for significance.".to_owned(),
        );
    }
    cautions
}

/// Settings that changed together, and the cells that change only one of them.
fn confounded(cell: &CampaignCell) -> String {
    let numbers = |cells: &[u32]| cells.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match (cell.changed.len(), cell.alone.is_empty()) {
        (0 | 1, _) => format!("{} change together", cell.settings.join(" and ")),
        (_, true) => format!("{} change together", cell.changed.join(" and ")),
        (_, false) => {
            let alone = numbers(&cell.alone);
            format!("{} change together; one at a time in cells {alone}", cell.changed.join(" and "))
        }
    }
}

/// Metrics of the cells, rates first, then those that most cells have.
fn metrics(summary: &CampaignSummary) -> Vec<Metric<'_>> {
    let one_place =
        |cell: &CampaignCell| cell.figures.iter().all(|figure| figure.place == cell.figures[0].place);
    let is_one_place = summary.cells.iter().all(one_place);
    // A cell with several figures of a family would show only the first.
    let is_family = summary.cells.iter().all(|cell| {
        let mut seen = BTreeSet::new();
        cell.figures.iter().all(|f| seen.insert((family(&f.what), f.quantity, f.place.as_str())))
    });
    let mut metrics: Vec<(Metric<'_>, usize)> = Vec::new();
    for figure in summary.cells.iter().flat_map(|cell| &cell.figures) {
        let place = Some(figure.place.as_str()).filter(|_| !is_one_place);
        let what = if is_family { family(&figure.what) } else { figure.what.clone() };
        let metric = Metric { place, what, quantity: figure.quantity, is_family };
        match metrics.iter().position(|known| known.0 == metric) {
            Some(place) => metrics[place].1 += 1,
            None if metrics.len() < METRICS_MAX => metrics.push((metric, 1)),
            None => {}
        }
    }
    metrics.sort_by_key(|(metric, cells)| (metric.quantity, std::cmp::Reverse(*cells)));
    metrics.into_iter().map(|(metric, _)| metric).collect()
}

fn scale(quantity: Quantity, most: f64) -> Scale {
    match quantity {
        Quantity::BytesPerSecond => rate_scale(most),
        _ if quantity.unit() == "s" => time_scale(most),
        _ => Scale { divisor: 1.0, unit: quantity.unit() },
    }
}

/// Heat map if two axes vary, otherwise a bar for each cell.
fn metric_chart(summary: &CampaignSummary, metric: &Metric<'_>) -> Option<Chart> {
    let values: Vec<(&CampaignCell, f64)> =
        summary.cells.iter().filter_map(|cell| Some((cell, metric.value(cell)?))).collect();
    let unit = scale(metric.quantity, values.iter().map(|value| value.1).fold(0.0, f64::max));
    let varying: Vec<_> = summary.axes.iter().filter(|axis| axis.labels.len() > 1).collect();
    let title = format!("{}, {}", metric.name(), unit.unit);
    let chart = match varying[..] {
        [up, across] if up.labels.len() > 2 || across.labels.len() > 2 => {
            let place = |labels: &[String], axis: &str, cell: &CampaignCell| {
                labels.iter().position(|label| Some(label) == cell.coordinates.get(axis))
            };
            let map_cell = |(cell, value): &(&CampaignCell, f64)| {
                let x = place(&across.labels, &across.name, cell)?;
                Some((x, place(&up.labels, &up.name, cell)?, unit.of(*value)))
            };
            let map = HeatMap {
                across: (across.name.clone(), across.labels.clone()),
                up: (up.name.clone(), up.labels.clone()),
                cells: values.iter().filter_map(map_cell).collect(),
                unit: unit.unit,
            };
            heat_map(&map)
        }
        _ if values.len() <= BARS_MAX => bars(summary, &values, unit),
        _ => return None,
    };
    let rows = values.iter().take(ROWS_MAX);
    let rows = rows
        .map(|(cell, value)| vec![cell.name(&summary.axes).into(), short(unit.of(*value)).into()])
        .collect();
    let columns = vec![left("cell"), right(unit.unit)];
    (!values.is_empty()).then_some(Chart { title, table: Table { columns, rows }, ..chart })
}

fn bars(summary: &CampaignSummary, values: &[(&CampaignCell, f64)], unit: Scale) -> Chart {
    let bar = |(_, value): &(&CampaignCell, f64)| {
        json!({ "value": figure(unit.of(*value)), "label": { "show": true, "position": "right", "color": TEXT,
            "formatter": short(unit.of(*value)), "fontSize": 11 } })
    };
    let series = [Series::new("", colour(0), Mark::Bars, values.iter().map(bar).collect())];
    let names: Vec<String> = values.iter().map(|(cell, _)| short_name(summary, cell)).collect();
    plot(
        &Axis::linear(unit.unit).with_zero(),
        &Axis::category("", names.clone()).reversed(),
        &series,
        24 * names.len() as u32,
    )
    .with_right_margin(56)
}

/// Ratios of the first quantity, rates if any.
fn ratios(summary: &CampaignSummary) -> Option<Chart> {
    let all = || summary.cells.iter().flat_map(|cell| cell.ratios.iter().map(move |ratio| (cell, ratio)));
    let quantity = all().map(|(_, ratio)| ratio.quantity).min()?;
    let of = all().filter(|(_, ratio)| ratio.quantity == quantity).map(|(cell, ratio)| Ratio {
        name: format!("{}: {}", short_name(summary, cell), ratio.what),
        ratio: ratio.ratio,
        interval: ratio.lower.zip(ratio.upper),
        effect: match (ratio.flagged, ratio.ratio > 1.0) {
            (false, _) => Effect::Nothing,
            (true, true) => Effect::Better,
            (true, false) => Effect::Worse,
        },
        words: format!(
            "{} pairs{}{}",
            ratio.pairs,
            if ratio.flagged { ", significant" } else { "" },
            if cell.confounded { ", confounded" } else { "" }
        ),
    });
    let ratios: Vec<Ratio> = of.collect();
    forest::chart(&format!("{}: ratio to the baseline, by cell", quantity.name()), "baseline", &ratios)
}

/// Table of all cells with their first metrics.
fn cells(summary: &CampaignSummary, metrics: &[Metric<'_>]) -> Block {
    let shown = metrics.get(..metrics.len().min(COLUMNS)).unwrap_or_default();
    let mut columns = vec![right("cell")];
    columns.extend(summary.axes.iter().map(|axis| left(axis.name.clone())));
    columns.push(right("runs"));
    columns.extend(shown.iter().map(|metric| right(metric.name())));
    columns.push(left(""));
    let row = |cell: &CampaignCell| -> Vec<Cell> {
        let mut row: Vec<Cell> = vec![cell.number.to_string().into()];
        let label = |name: &str| cell.coordinates.get(name).cloned().unwrap_or_default();
        row.extend(summary.axes.iter().map(|axis| Cell::from(label(&axis.name))));
        row.push(cell.runs.len().to_string().into());
        let value = |metric: &Metric<'_>| {
            metric
                .value(cell)
                .map_or_else(|| NOT_MEASURED.to_owned(), |value| format_quantity(metric.quantity, value))
        };
        row.extend(shown.iter().map(|metric| Cell::from(value(metric))));
        row.push(state(cell));
        row
    };
    let rows: Vec<Vec<Cell>> = summary.cells.iter().take(ROWS_MAX).map(row).collect();
    let mut items = vec![Item::Table(Table { columns, rows })];
    if summary.cells.len() > ROWS_MAX {
        items.push(Item::Text(format!("{} more cells are in result.json.", summary.cells.len() - ROWS_MAX)));
    }
    Block::new("Cells", items)
}

fn state(cell: &CampaignCell) -> Cell {
    if let Some(why) = &cell.skipped {
        return Cell::toned(format!("skipped: {why}"), Tone::Doubtful);
    }
    if let Some(run) = cell.runs.iter().find(|run| run.why.is_some()) {
        return Cell::toned(format!("failed: {}", run.why.as_deref().unwrap_or_default()), Tone::Bad);
    }
    if cell.confounded {
        return Cell::toned(format!("confounded: {}", confounded(cell)), Tone::Doubtful);
    }
    cell.baseline.map_or_else(String::new, |number| format!("compared with cell {number}")).into()
}
