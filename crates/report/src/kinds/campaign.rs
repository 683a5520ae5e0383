//! The page of a campaign: its cells, what each measured, and how they compare with their baseline.

use std::collections::BTreeSet;

use keepup_measure::stats::median;
use keepup_results::{CampaignCell, CampaignSummary, Figure, Quantity, Stored};
use serde_json::json;

use super::common::{self, Found, charts, told};
use super::forest::{self, Ratio, Shown};
use crate::chart::{
    Axis, Chart, Heat, Mark, Scale, Series, TEXT, colour, figure, heat, plot, rate_scale, short, time_scale,
};
use crate::format::{NOT_MEASURED, plural, seconds, shorten};
use crate::page::{Block, Cell, Document, Fact, Item, Table, Tone, left, right};

/// Cells that are drawn as bars; a campaign with more has its map, or its table alone.
const BARS_MAX: usize = 60;
/// Things that are drawn, each in a chart of its own.
const CHARTS_MAX: usize = 6;
/// Things that have a column in the table of cells.
const COLUMNS: usize = 3;
/// Things that are looked through for them.
const THINGS_MAX: usize = 200;
const ROWS_MAX: usize = 600;
const NAME_CHARACTERS_MAX: usize = 40;

/// Something that several cells measured: what has the same name but for its figures, which an axis may have
/// set, in the same place, or wherever each cell measured it when that is one place.
#[derive(PartialEq)]
struct Thing<'a> {
    place: Option<&'a str>,
    what: String,
    quantity: Quantity,
    /// Whether `what` is a name without its figures.
    is_family: bool,
}

impl Thing<'_> {
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

/// A name without its figures: "write 65536 B depth 4" and "write 4096 B depth 4" are "write # B depth #".
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
    let mut found = Found {
        answer: Some((summary.name.clone(), Tone::Plain)),
        sentences: vec![
            summary.title.clone(),
            format!(
                "{} of {} runs over {} in {}; {} failed, {} not needed, {} left.",
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
        instead: Some(axes(summary)),
        ..Found::default()
    };
    let things = things(summary);
    let drawn = (0..CHARTS_MAX)
        .zip(&things)
        .filter_map(|(number, thing)| Some(Chart { is_told: number < COLUMNS, ..one(summary, thing)? }));
    let measured = charts("What the cells measured", drawn.collect::<Vec<_>>());
    found.blocks.extend(measured.map(|block| Block { is_beside: true, ..block }));
    found.blocks.extend(charts("Beside the baseline", ratios(summary)));
    found.blocks.push(cells(summary, &things));
    common::document(stored, found)
}

/// What varied, and how.
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
    facts.push(Fact::new("runs of each", summary.repetitions.to_string()));
    Block::new("What varied", vec![Item::Facts(facts)])
}

/// A cell by those of its labels that vary, in few characters.
fn short_name(summary: &CampaignSummary, cell: &CampaignCell) -> String {
    let varying = summary.axes.iter().filter(|axis| axis.labels.len() > 1);
    let labels: Vec<String> =
        varying.filter_map(|axis| Some(shorten(cell.coordinates.get(&axis.name)?, 16))).collect();
    if labels.is_empty() { format!("cell {}", cell.number) } else { labels.join(", ") }
}

fn cautions(summary: &CampaignSummary) -> Vec<String> {
    let mut cautions: Vec<String> =
        summary.totals.stopped.iter().map(|why| format!("Stopped by its own rule: {why}.")).collect();
    let confounded: Vec<String> = summary
        .cells
        .iter()
        .filter(|cell| cell.confounded)
        .take(20)
        .map(|cell| format!("cell {}: {}", cell.number, confounded(cell)))
        .collect();
    if !confounded.is_empty() {
        cautions.push(format!("No ratio of these tells what did it. {}.", confounded.join("; ")));
    }
    if summary.totals.skipped > 0 {
        cautions.push(format!(
            "{} left out; the table says why.",
            plural(u64::from(summary.totals.skipped), "cell")
        ));
    }
    if summary.totals.failed > 0 {
        cautions
            .push(format!("{} failed; the table says why.", plural(u64::from(summary.totals.failed), "run")));
    }
    if summary.repetitions < 5 && !summary.baseline.is_empty() {
        cautions.push("With fewer than five runs of each cell no difference is taken as shown.".to_owned());
    }
    cautions
}

/// What changed at once, and which cells change one of it alone.
fn confounded(cell: &CampaignCell) -> String {
    let numbers = |cells: &[u32]| cells.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match (cell.changed.len(), cell.alone.is_empty()) {
        (0 | 1, _) => format!("{} change at once", cell.settings.join(" and ")),
        (_, true) => format!("{} change at once", cell.changed.join(" and ")),
        (_, false) => {
            let alone = numbers(&cell.alone);
            format!("{} change at once; each alone: cells {alone}", cell.changed.join(" and "))
        }
    }
}

