//! Charts over time: rates, queued data, stalls and cores on a common axis.

use crate::chart::{
    Axis, Chart, Dash, FAINT, HeatMap, LegendEntry, Mark, Panel, Scale, Series, heat_map, legend, panels,
    rate_scale, short, time_scale,
};
use crate::history::{History, Thin};
use crate::table::{Cell, Table, right};

/// Rates shown, with their names.
const RATES: [(&str, &str); 5] = [
    ("received_bytes_per_second", "received"),
    ("written_bytes_per_second", "written"),
    ("durable_bytes_per_second", "durable"),
    ("drained_bytes_per_second", "drained"),
    ("due_bytes_per_second", "due at the source"),
];
/// Most cores drawn as lines. More are drawn as a heat map.
const CORES_MAX: usize = 8;
/// Most cores in the heat map: the busiest.
const CORES_MAPPED_MAX: usize = 128;
/// Rows of the table.
const ROWS: usize = 40;
/// Note about trials.
const TRIALS_NOTE: &str = " Grey areas are trials with their numbers; x marks failed ones.";
/// Most trials with a label: more labels would overlap.
const NAMED_MAX: usize = 40;

/// Lines over time, and a heat map if there are many cores. Empty without samples.
pub(super) fn charts(history: &History, pool_bytes: Option<f64>) -> Vec<Chart> {
    let end = history.lines.values().filter_map(|line| line.buckets().last()).map(|b| b.high.0.max(b.low.0));
    let end = end.fold(0.0, f64::max);
    let time = time_scale(end);
    lines(history, end, time, pool_bytes).into_iter().chain(core_map(history, end, time)).collect()
}

fn lines(history: &History, end: f64, time: Scale, pool_bytes: Option<f64>) -> Option<Chart> {
    let mut parts = Vec::new();
    parts.extend(rates(history, time));
    parts.extend(waiting(history, time, pool_bytes));
    parts.extend(stalls(history, time));
    parts.extend(cores(history, time));
    if parts.is_empty() {
        return None;
    }
    let legend = parts.iter().flat_map(|part| grouped(part.title, legend(&part.series))).collect();
    let names: Vec<&str> = parts.iter().map(|part| part.title).collect();
    let title = names.join(", ");
    let drawn: Vec<Panel<'_>> = parts
        .iter()
        .map(|part| Panel { up: part.up.clone(), series: &part.series, height: part.height })
        .collect();
    let across = Axis::linear(format!("elapsed time, {}", time.unit)).range(0.0, time.of(end));
    let (option, height) = panels(&across, &drawn, true);
    Some(Chart {
        title: format!("Over time: {title}"),
        note: "Minimum and maximum of each interval. Rates are averages over at least 0.1 s; durable and \
             drained rates over at least 0.5 s."
            .to_owned()
            + if history.trials.is_empty() { "" } else { TRIALS_NOTE },
        legend,
        option,
        table: table(history, time, end),
        is_in_table: false,
        height,
    })
}

/// Legend of a panel, with its title as the group name.
fn grouped(title: &str, mut legend: Vec<LegendEntry>) -> Vec<LegendEntry> {
    if let Some(first) = legend.first_mut() {
        first.group = title.to_owned();
    }
    legend
}

struct Part {
    title: &'static str,
    up: Axis,
    series: Vec<Series>,
    height: f64,
}

/// Line of the history in the units of its panel.
fn drawn(name: &str, number: usize, line: &Thin, time: Scale, unit: f64) -> Series {
    let points = line.points(unit).into_iter().map(|(at, value)| (time.of(at), value));
    Series::line(name, number, points)
}

