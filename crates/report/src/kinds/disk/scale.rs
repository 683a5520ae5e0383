//! Scaling over volumes: rate and CPU by number of volumes.

use keepup_results::{DiskFinding, DiskPhase, DiskSummary};

use super::phases::{Column, cpu_percent, machine_percent, megabytes, of_places, table};
use super::{NAME_CHARACTERS_MAX, middle, places};
use crate::chart::{Axis, Chart, Series, figure, plot, rate_scale, short};
use crate::format::{percent, shorten};
use crate::kinds::common::charts;
use crate::page::Block;
use crate::table::{Cell, Table, left, right};

pub(super) fn blocks(summary: &DiskSummary, sentences: &mut Vec<String>) -> Vec<Block> {
    sentences.extend(finding(summary));
    let drawn = places(summary).into_iter().flat_map(|place| drawn(summary, &place));
    let drawn: Vec<Chart> = drawn.map(|chart| Chart { is_in_table: true, ..chart }).collect();
    let mut blocks = of_places(summary, "step by step", NOTE, |place| rows(summary, place));
    let charts = charts("Rate and CPU by number of volumes", drawn);
    blocks.extend(charts.map(|block| Block { is_side_by_side: true, ..block }));
    blocks
}

/// Note below the table.
const NOTE: &str = "Medians. MB = 10^6 bytes. CPU: keepup with its kernel workers; machine: all programs. \
                    Both in per cent of one core. Evenness: slowest over fastest volume.";

/// Table with a row for each number of volumes.
fn rows(summary: &DiskSummary, place: &str) -> Table {
    let spread = |phase: &DiskPhase| {
        let rates = phase.parts.iter().filter_map(|part| part.bytes_per_second());
        let (least, most) = rates.fold((f64::MAX, 0.0f64), |(l, m), rate| (l.min(rate), m.max(rate)));
        (most > 0.0).then(|| least / most)
    };
    let per_cpu = |phase: &DiskPhase| {
        let operations = phase.operations.filter(|_| phase.cpu_seconds > 0.0)?;
        Some(operations as f64 / phase.cpu_seconds)
    };
    let columns: [Column<'_>; 7] = [
        ("MB/s", &megabytes, 1),
        ("CPU %", &cpu_percent, 1),
        ("machine %", &machine_percent, 1),
        ("CPU, s/GB", &DiskPhase::cpu_seconds_per_gb, 3),
        ("requests per CPU s", &per_cpu, 0),
        ("p99, ms", &|phase| phase.latency.map(|latency| latency.p99_ns as f64 / 1e6), 2),
        ("evenness", &spread, 2),
    ];
    table(summary, place, "at once", |phase| Some(phase.to_owned()), &columns)
}

fn finding(summary: &DiskSummary) -> Option<String> {
    let found = summary.runs.iter().rev().find_map(|run| match &run.finding {
        Some(DiskFinding::Scale(found)) => Some(found),
        _ => None,
    })?;
    let volumes = crate::format::plural(u64::from(found.knee_volumes), "volume");
    let knee = match found.knee_is_beyond {
        true => format!("The rate scales up to {volumes}, the most tested."),
        false => format!(
            "The rate scales up to {volumes}; the next one adds less than half of the first one's rate."
        ),
    };
    let cost =
        found.cpu_per_volume.map(|cpu| format!(" Each volume costs {} of a core.", percent(cpu * 100.0)));
    Some(format!("{knee}{}", cost.unwrap_or_default()))
}

fn drawn(summary: &DiskSummary, place: &str) -> Vec<Chart> {
    let kinds = summary.kinds();
    let phases: Vec<&str> = kinds.iter().filter(|kind| kind.0 == place).map(|kind| kind.1).collect();
    let names: Vec<String> = phases.iter().map(|phase| (*phase).to_owned()).collect();
    let values = |of: &dyn Fn(&DiskPhase) -> Option<f64>| -> Vec<Option<f64>> {
        phases.iter().map(|phase| middle(summary, place, phase, of)).collect()
    };
    let rates = values(&DiskPhase::bytes_per_second);
    let unit = rate_scale(rates.iter().flatten().copied().fold(0.0, f64::max));
    let rates: Vec<Option<f64>> = rates.iter().map(|rate| rate.map(|rate| unit.of(rate))).collect();
    let share =
        |seconds: f64, phase: &DiskPhase| (phase.seconds > 0.0).then(|| 100.0 * seconds / phase.seconds);
    let ours = values(&|phase| share(phase.cpu_seconds, phase));
    let machine = values(&|phase| share(phase.machine_cpu_seconds?, phase));
    let line = |name: &str, number: usize, values: &[Option<f64>]| {
        let mut line = Series::line(name, number, []);
        line.points = values.iter().map(|value| figure(value.unwrap_or(f64::NAN))).collect();
        line
    };
    let of = |title: &str, unit: &str, series: &[Series], columns: &[(&str, &[Option<f64>])]| {
        let mut heads = vec![left("")];
        heads.extend(columns.iter().map(|(name, _)| right(*name)));
        let row = |(number, name): (usize, &String)| -> Vec<Cell> {
            let cell = |values: &[Option<f64>]| {
                values.get(number).copied().flatten().map_or_else(String::new, short)
            };
            std::iter::once(Cell::from(name.as_str()))
                .chain(columns.iter().map(|(_, v)| cell(v).into()))
                .collect()
        };
        Chart {
            title: title.to_owned(),
            table: Table { columns: heads, rows: (0..).zip(&names).map(row).collect() },
            ..plot(&Axis::category("at once", names.clone()), &Axis::linear(unit).with_zero(), series, 210)
        }
    };
    let place = shorten(place, NAME_CHARACTERS_MAX);
    let rate_name = format!("rate, {}", unit.unit);
    vec![
        of(
            &format!("Rate of all volumes together, {}: {place}", unit.unit),
            &rate_name,
            &[line("all together", 0, &rates)],
            &[(&rate_name, &rates)],
        ),
        of(
            &format!("CPU, per cent of one core: {place}"),
            "CPU, per cent of a core",
            &[line("keepup", 0, &ours), line("whole machine", 1, &machine)],
            &[("keepup, per cent", &ours), ("whole machine, per cent", &machine)],
        ),
    ]
}
