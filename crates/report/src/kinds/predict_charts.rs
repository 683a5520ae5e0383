//! Charts of a prediction: utilisation of every stage, and rate over the swept setting.

use keepup_results::{PredictSummary, PredictedPart, Prediction};
use serde_json::{Value, json};

use crate::chart::{
    Axis, BAD, Chart, Dash, GOOD, LabelPosition, Mark, Scale, Series, Symbol, TEXT, colour, figure, pair,
    plot, rate_scale, short,
};
use crate::format::{percent, rate, shorten};
use crate::table::{Table, left, right};

const HEIGHT: u32 = 260;
/// Height of one horizontal bar with its gap, pixels.
const BAR_HEIGHT: u32 = 26;
const NAME_CHARACTERS_MAX: usize = 32;
/// Most resources drawn over a sweep.
const PARTS_DRAWN_MAX: usize = 5;
/// Most bars of a sweep over names.
const BARS_MAX: usize = 40;
/// Most that a value drawn beside the rate may exceed it: a higher one would compress the curve.
const BESIDE_MAX: f64 = 1.5;

/// Utilisation of every stage at the required rate; without one, at the predicted rate.
pub(super) fn utilisation(summary: &PredictSummary, point: &Prediction) -> Option<Chart> {
    let required = summary.required_bytes_per_second;
    let used = |part: &PredictedPart| {
        let at_required = part.utilisation_at_required.filter(|_| required.is_some());
        100.0 * at_required.unwrap_or(part.utilisation)
    };
    let has_required = point.parts.iter().all(|part| part.utilisation_at_required.is_some());
    let at = required.filter(|_| has_required).map_or_else(
        || format!("predicted rate of {}", rate(point.bytes_per_second)),
        |required| format!("required rate of {}", rate(required)),
    );
    let name = |part: &PredictedPart| {
        let waits = if part.is_waiting { " (waits)" } else { "" };
        format!("{}{waits}", shorten(&part.name, NAME_CHARACTERS_MAX))
    };
    let bar = |part: &PredictedPart| {
        let colour = if used(part) > 100.0 { BAD } else { GOOD };
        labelled(used(part), percent(used(part)), colour)
    };
    let series = [Series::new("", GOOD, Mark::Bars, point.parts.iter().map(bar).collect())
        .with_vertical_line(100.0, "100 %", LabelPosition::Start)];
    let most = point.parts.iter().map(used).fold(100.0, f64::max);
    let names: Vec<String> = point.parts.iter().map(name).collect();
    let rows = point.parts.iter().map(|part| vec![name(part).into(), percent(used(part)).into()]);
    (!names.is_empty()).then(|| Chart {
        title: format!("Utilisation of each stage at the {at}, %"),
        note: "A stage above 100 % cannot carry this rate.".into(),
        table: Table { columns: vec![left("resource"), right("utilisation, %")], rows: rows.collect() },
        // The table of resources has both utilisations.
        is_in_table: true,
        ..plot(
            &Axis::linear("utilisation, %").range(0.0, (most * 1.05).ceil()),
            &Axis::category("", names.clone()).reversed(),
            &series,
            BAR_HEIGHT * names.len() as u32,
        )
        .with_right_margin(56)
    })
}

/// Rate over the swept setting: a curve over numbers, bars over names. `table` has the same figures.
pub(super) fn rates(summary: &PredictSummary, table: Table) -> Option<Chart> {
    let numbers: Option<Vec<f64>> = summary.points.iter().map(|point| point.label.parse().ok()).collect();
    let most =
        summary.points.iter().map(|point| point.upper_bytes_per_second.unwrap_or(point.bytes_per_second));
    let unit = rate_scale(most.fold(0.0, f64::max));
    let axis = shorten(summary.sweep.as_deref().unwrap_or_default(), NAME_CHARACTERS_MAX);
    let chart = match numbers {
        Some(numbers) => over_numbers(summary, &numbers, unit, &axis),
        None => over_names(summary, unit),
    };
    (summary.points.len() > 1).then(|| Chart {
        title: format!("Predicted rate over {axis}, {}", unit.unit),
        table,
        is_in_table: true,
        ..chart
    })
}

