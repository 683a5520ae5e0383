//! Forest plot: ratios with their intervals and a line at "no difference".

use serde_json::json;

use crate::chart::{
    Axis, BAD, Chart, Dash, FAINT, GOOD, LabelPosition, LegendEntry, Mark, Series, Shape, Symbol, TEXT,
    figure, plot, round_end, short,
};
use crate::format::shorten;
use crate::table::{Cell, Table, left, right};

/// Most rows drawn. The table has all.
const ROWS_MAX: usize = 60;
const NAME_CHARACTERS_MAX: usize = 64;

/// Effect that a ratio shows.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Effect {
    Better,
    Worse,
    /// None, too few values, or not judged.
    Nothing,
}

/// Ratio. More than 1 is better.
pub(super) struct Ratio {
    pub(super) name: String,
    pub(super) ratio: f64,
    pub(super) interval: Option<(f64, f64)>,
    pub(super) effect: Effect,
    /// Interpretation.
    pub(super) words: String,
}

/// Builds the chart, `None` if no ratio can be drawn.
pub(super) fn chart(title: &str, baseline: &str, ratios: &[Ratio]) -> Option<Chart> {
    let drawn: Vec<&Ratio> =
        ratios.iter().filter(|one| one.ratio > 0.0 && one.ratio.is_finite()).take(ROWS_MAX).collect();
    let ends = drawn.iter().flat_map(|one| {
        let (lower, upper) = one.interval.unwrap_or((one.ratio, one.ratio));
        [one.ratio, lower.max(one.ratio / 20.0), upper.min(one.ratio * 20.0)]
    });
    let (least, most) = ends.fold((1.0f64, 1.0f64), |(least, most), end| (least.min(end), most.max(end)));
    let dots = |effect: Effect| {
        let of = (0..).zip(&drawn).filter(move |(_, one)| one.effect == effect);
        of.map(|(row, one): (usize, _)| {
            json!({ "value": [figure(one.ratio), row],
                "label": { "show": true, "position": "top", "formatter": short(one.ratio),
                    "color": TEXT, "fontSize": 10 } })
        })
        .collect::<Vec<_>>()
    };
    let mut first = Series::new("better", GOOD, Mark::Dots(Symbol::Circle), dots(Effect::Better))
        .with_vertical_line(1.0, &shorten(baseline, 24), LabelPosition::Start);
    for (row, one) in (0..).zip(&drawn) {
        let Some((lower, upper)) = one.interval else { continue };
        let row: usize = row;
        let colour = match one.effect {
            Effect::Better => GOOD,
            Effect::Worse => BAD,
            Effect::Nothing => FAINT,
        };
        first.lines.push(json!([
            { "coord": [figure(lower.max(one.ratio / 20.0)), row], "label": { "show": false },
                "lineStyle": { "type": "solid", "width": 2, "color": colour } },
            { "coord": [figure(upper.min(one.ratio * 20.0)), row] },
        ]));
    }
    let series = [
        first,
        Series::new("worse", BAD, Mark::Dots(Symbol::Cross), dots(Effect::Worse)),
        Series::new("no significant difference", FAINT, Mark::Dots(Symbol::Diamond), dots(Effect::Nothing)),
    ];
    let mut legend = crate::chart::legend(&series);
    let line = Shape::Line(Dash::Solid, None);
    legend.push(LegendEntry {
        group: String::new(),
        name: "95 % interval".into(),
        shape: line,
        colour: FAINT,
    });
    let names: Vec<String> = drawn.iter().map(|one| shorten(&one.name, NAME_CHARACTERS_MAX)).collect();
    let note = match ratios.len() > drawn.len() {
        true => format!("The first {} of {} are drawn; the table has all.", drawn.len(), ratios.len()),
        false => String::new(),
    };
    (!drawn.is_empty()).then(|| Chart {
        title: title.to_owned(),
        note,
        legend,
        table: table(ratios),
        ..plot(
            &Axis::log("ratio, more than 1 is better (logarithmic)")
                .range(round_end(least / 1.05, false), round_end(most * 1.05, true)),
            &Axis::category("", names.clone()).reversed(),
            &series,
            30 * names.len() as u32,
        )
    })
}

fn table(ratios: &[Ratio]) -> Table {
    let row = |one: &Ratio| -> Vec<Cell> {
        let end = |pick: fn((f64, f64)) -> f64| one.interval.map(pick).map_or_else(String::new, short);
        vec![
            one.name.as_str().into(),
            short(one.ratio).into(),
            end(|interval| interval.0).into(),
            end(|interval| interval.1).into(),
            one.words.as_str().into(),
        ]
    };
    let columns = vec![left("what"), right("ratio"), right("lower"), right("upper"), left("")];
    Table { columns, rows: ratios.iter().take(600).map(row).collect() }
}
