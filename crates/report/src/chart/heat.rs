//! HeatMap maps: one cell for each pair of settings, darker for higher values, with the value in it.

use serde_json::{Value, json};

use super::axis::{Axis, short};
use super::{Chart, figure};
use crate::table::Table;

/// Share of the range above which cells are dark and need light text.
const DARK_FROM: f64 = 0.55;
/// Most cells that show their values.
const FIGURES_MAX: usize = 220;

/// Content of a heat map.
pub(crate) struct HeatMap {
    /// Name and labels of the x axis.
    pub(crate) across: (String, Vec<String>),
    /// Name and labels of the y axis, the first at the bottom.
    pub(crate) up: (String, Vec<String>),
    /// Column, row, value.
    pub(crate) cells: Vec<(usize, usize, f64)>,
    /// Unit of the values.
    pub(crate) unit: &'static str,
}

/// HeatMap map. The caller adds title, note and table.
pub(crate) fn heat_map(map: &HeatMap) -> Chart {
    let most = map.cells.iter().map(|cell| cell.2).fold(0.0, f64::max);
    let least = map.cells.iter().map(|cell| cell.2).fold(most, f64::min);
    let labelled = map.cells.len() <= FIGURES_MAX;
    let cell = |(x, y, value): &(usize, usize, f64)| {
        let share = if most > least { (value - least) / (most - least) } else { 0.0 };
        let colour = if share >= DARK_FROM { "--on-high" } else { "--text" };
        json!({ "value": [x, y, figure(*value)], "label": { "color": colour, "formatter": short(*value) } })
    };
    let data: Vec<Value> = map.cells.iter().map(cell).collect();
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
        legend: Vec::new(),
        option,
        table: Table::default(),
        is_in_table: false,
        height: height + 26 + 78,
    }
}