fn rates(history: &History, time: Scale) -> Option<Part> {
    let found: Vec<(&str, &Thin)> =
        RATES.iter().filter_map(|(line, name)| Some((*name, history.line(line)?))).collect();
    let most = found.iter().map(|(_, line)| line.most()).fold(0.0, f64::max);
    let unit = rate_scale(most);
    let mut series: Vec<Series> = (0..)
        .zip(&found)
        .map(|(number, (name, line))| drawn(name, number, line, time, unit.divisor))
        .collect();
    // The due rate is a reference in the background.
    if found.last().is_some_and(|(name, _)| *name == "due at the source") {
        series.rotate_right(1);
        if let Some(due) = series.first_mut() {
            (due.colour, due.mark) = (FAINT, Mark::Line(Dash::Dotted, None));
        }
    }
    mark_trials(history, time, series.first_mut()?);
    let up = Axis::linear(format!("rate, {}", unit.unit));
    Some(Part { title: "rates", up, series, height: 210.0 })
}

/// Shades the trials and labels them with their numbers in the table of trials.
fn mark_trials(history: &History, time: Scale, series: &mut Series) {
    let is_named = history.trials.len() <= NAMED_MAX;
    let areas = (1..).zip(&history.trials).filter(|(number, _): &(usize, _)| number % 2 == 1 || is_named);
    for (number, trial) in areas {
        let mark = if trial.passed { "" } else { " x" };
        let name =
            if is_named && trial.to_s > trial.from_s { format!("{number}{mark}") } else { String::new() };
        series.areas.push(serde_json::json!([
            { "xAxis": crate::chart::figure(time.of(trial.from_s)), "name": name },
            { "xAxis": crate::chart::figure(time.of(trial.to_s)) },
        ]));
    }
}

fn waiting(history: &History, time: Scale, pool_bytes: Option<f64>) -> Option<Part> {
    let lines = [
        ("pool in use", history.line("pool_bytes")),
        ("due, not written", history.line("backlog_bytes")),
        ("durable, not drained", history.line("drain_behind_bytes").filter(|line| line.most() > 0.0)),
    ];
    let found: Vec<(&str, &Thin)> =
        lines.into_iter().filter_map(|(name, line)| Some((name, line?))).collect();
    let most = found.iter().map(|(_, line)| line.most()).fold(0.0, f64::max);
    let unit = rate_scale(most);
    let mut series: Vec<Series> = (0..)
        .zip(&found)
        .map(|(number, (name, line))| drawn(name, number, line, time, unit.divisor))
        .collect();
    // The line would flatten the others if the pool is far from full.
    if let Some(pool) = pool_bytes.filter(|pool| most > pool / 4.0) {
        let first = series.remove(0).with_horizontal_line(unit.of(pool), "pool size");
        series.insert(0, first);
    }
    let name = unit.unit.trim_end_matches("/s");
    (!series.is_empty()).then(|| Part {
        title: "queued data",
        up: Axis::linear(format!("queued, {name}")),
        series,
        height: 130.0,
    })
}

fn stalls(history: &History, time: Scale) -> Option<Part> {
    let line = history.line("stall_ms")?;
    let series = vec![drawn("oldest write in flight", 0, line, time, 1.0)];
    Some(Part { title: "stalls", up: Axis::linear("age, ms"), series, height: 96.0 })
}

fn cores(history: &History, time: Scale) -> Option<Part> {
    let cores = history.cores();
    let each = (0..).zip(cores.iter().filter(|_| cores.len() <= CORES_MAX));
    let series: Vec<Series> =
        each.map(|(number, (core, line))| drawn(&format!("core {core}"), number, line, time, 1.0)).collect();
    let up = Axis::linear("cores busy, per cent").range(0.0, 100.0).every(50.0);
    (!series.is_empty()).then_some(Part { title: "cores", up, series, height: 96.0 })
}

