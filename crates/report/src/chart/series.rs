//! Series of a chart: lines, bars, dots and reference lines.

use serde_json::{Value, json};

use super::figure;

/// Series of points.
pub(crate) struct Series {
    /// Name in the legend, empty for none.
    pub(crate) name: String,
    pub(crate) colour: &'static str,
    pub(crate) mark: Mark,
    /// Points as the chart library takes them: a number, a pair, or an object with its own style.
    pub(crate) points: Vec<Value>,
    /// Reference lines with their labels.
    pub(crate) lines: Vec<Value>,
    /// Shaded intervals of the x axis with their labels.
    pub(crate) areas: Vec<Value>,
}

/// How a series is drawn.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Mark {
    /// Line, with symbols if there are few points.
    Line(Dash, Option<Symbol>),
    /// Bars from the axis.
    Bars,
    /// Thin lines from the axis to a symbol.
    Stems,
    /// Symbols only.
    Dots(Symbol),
}

/// Sample of a series in the legend.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Shape {
    Line(Dash, Option<Symbol>),
    Dot(Symbol),
    /// Bar, or its outline if hollow.
    Box {
        is_hollow: bool,
    },
}

/// Position of the label of a vertical line. The end is at the top, unless the y axis is reversed.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum LabelPosition {
    Start,
    End,
    /// At the end, right of the line.
    EndRight,
    /// At the end, left of the line.
    EndLeft,
}

/// Dash pattern.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Dash {
    Solid,
    Dashed,
    Dotted,
}

/// Symbol of a point.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Symbol {
    Circle,
    Square,
    Triangle,
    Diamond,
    Cross,
}

const SYMBOLS: [Symbol; 4] = [Symbol::Circle, Symbol::Square, Symbol::Triangle, Symbol::Diamond];
const DASHES: [Dash; 3] = [Dash::Solid, Dash::Dashed, Dash::Dotted];
/// Cross as a path, because the library has none.
const CROSS: &str = "path://M1,0L5,4L9,0L10,1L6,5L10,9L9,10L5,6L1,10L0,9L4,5L0,1Z";

impl Dash {
    /// Dash of the series with this number, to tell series apart without colour.
    pub(crate) fn of(number: usize) -> Self {
        DASHES[number % DASHES.len()]
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Solid => "solid",
            Self::Dashed => "dashed",
            Self::Dotted => "dotted",
        }
    }
}

impl Symbol {
    /// Symbol of the series with this number.
    pub(crate) fn of(number: usize) -> Self {
        SYMBOLS[number % SYMBOLS.len()]
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Circle => "circle",
            Self::Square => "rect",
            Self::Triangle => "triangle",
            Self::Diamond => "diamond",
            Self::Cross => CROSS,
        }
    }
}

impl Series {
    pub(crate) fn new(name: impl Into<String>, colour: &'static str, mark: Mark, points: Vec<Value>) -> Self {
        Self { name: name.into(), colour, mark, points, lines: Vec::new(), areas: Vec::new() }
    }

    /// Line through points. `None` breaks it.
    pub(crate) fn line(
        name: impl Into<String>,
        number: usize,
        points: impl IntoIterator<Item = (f64, Option<f64>)>,
    ) -> Self {
        let points: Vec<Value> = points.into_iter().map(|(x, y)| pair(x, y)).collect();
        let symbol = (points.len() <= 60).then(|| Symbol::of(number));
        Self::new(name, super::colour(number), Mark::Line(Dash::of(number), symbol), points)
    }

    /// Adds a labelled horizontal line.
    pub(crate) fn with_horizontal_line(mut self, at: f64, name: &str) -> Self {
        self.lines.push(json!({ "yAxis": figure(at), "name": name }));
        self
    }

    /// Adds a labelled vertical line.
    pub(crate) fn with_vertical_line(mut self, at: f64, name: &str, side: LabelPosition) -> Self {
        let (position, align) = match side {
            LabelPosition::Start => ("start", "center"),
            LabelPosition::End => ("end", "center"),
            LabelPosition::EndRight => ("end", "left"),
            LabelPosition::EndLeft => ("end", "right"),
        };
        let label = json!({ "position": position, "align": align });
        self.lines.push(json!({ "xAxis": figure(at), "name": name, "label": label }));
        self
    }

    /// Adds a vertical line without a label, explained in the legend.
    pub(crate) fn with_unlabelled_line(mut self, at: f64, dash: Dash) -> Self {
        self.lines.push(
            json!({ "xAxis": figure(at), "name": "", "lineStyle": { "type": dash.name(), "width": 2 } }),
        );
        self
    }

    /// Shades an interval of the x axis.
    pub(crate) fn with_shaded_area(mut self, from: f64, to: f64, name: &str) -> Self {
        self.areas.push(json!([{ "xAxis": figure(from), "name": name }, { "xAxis": figure(to) }]));
        self
    }

    pub(crate) fn shape(&self) -> Shape {
        match self.mark {
            Mark::Line(dash, symbol) => Shape::Line(dash, symbol),
            Mark::Bars | Mark::Stems => Shape::Box { is_hollow: false },
            Mark::Dots(symbol) => Shape::Dot(symbol),
        }
    }

    /// Options of the series in the panel with this number.
    pub(super) fn option(&self, panel: usize) -> Value {
        let mut option = json!({
            "name": self.name, "data": self.points, "xAxisIndex": panel, "yAxisIndex": panel,
            "itemStyle": { "color": self.colour },
        });
        match self.mark {
            Mark::Line(dash, symbol) => {
                line(&mut option, self.colour, dash);
                option["showSymbol"] = json!(symbol.is_some());
                option["symbol"] = json!(symbol.unwrap_or(Symbol::Circle).name());
                option["symbolSize"] = json!(7);
            }
            Mark::Bars => {
                option["type"] = json!("bar");
                option["barMaxWidth"] = json!(34);
                option["barMinHeight"] = json!(1);
                option["labelLayout"] = json!({ "hideOverlap": true });
            }
            Mark::Stems => {
                option["type"] = json!("bar");
                option["barWidth"] = json!(2);
                option["silent"] = json!(true);
                option["barGap"] = json!("-100%");
            }
            Mark::Dots(symbol) => {
                option["type"] = json!("scatter");
                option["symbol"] = json!(symbol.name());
                option["symbolSize"] = json!(11);
            }
        }
        if !self.lines.is_empty() {
            option["markLine"] = json!({
                "symbol": "none", "silent": true, "data": self.lines,
                "lineStyle": { "color": super::TEXT, "type": "dashed", "width": 1 },
                "label": { "formatter": "{b}", "position": "insideEndTop", "color": super::TEXT,
                    "fontSize": 11,
                    "backgroundColor": "--page", "padding": [0, 2] },
            });
        }
        if !self.areas.is_empty() {
            option["markArea"] = json!({
                "silent": true, "data": self.areas, "itemStyle": { "color": "--band" },
                "label": { "position": "insideTop", "color": "--soft", "fontSize": 10 },
            });
        }
        option
    }
}

fn line(option: &mut Value, colour: &str, dash: Dash) {
    option["type"] = json!("line");
    option["lineStyle"] = json!({ "color": colour, "type": dash.name(), "width": 1.6 });
}

/// Point, or a gap in the line without a value.
pub(crate) fn pair(x: f64, y: Option<f64>) -> Value {
    json!([figure(x), y.map_or(Value::Null, figure)])
}