/// Highest rate of all points, plus the part above it in which limits and the required rate are drawn.
fn top(summary: &PredictSummary) -> f64 {
    BESIDE_MAX * summary.points.iter().map(|point| point.bytes_per_second).fold(0.0, f64::max)
}

fn over_numbers(summary: &PredictSummary, numbers: &[f64], unit: Scale, axis: &str) -> Chart {
    let line = |of: &dyn Fn(&Prediction) -> Option<f64>| {
        let values = numbers.iter().zip(&summary.points);
        let values = values.filter_map(|(x, point)| Some(pair(*x, Some(unit.of(of(point)?)))));
        values.collect::<Vec<Value>>()
    };
    let predicted = line(&|point| Some(point.bytes_per_second));
    let mut predicted = Series::new("rate", colour(0), Mark::Line(Dash::Solid, None), predicted);
    if let Some(required) = summary.required_bytes_per_second.filter(|rate| *rate <= top(summary)) {
        predicted = predicted.with_horizontal_line(unit.of(required), "required");
    }
    let mut series = vec![predicted];
    let ends = [
        ("lower end of 95 %", line(&|point| point.lower_bytes_per_second)),
        ("upper end of 95 %", line(&|point| point.upper_bytes_per_second)),
    ];
    let ends = ends.into_iter().filter(|(_, values)| !values.is_empty());
    series.extend(
        ends.map(|(name, values)| Series::new(name, colour(0), Mark::Line(Dash::Dotted, None), values)),
    );
    for (number, name) in nearest_limits(&summary.points).into_iter().enumerate() {
        let of = |point: &Prediction| {
            let part = point.parts.iter().find(|part| part.name == name)?;
            Some(part.bytes_per_second).filter(|rate| *rate <= top(summary))
        };
        let values = line(&of);
        if !values.is_empty() {
            let mark = Mark::Dots(if number % 2 == 0 { Symbol::Circle } else { Symbol::Diamond });
            let name = format!("{} alone", shorten(name, NAME_CHARACTERS_MAX));
            series.push(Series::new(name, colour(number + 1), mark, values));
        }
    }
    let up = Axis::linear(format!("rate, {}", unit.unit)).with_zero();
    Chart {
        note: "Dots: limits of single resources. The lowest one bounds the rate.".into(),
        ..plot(&Axis::linear(axis), &up, &series, HEIGHT)
    }
}

/// Names of the resources that are the first or second limit at a point.
fn nearest_limits(points: &[Prediction]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for part in points.iter().flat_map(|point| point.parts.iter().take(2)) {
        if !names.contains(&part.name.as_str()) && names.len() < PARTS_DRAWN_MAX {
            names.push(&part.name);
        }
    }
    names
}

fn over_names(summary: &PredictSummary, unit: Scale) -> Chart {
    let points = &summary.points[..summary.points.len().min(BARS_MAX)];
    let bar = |point: &Prediction| {
        let value = unit.of(point.bytes_per_second);
        let is_short = point.headroom.is_some_and(|headroom| headroom < summary.headroom_wanted);
        labelled(value, short(value), if is_short { BAD } else { GOOD })
    };
    let mut bars = Series::new("", GOOD, Mark::Bars, points.iter().map(bar).collect());
    if let Some(required) = summary.required_bytes_per_second.filter(|rate| *rate <= top(summary)) {
        bars = bars.with_vertical_line(unit.of(required), "required", LabelPosition::Start);
    }
    let names = points.iter().map(|point| shorten(&point.label, NAME_CHARACTERS_MAX)).collect();
    Chart {
        note: match summary.points.len() > points.len() {
            true => format!("The first {} points of {}.", points.len(), summary.points.len()),
            false => String::new(),
        },
        ..plot(
            &Axis::linear(format!("rate, {}", unit.unit)).with_zero(),
            &Axis::category("", names).reversed(),
            &[bars],
            BAR_HEIGHT * points.len() as u32,
        )
        .with_right_margin(56)
    }
}

/// Horizontal bar with a label at its end.
fn labelled(value: f64, label: String, colour: &str) -> Value {
    json!({
        "value": figure(value), "itemStyle": { "color": colour },
        "label": { "show": true, "position": "right", "formatter": label, "color": TEXT, "fontSize": 11 },
    })
}
