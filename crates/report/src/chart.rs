//! Drawings as declarations: what a chart shows, in the options of the library that draws it, with the
//! numbers behind it.
//!
//! Invariants: options are data, never code; colours are names that the page's theme fills in, and none of
//! them carries a meaning alone: a symbol, a dash or a word does so too.

mod axis;
mod heat;
mod panels;
mod series;

use serde_json::{Value, json};

pub(crate) use self::axis::{Axis, Scale, rate_scale, round_end, short, size_name, time_scale};
pub(crate) use self::heat::{Heat, heat};
pub(crate) use self::panels::{Panel, panels};
pub(crate) use self::series::{Dash, Mark, Series, Shape, Side, Symbol, pair};
use crate::page::Table;

/// A drawing, and what a reader needs beside it.
pub(crate) struct Chart {
    /// What is seen, with units.
    pub(crate) title: String,
    /// How it is to be read, where that does not go without saying.
    pub(crate) note: String,
    /// What symbols, dashes and colours stand for.
    pub(crate) keys: Vec<Key>,
    /// The drawing, as the options of the library.
    pub(crate) option: Value,
    /// The numbers.
    pub(crate) table: Table,
    /// Whether a table of the page has the same numbers, so that text pages do without these.
    pub(crate) is_told: bool,
    /// Pixels.
    pub(crate) height: u32,
}

/// One entry of the legend.
#[derive(Clone)]
pub(crate) struct Key {
    /// What it and those behind it are about, where there are several groups.
    pub(crate) group: String,
    /// What it stands for.
    pub(crate) name: String,
    /// How it looks.
    pub(crate) shape: Shape,
    /// Name of its colour.
    pub(crate) colour: &'static str,
}

/// Colours of series, in the order in which they are to be used.
pub(crate) const COLOURS: [&str; 6] = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6"];
/// What holds, what does not, and what is only there to compare with.
pub(crate) const GOOD: &str = "--good";
pub(crate) const BAD: &str = "--bad";
pub(crate) const FAINT: &str = "--faint";
pub(crate) const TEXT: &str = "--text";

/// The colour of the series with this number; there are six, then they come again with another dash.
pub(crate) fn colour(number: usize) -> &'static str {
    COLOURS[number % COLOURS.len()]
}

/// A number for a chart: four significant digits, which is more than a pixel shows; null where there is none.
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
    // Whole numbers are shorter without their point.
    if rounded.fract() == 0.0 && rounded.abs() < 1e15 { json!(rounded as i64) } else { json!(rounded) }
}

/// A chart of lines, bars and dots between two axes; `height` is that of the part between them, in pixels.
/// Title, note and numbers are the caller's to add.
pub(crate) fn plot(across: &Axis, up: &Axis, series: &[Series], height: u32) -> Chart {
    let panel = Panel { up: up.clone(), series, height: f64::from(height) };
    let (option, height) = panels(across, &[panel], false);
    Chart {
        title: String::new(),
        note: String::new(),
        keys: keys(series),
        option,
        table: Table::default(),
        is_told: false,
        height,
    }
}

/// The legend of a chart, one entry for each series with a name.
pub(crate) fn keys(series: &[Series]) -> Vec<Key> {
    let named = series.iter().filter(|series| !series.name.is_empty());
    named
        .map(|s| Key { group: String::new(), name: s.name.clone(), shape: s.shape(), colour: s.colour })
        .collect()
}

impl Chart {
    /// The same with so many pixels at its right, for what stands beside the longest bar.
    pub(crate) fn with_room_at_right(mut self, pixels: u32) -> Self {
        if let Some(grids) = self.option["grid"].as_array_mut() {
            grids.iter_mut().for_each(|grid| grid["right"] = json!(pixels));
        }
        self
    }
}

#[cfg(test)]
#[path = "chart_tests.rs"]
mod tests;
