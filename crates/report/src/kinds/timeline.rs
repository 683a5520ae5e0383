//! What went on through time: rates, what waited, stalls and cores, one below the other over one axis.

use crate::chart::{
    Axis, Chart, Dash, FAINT, Heat, Key, Mark, Panel, Scale, Series, heat, keys, panels, rate_scale, short,
    time_scale,
};
use crate::history::{History, Thin};
use crate::page::{Cell, Table, right};

/// Rates that are shown, with what they are called.
const RATES: [(&str, &str); 5] = [
    ("received_bytes_per_second", "in"),
    ("written_bytes_per_second", "written"),
    ("durable_bytes_per_second", "durable"),
    ("drained_bytes_per_second", "drained"),
    ("due_bytes_per_second", "due at the source"),
];
/// More cores than this have a map of their own, for lines of so many could not be told apart.
const CORES_MAX: usize = 8;
/// Cores in such a map; of more the busiest.
const CORES_MAPPED_MAX: usize = 128;
/// Rows of the table behind the lines.
const ROWS: usize = 40;
/// What is said of trials, where there are any.
const TRIALS_NOTE: &str = " Grey stretches are trials by their number, with an x where one failed.";
/// Trials that are named in the chart; more names would cover each other.
const NAMED_MAX: usize = 40;

/// The lines through time, and a map of the cores where there are many; none without samples.
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
    let keys = parts.iter().flat_map(|part| grouped(part.title, keys(&part.series))).collect();
    let names: Vec<&str> = parts.iter().map(|part| part.title).collect();
    let title = names.join(", ");
    let drawn: Vec<Panel<'_>> = parts
        .iter()
        .map(|part| Panel { up: part.up.clone(), series: &part.series, height: part.height })
        .collect();
    let across = Axis::linear(format!("time since the begin, {}", time.unit)).range(0.0, time.of(end));
    let (option, height) = panels(&across, &drawn, true);
    Some(Chart {
        title: format!("Through time: {title}"),
        note: "Of each stretch of time the lowest and the highest value are drawn; rates are over at least a \
             tenth of a second, those of what became durable or was drained over at least half a second."
            .to_owned() + if history.trials.is_empty() { "" } else { TRIALS_NOTE },
        keys,
        option,
        table: table(history, time, end),
        is_told: false,
        height,
    })
}

/// The keys of a panel, the first with its name.
fn grouped(title: &str, mut keys: Vec<Key>) -> Vec<Key> {
    if let Some(first) = keys.first_mut() {
        first.group = title.to_owned();
    }
    keys
}

struct Part {
    title: &'static str,
    up: Axis,
    series: Vec<Series>,
    height: f64,
}

/// A line of the history in units of its panel.
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
    // What is due stands behind the others, and differs from them.
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

/// Stretches of the trials, named by their number as in the table of trials.
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
        ("due and not yet written", history.line("backlog_bytes")),
        ("durable and not yet drained", history.line("drain_behind_bytes").filter(|line| line.most() > 0.0)),
    ];
    let found: Vec<(&str, &Thin)> =
        lines.into_iter().filter_map(|(name, line)| Some((name, line?))).collect();
    let most = found.iter().map(|(_, line)| line.most()).fold(0.0, f64::max);
    let unit = rate_scale(most);
    let mut series: Vec<Series> = (0..)
        .zip(&found)
        .map(|(number, (name, line))| drawn(name, number, line, time, unit.divisor))
        .collect();
    // A pool that is far from full would press all lines to the bottom.
    if let Some(pool) = pool_bytes.filter(|pool| most > pool / 4.0) {
        let first = series.remove(0).with_level(unit.of(pool), "the whole pool");
        series.insert(0, first);
    }
    let name = unit.unit.trim_end_matches("/s");
    (!series.is_empty()).then(|| Part {
        title: "what waits",
        up: Axis::linear(format!("waiting, {name}")),
        series,
        height: 130.0,
    })
}

fn stalls(history: &History, time: Scale) -> Option<Part> {
    let line = history.line("stall_ms")?;
    let series = vec![drawn("oldest write under way", 0, line, time, 1.0)];
    Some(Part { title: "stalls", up: Axis::linear("waiting since, ms"), series, height: 96.0 })
}

