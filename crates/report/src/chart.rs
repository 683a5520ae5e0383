//! Charts as options of the chart library, with a table of their numbers.
//!
//! Invariants: options are data, never code; colours are names that the theme of the page resolves; a symbol,
//! a dash or a word repeats what a colour says.

mod axis;
mod heat;
mod panels;
mod series;

use serde_json::{Value, json};

pub(crate) use self::axis::{Axis, Scale, rate_scale, round_end, short, size_name, time_scale};
pub(crate) use self::heat::{HeatMap, heat_map};
pub(crate) use self::panels::{Panel, panels};
pub(crate) use self::series::{Dash, LabelPosition, Mark, Series, Shape, Symbol, pair};
use crate::table::Table;

/// Chart with its title, legend and table.
pub(crate) struct Chart {
    /// Title with units.
    pub(crate) title: String,
    /// How to read it, if that is not obvious.
    pub(crate) note: String,
    /// Legend.
    pub(crate) legend: Vec<LegendEntry>,
    /// Options of the chart library.
    pub(crate) option: Value,
    /// Table of the numbers.
    pub(crate) table: Table,
    /// Whether another table of the page has the same numbers. Text output then omits this one.
    pub(crate) is_in_table: bool,
    /// Height, pixels.
    pub(crate) height: u32,
}

/// Legend entry.
#[derive(Clone)]
pub(crate) struct LegendEntry {
    /// Title of the group that starts with this entry, if there are several groups.
    pub(crate) group: String,
    /// Name of the series.
    pub(crate) name: String,
    /// Sample line or symbol.
    pub(crate) shape: Shape,
    /// Name of the colour.
    pub(crate) colour: &'static str,
}

/// Colours of series, in order of use.
pub(crate) const COLOURS: [&str; 6] = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6"];
/// Colours of passed and failed points, and of references.
pub(crate) const GOOD: &str = "--good";
pub(crate) const BAD: &str = "--bad";
pub(crate) const FAINT: &str = "--faint";
pub(crate) const TEXT: &str = "--text";

/// Colour of the series with this number. Colours repeat after six, with another dash.
pub(crate) fn colour(number: usize) -> &'static str {
    COLOURS[number % COLOURS.len()]
}

/// JSON number with four significant digits, more than a pixel shows; null if not finite.
pub(crate) fn figure(value: f64) -> Value {
    if !value.is_finite() {
        return Value::Null;
    }
    if value == 0.0 {
        return json!(0);
    }
    let digits = 3 - value.abs().log10().floor() as i32;
    let rounded = if digits >= 0 {
        let factor = 10f64.powi(digits.min(300));
        (value * factor).round() / factor
    } else {
        let factor = 10f64.powi(-digits);
        (value / factor).round() * factor
    };
    // Integers are shorter without a decimal point.
    if rounded.fract() == 0.0 && rounded.abs() < 1e15 { json!(rounded as i64) } else { json!(rounded) }
}

/// Chart of lines, bars and dots. `height` is that of the plot area, in pixels. The caller adds title, note
/// and table.
pub(crate) fn plot(across: &Axis, up: &Axis, series: &[Series], height: u32) -> Chart {
    let panel = Panel { up: up.clone(), series, height: f64::from(height) };
    let (option, height) = panels(across, &[panel], false);
    Chart {
        title: String::new(),
        note: String::new(),
        legend: legend(series),
        option,
        table: Table::default(),
        is_in_table: false,
        height,
    }
}

/// Legend with one entry for each named series.
pub(crate) fn legend(series: &[Series]) -> Vec<LegendEntry> {
    let named = series.iter().filter(|series| !series.name.is_empty());
    named
        .map(|s| LegendEntry {
            group: String::new(),
            name: s.name.clone(),
            shape: s.shape(),
            colour: s.colour,
        })
        .collect()
}

impl Chart {
    /// Sets the right margin in pixels, for the label of the longest bar.
    pub(crate) fn with_right_margin(mut self, pixels: u32) -> Self {
        if let Some(grids) = self.option["grid"].as_array_mut() {
            grids.iter_mut().for_each(|grid| grid["right"] = json!(pixels));
        }
        self
    }
}

#[cfg(test)]
#[path = "chart_tests.rs"]
mod tests;
