//! Stacked charts with a common x axis.

use serde_json::{Value, json};

use super::axis::Axis;
use super::series::Series;

/// Pixels above a panel, for the name of its y axis; below the last one, for the labels and the name of the x
/// axis; and for the zoom control.
const ABOVE: f64 = 26.0;
const BELOW: f64 = 40.0;
const BELOW_UNNAMED: f64 = 22.0;
const CONTROL: f64 = 28.0;

/// One chart of a stack.
pub(crate) struct Panel<'a> {
    pub(crate) up: Axis,
    pub(crate) series: &'a [Series],
    /// Height, pixels.
    pub(crate) height: f64,
}

/// Options of all panels and their total height in pixels. `is_zoomed` adds a common zoom control.
pub(crate) fn panels(across: &Axis, panels: &[Panel<'_>], is_zoomed: bool) -> (Value, u32) {
    let single = panels.len() == 1;
    let (mut grids, mut xs, mut ys, mut series) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut top = 0.0;
    for (number, panel) in panels.iter().enumerate() {
        top += ABOVE;
        let mut grid = json!({ "left": 52, "right": 14, "top": top, "height": panel.height });
        // A single panel sizes its left margin to its labels; several panels must align.
        grid["outerBoundsMode"] = json!(if single { "same" } else { "none" });
        if single {
            grid["left"] = json!(4);
            grid["outerBoundsContain"] = json!("axisLabel");
            // Top and bottom already have space for names and labels.
            grid["outerBounds"] = json!({ "left": 4, "right": 4, "top": 0, "bottom": 0 });
        }
        grids.push(grid);
        top += panel.height;
        let mut x = across.across();
        x["gridIndex"] = json!(number);
        if number + 1 < panels.len() {
            x["name"] = json!("");
            x["axisLabel"] = json!({ "show": false });
        }
        xs.push(x);
        let mut y = panel.up.up();
        y["gridIndex"] = json!(number);
        y["splitNumber"] = json!(if panel.height < 120.0 { 3 } else { 5 });
        if !single {
            y["nameTextStyle"] = json!({ "align": "left", "padding": [0, 0, 0, -44] });
        }
        ys.push(y);
        series.extend(panel.series.iter().map(|one| one.option(number)));
    }
    let all: Vec<usize> = (0..panels.len()).collect();
    let mut option = json!({
        "animation": false, "grid": grids, "xAxis": xs, "yAxis": ys, "series": series,
        "tooltip": { "trigger": "axis", "confine": true },
    });
    if !single {
        option["axisPointer"] = json!({ "link": [{ "xAxisIndex": "all" }] });
    }
    let mut height = top + if across.has_name() { BELOW } else { BELOW_UNNAMED };
    if is_zoomed {
        height += CONTROL;
        option["dataZoom"] = json!([{
            "type": "slider", "xAxisIndex": all, "height": 16, "bottom": 4, "filterMode": "none",
            "showDataShadow": false, "brushSelect": false, "labelPrecision": 1,
        }]);
    }
    (option, height as u32)
}
