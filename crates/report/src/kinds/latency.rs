//! Latency percentiles, one line for each operation.

use keepup_results::LatencyFigures;

use crate::chart::{Axis, Chart, Series, figure, plot, short, time_scale};
use crate::table::{Cell, Table, left, right};

/// Most lines in one chart.
pub(super) const LINES_MAX: usize = 12;

/// Percentiles of several operations, `None` without any. The table has those that are not drawn.
pub(super) fn chart(title: &str, what: &[(String, LatencyFigures)]) -> Option<Chart> {
    let longest = what.iter().map(|(_, times)| times.max_ns).max().filter(|ns| *ns > 0)? as f64 / 1e9;
    let unit = time_scale(longest / 30.0);
    let values = |times: &LatencyFigures| {
        [times.p50_ns, times.p99_ns, times.p99_9_ns, times.max_ns].map(|ns| unit.of(ns as f64 / 1e9))
    };
    let series = (0..).zip(what.iter().take(LINES_MAX)).map(|(number, (name, times))| {
        // A logarithmic axis has no 0.
        let points = values(times).map(|value| Some(value).filter(|value| *value > 0.0));
        let mut line = Series::line(name.clone(), number, []);
        line.points = points.into_iter().map(|value| figure(value.unwrap_or(f64::NAN))).collect();
        line
    });
    let series: Vec<Series> = series.collect();
    let names = ["p50", "p99", "p99.9", "longest"].map(str::to_owned).to_vec();
    let row = |(name, times): &(String, LatencyFigures)| -> Vec<Cell> {
        let mut row: Vec<Cell> = vec![name.as_str().into(), short(unit.of(times.mean_ns / 1e9)).into()];
        row.extend(values(times).map(|value| Cell::from(short(value))));
        row
    };
    let mut columns = vec![left(""), right(format!("mean, {}", unit.unit))];
    columns.extend(names.iter().map(|name| right(format!("{name}, {}", unit.unit))));
    let note = match what.len() > LINES_MAX {
        true => format!("The first {LINES_MAX} of {} are drawn; the table has all.", what.len()),
        false => String::new(),
    };
    Some(Chart {
        title: format!("{title}, {}", unit.unit),
        note,
        table: Table { columns, rows: what.iter().map(row).collect() },
        ..plot(
            &Axis::category("percentile", names),
            &Axis::log(format!("time, {} (logarithmic)", unit.unit)),
            &series,
            220,
        )
    })
}
