//! Maps: a field for each pair of two settings, the darker the higher its figure, which stands in it.

use serde_json::{Value, json};

use super::axis::{Axis, short};
use super::{Chart, figure};
use crate::page::Table;

/// From this share of the highest figure on, a field is so dark that its text must be light.
const DARK_FROM: f64 = 0.55;
/// More fields than this leave no room for figures.
const FIGURES_MAX: usize = 220;

/// What a map shows.
pub(crate) struct Heat {
    /// Name of the settings at the bottom, and they themselves.
    pub(crate) across: (String, Vec<String>),
    /// The same at the left, the first at the bottom.
    pub(crate) up: (String, Vec<String>),
    /// Place across, place up, figure.
    pub(crate) fields: Vec<(usize, usize, f64)>,
    /// Unit of the figures.
    pub(crate) unit: &'static str,
}

/// A map. Title, note and numbers are the caller's to add.
pub(crate) fn heat(map: &Heat) -> Chart {
    let most = map.fields.iter().map(|field| field.2).fold(0.0, f64::max);
    let least = map.fields.iter().map(|field| field.2).fold(most, f64::min);
    let labelled = map.fields.len() <= FIGURES_MAX;
    let field = |(x, y, value): &(usize, usize, f64)| {
        let share = if most > least { (value - least) / (most - least) } else { 0.0 };
        let colour = if share >= DARK_FROM { "--on-high" } else { "--text" };
        json!({ "value": [x, y, figure(*value)], "label": { "color": colour, "formatter": short(*value) } })
    };
    let data: Vec<Value> = map.fields.iter().map(field).collect();
    let mut across = Axis::category(map.across.0.clone(), map.across.1.clone()).across();
    across["splitArea"] = json!({ "show": false });
    let height = (34 * map.up.1.len() as u32).clamp(100, 420);
    let option = json!({
        "animation": false,
        "grid": { "left": 4, "right": 14, "top": 26, "height": height, "outerBoundsMode": "same",
            "outerBoundsContain": "axisLabel",
            "outerBounds": { "left": 4, "right": 4, "top": 0, "bottom": 0 } },
        "xAxis": across, "yAxis": Axis::category(map.up.0.clone(), map.up.1.clone()).up(),
        "tooltip": { "trigger": "item", "confine": true },
        "visualMap": {
            "type": "continuous", "orient": "horizontal", "left": "center", "bottom": 0, "itemWidth": 12,
            "itemHeight": 140, "min": figure(least),
            "max": figure(if most > least { most } else { least + 1.0 }),
            "text": [format!("{} {}", short(most), map.unit), short(least)],
            "inRange": { "color": ["--low", "--mid", "--high"] },
        },
        "series": [{
            "type": "heatmap", "name": map.unit, "data": data,
            "label": { "show": labelled, "fontSize": 11 },
            "itemStyle": { "borderColor": "--page", "borderWidth": 1 },
        }],
    });
    Chart {
        title: String::new(),
        note: String::new(),
        keys: Vec::new(),
        option,
        table: Table::default(),
        is_told: false,
        height: height + 26 + 78,
    }
}