/// Heat map of core load, `None` if there are few cores.
fn core_map(history: &History, end: f64, time: Scale) -> Option<Chart> {
    let cores = history.cores();
    if cores.len() <= CORES_MAX {
        return None;
    }
    let mut shown: Vec<(u32, &Thin)> = cores.iter().map(|(core, line)| (*core, *line)).collect();
    shown.sort_by(|a, b| mean(b.1).total_cmp(&mean(a.1)));
    shown.truncate(CORES_MAPPED_MAX);
    shown.sort_by_key(|core| core.0);
    let fields = (0..).zip(&shown).flat_map(|(row, (_, line))| {
        let row: usize = row;
        (0..).zip(by_interval(line, end, true)).filter_map(move |(at, busy)| Some((at, row, busy?)))
    });
    let until = |row: usize| short(time.of(end * (row + 1) as f64 / ROWS as f64));
    let map = HeatMap {
        across: (format!("until, {}", time.unit), (0..ROWS).map(until).collect()),
        up: ("core".into(), shown.iter().map(|(core, _)| core.to_string()).collect()),
        cells: fields.collect(),
        unit: "per cent",
    };
    let row = |(core, line): &(u32, &Thin)| -> Vec<Cell> {
        vec![core.to_string().into(), short(mean(line)).into(), short(line.most()).into()]
    };
    let columns = vec![right("core"), right("busy, mean, per cent"), right("maximum")];
    Some(Chart {
        title: format!("Load of {} cores over time, per cent", cores.len()),
        note: "Averages over equal intervals.".into(),
        table: Table { columns, rows: shown.iter().map(row).collect() },
        ..heat_map(&map)
    })
}

fn mean(line: &Thin) -> f64 {
    let (sum, points) = line.buckets().iter().fold((0.0, 0), |(sum, n), b| (sum + b.sum, n + b.points));
    if points > 0 { sum / points as f64 } else { 0.0 }
}

/// Table over equal intervals: means of rates, maxima of queued data.
fn table(history: &History, time: Scale, end: f64) -> Table {
    let columns: Vec<(String, &Thin, f64, bool)> = RATES
        .iter()
        .filter_map(|(line, name)| Some((format!("{name}, MB/s"), history.line(line)?, 1e6, true)))
        .chain(
            [("pool_bytes", "pool, max, MB", 1e6), ("backlog_bytes", "not written, max, MB", 1e6)]
                .into_iter()
                .filter_map(|(line, name, unit)| Some((name.to_owned(), history.line(line)?, unit, false))),
        )
        .chain(history.line("stall_ms").map(|line| ("oldest write, max, ms".to_owned(), line, 1.0, false)))
        .collect();
    let busiest = history.cores().into_values().map(|line| by_interval(line, end, false));
    let busiest = busiest.reduce(|a, b| a.into_iter().zip(b).map(|(a, b)| higher(a, b)).collect());
    let mut titles = vec![right(format!("until, {}", time.unit))];
    titles.extend(columns.iter().map(|(name, _, _, _)| right(name.clone())));
    let mut figures: Vec<Vec<Option<f64>>> = columns
        .iter()
        .map(|(_, line, unit, is_mean)| {
            by_interval(line, end, *is_mean).into_iter().map(|value| value.map(|v| v / unit)).collect()
        })
        .collect();
    if let Some(busiest) = busiest {
        titles.push(right("busiest core, per cent"));
        figures.push(busiest);
    }
    let rows =
        (0..ROWS).filter(|row| figures.iter().any(|column| column.get(*row).is_some_and(Option::is_some)));
    let row = |row: usize| {
        let until = time.of(end * (row + 1) as f64 / ROWS as f64);
        let cells = figures.iter().map(|column| column.get(row).copied().flatten());
        std::iter::once(Cell::from(short(until)))
            .chain(cells.map(|v| v.map_or_else(String::new, short).into()))
            .collect()
    };
    Table { rows: rows.map(row).collect(), columns: titles }
}

fn higher(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    }
}

/// Mean or maximum of a line in each interval of the table.
fn by_interval(line: &Thin, end: f64, is_mean: bool) -> Vec<Option<f64>> {
    let mut sums = vec![(0.0, 0u64, f64::NEG_INFINITY); ROWS];
    for bucket in line.buckets() {
        let place = if end > 0.0 { bucket.high.0 / end * ROWS as f64 } else { 0.0 };
        if let Some(interval) = sums.get_mut((place as usize).min(ROWS - 1)) {
            *interval = (interval.0 + bucket.sum, interval.1 + bucket.points, interval.2.max(bucket.high.1));
        }
    }
    let value = |(sum, points, high): (f64, u64, f64)| {
        (points > 0).then(|| if is_mean { sum / points as f64 } else { high })
    };
    sums.into_iter().map(value).collect()
}