fn cores(history: &History, time: Scale) -> Option<Part> {
    let cores = history.cores();
    let each = (0..).zip(cores.iter().filter(|_| cores.len() <= CORES_MAX));
    let series: Vec<Series> =
        each.map(|(number, (core, line))| drawn(&format!("core {core}"), number, line, time, 1.0)).collect();
    let up = Axis::linear("cores busy, per cent").range(0.0, 100.0).every(50.0);
    (!series.is_empty()).then_some(Part { title: "cores", up, series, height: 96.0 })
}

/// How busy every core was, where there are many; `None` where lines tell it.
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
        (0..).zip(of_stretches(line, end, true)).filter_map(move |(at, busy)| Some((at, row, busy?)))
    });
    let until = |row: usize| short(time.of(end * (row + 1) as f64 / ROWS as f64));
    let map = Heat {
        across: (format!("until, {}", time.unit), (0..ROWS).map(until).collect()),
        up: ("core".into(), shown.iter().map(|(core, _)| core.to_string()).collect()),
        fields: fields.collect(),
        unit: "per cent",
    };
    let row = |(core, line): &(u32, &Thin)| -> Vec<Cell> {
        vec![core.to_string().into(), short(mean(line)).into(), short(line.most()).into()]
    };
    let columns = vec![right("core"), right("busy, mean, per cent"), right("most")];
    Some(Chart {
        title: format!("How busy each of {} cores was through time, per cent", cores.len()),
        note: "Means of equal stretches of time.".into(),
        table: Table { columns, rows: shown.iter().map(row).collect() },
        ..heat(&map)
    })
}

fn mean(line: &Thin) -> f64 {
    let (sum, points) = line.buckets().iter().fold((0.0, 0), |(sum, n), b| (sum + b.sum, n + b.points));
    if points > 0 { sum / points as f64 } else { 0.0 }
}

/// The same in rows of equal time: means of rates with the lowest, the most of what waited.
fn table(history: &History, time: Scale, end: f64) -> Table {
    let columns: Vec<(String, &Thin, f64, bool)> = RATES
        .iter()
        .filter_map(|(line, name)| Some((format!("{name}, MB/s"), history.line(line)?, 1e6, true)))
        .chain(
            [("pool_bytes", "pool, most, MB", 1e6), ("backlog_bytes", "not yet written, most, MB", 1e6)]
                .into_iter()
                .filter_map(|(line, name, unit)| Some((name.to_owned(), history.line(line)?, unit, false))),
        )
        .chain(history.line("stall_ms").map(|line| ("oldest write, most, ms".to_owned(), line, 1.0, false)))
        .collect();
    let busiest = history.cores().into_values().map(|line| of_stretches(line, end, false));
    let busiest = busiest.reduce(|a, b| a.into_iter().zip(b).map(|(a, b)| higher(a, b)).collect());
    let mut titles = vec![right(format!("until, {}", time.unit))];
    titles.extend(columns.iter().map(|(name, _, _, _)| right(name.clone())));
    let mut figures: Vec<Vec<Option<f64>>> = columns
        .iter()
        .map(|(_, line, unit, is_mean)| {
            of_stretches(line, end, *is_mean).into_iter().map(|value| value.map(|v| v / unit)).collect()
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

/// Mean or highest value of a line in each of the table's stretches.
fn of_stretches(line: &Thin, end: f64, is_mean: bool) -> Vec<Option<f64>> {
    let mut sums = vec![(0.0, 0u64, f64::NEG_INFINITY); ROWS];
    for bucket in line.buckets() {
        let place = if end > 0.0 { bucket.high.0 / end * ROWS as f64 } else { 0.0 };
        if let Some(stretch) = sums.get_mut((place as usize).min(ROWS - 1)) {
            *stretch = (stretch.0 + bucket.sum, stretch.1 + bucket.points, stretch.2.max(bucket.high.1));
        }
    }
    let value = |(sum, points, high): (f64, u64, f64)| {
        (points > 0).then(|| if is_mean { sum / points as f64 } else { high })
    };
    sums.into_iter().map(value).collect()
}