/// What most cells have, rates before anything else, in the order of the first cell that has it.
fn things(summary: &CampaignSummary) -> Vec<Thing<'_>> {
    let one_place =
        |cell: &CampaignCell| cell.figures.iter().all(|figure| figure.place == cell.figures[0].place);
    let is_one_place = summary.cells.iter().all(one_place);
    // A cell with several of a family would show the first of them alone.
    let is_family = summary.cells.iter().all(|cell| {
        let mut seen = BTreeSet::new();
        cell.figures.iter().all(|f| seen.insert((family(&f.what), f.quantity, f.place.as_str())))
    });
    let mut things: Vec<(Thing<'_>, usize)> = Vec::new();
    for figure in summary.cells.iter().flat_map(|cell| &cell.figures) {
        let place = Some(figure.place.as_str()).filter(|_| !is_one_place);
        let what = if is_family { family(&figure.what) } else { figure.what.clone() };
        let thing = Thing { place, what, quantity: figure.quantity, is_family };
        match things.iter().position(|known| known.0 == thing) {
            Some(place) => things[place].1 += 1,
            None if things.len() < THINGS_MAX => things.push((thing, 1)),
            None => {}
        }
    }
    things.sort_by_key(|(thing, cells)| (thing.quantity, std::cmp::Reverse(*cells)));
    things.into_iter().map(|(thing, _)| thing).collect()
}

fn scale(quantity: Quantity, most: f64) -> Scale {
    match quantity {
        Quantity::BytesPerSecond => rate_scale(most),
        _ if quantity.unit() == "s" => time_scale(most),
        _ => Scale { divisor: 1.0, unit: quantity.unit() },
    }
}

/// A map where two axes vary, else a bar for each cell.
fn one(summary: &CampaignSummary, thing: &Thing<'_>) -> Option<Chart> {
    let values: Vec<(&CampaignCell, f64)> =
        summary.cells.iter().filter_map(|cell| Some((cell, thing.value(cell)?))).collect();
    let unit = scale(thing.quantity, values.iter().map(|value| value.1).fold(0.0, f64::max));
    let varying: Vec<_> = summary.axes.iter().filter(|axis| axis.labels.len() > 1).collect();
    let title = format!("{}, {}", thing.name(), unit.unit);
    let chart = match varying[..] {
        [up, across] if up.labels.len() > 2 || across.labels.len() > 2 => {
            let place = |labels: &[String], axis: &str, cell: &CampaignCell| {
                labels.iter().position(|label| Some(label) == cell.coordinates.get(axis))
            };
            let field = |(cell, value): &(&CampaignCell, f64)| {
                let x = place(&across.labels, &across.name, cell)?;
                Some((x, place(&up.labels, &up.name, cell)?, unit.of(*value)))
            };
            let map = Heat {
                across: (across.name.clone(), across.labels.clone()),
                up: (up.name.clone(), up.labels.clone()),
                fields: values.iter().filter_map(field).collect(),
                unit: unit.unit,
            };
            heat(&map)
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
        &Axis::category("", names.clone()).downwards(),
        &series,
        24 * names.len() as u32,
    )
    .with_room_at_right(56)
}

/// Ratios of rates, or of whatever there is.
fn ratios(summary: &CampaignSummary) -> Option<Chart> {
    let all = || summary.cells.iter().flat_map(|cell| cell.ratios.iter().map(move |ratio| (cell, ratio)));
    let quantity = all().map(|(_, ratio)| ratio.quantity).min()?;
    let of = all().filter(|(_, ratio)| ratio.quantity == quantity).map(|(cell, ratio)| Ratio {
        name: format!("{}: {}", short_name(summary, cell), ratio.what),
        ratio: ratio.ratio,
        interval: ratio.lower.zip(ratio.upper),
        shown: match (ratio.flagged, ratio.ratio > 1.0) {
            (false, _) => Shown::Nothing,
            (true, true) => Shown::Better,
            (true, false) => Shown::Worse,
        },
        words: format!(
            "{} pairs{}{}",
            ratio.pairs,
            if ratio.flagged { ", differs" } else { "" },
            if cell.confounded { ", confounded" } else { "" }
        ),
    });
    let ratios: Vec<Ratio> = of.collect();
    forest::chart(
        &format!("Ratio of the {} to the baseline's, cell by cell", quantity.name()),
        "baseline",
        &ratios,
    )
}

/// Every cell with what it measured first.
fn cells(summary: &CampaignSummary, things: &[Thing<'_>]) -> Block {
    let shown = things.get(..things.len().min(COLUMNS)).unwrap_or_default();
    let mut columns = vec![right("cell")];
    columns.extend(summary.axes.iter().map(|axis| left(axis.name.clone())));
    columns.push(right("runs"));
    columns.extend(shown.iter().map(|thing| right(thing.name())));
    columns.push(left(""));
    let row = |cell: &CampaignCell| -> Vec<Cell> {
        let mut row: Vec<Cell> = vec![cell.number.to_string().into()];
        let label = |name: &str| cell.coordinates.get(name).cloned().unwrap_or_default();
        row.extend(summary.axes.iter().map(|axis| Cell::from(label(&axis.name))));
        row.push(cell.runs.len().to_string().into());
        let value = |thing: &Thing<'_>| {
            thing.value(cell).map_or_else(|| NOT_MEASURED.to_owned(), |value| told(thing.quantity, value))
        };
        row.extend(shown.iter().map(|thing| Cell::from(value(thing))));
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
        return Cell::toned(format!("left out: {why}"), Tone::Doubtful);
    }
    if let Some(run) = cell.runs.iter().find(|run| run.why.is_some()) {
        return Cell::toned(format!("failed: {}", run.why.as_deref().unwrap_or_default()), Tone::Bad);
    }
    if cell.confounded {
        return Cell::toned(format!("confounded: {}", confounded(cell)), Tone::Doubtful);
    }
    cell.baseline.map_or_else(String::new, |number| format!("beside cell {number}")).into()
}
