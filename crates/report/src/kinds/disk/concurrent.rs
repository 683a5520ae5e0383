//! 1 to N files at once: what was moved, and the first file's rate times their number.

use keepup_results::{DiskPart, DiskPhase, DiskSummary};

use super::{NAME_CHARACTERS_MAX, middle, places};
use crate::chart::{Axis, Chart, Series, figure, plot, rate_scale, short};
use crate::format::shorten;
use crate::kinds::common::charts;
use crate::page::{Block, Cell, Table, right};

pub(super) fn blocks(summary: &DiskSummary) -> Vec<Block> {
    let drawn: Vec<Chart> = places(summary).into_iter().filter_map(|place| drawn(summary, &place)).collect();
    charts("Rate against the number of files at once", drawn).into_iter().collect()
}

/// The rate of the first file times the number of files, as the event logger's authors told it.
fn normalised(phase: &DiskPhase) -> Option<f64> {
    phase.parts.first().and_then(DiskPart::bytes_per_second).map(|rate| rate * phase.parts.len() as f64)
}

fn drawn(summary: &DiskSummary, place: &str) -> Option<Chart> {
    let kinds = summary.kinds();
    let parse = |phase: &str| {
        let (verb, rest) = phase.split_once(' ')?;
        Some((verb.to_owned(), rest.strip_suffix(" at once")?.parse::<u64>().ok()?))
    };
    let points: Vec<(String, u64)> =
        kinds.iter().filter(|kind| kind.0 == place).filter_map(|kind| parse(kind.1)).collect();
    let mut verbs: Vec<&str> = Vec::new();
    points.iter().for_each(|(verb, _)| {
        if !verbs.contains(&verb.as_str()) {
            verbs.push(verb)
        }
    });
    let most_files = points.iter().map(|point| point.1).max()?;
    let numbers: Vec<u64> = (1..=most_files).filter(|n| points.iter().any(|point| point.1 == *n)).collect();
    type Of = fn(&DiskPhase) -> Option<f64>;
    let ways: [(&str, Of); 2] = [("moved", DiskPhase::bytes_per_second), ("first file times N", normalised)];
    let mut lines: Vec<(String, Vec<Option<f64>>)> = Vec::new();
    for verb in &verbs {
        for (way, of) in ways {
            let value = |n: &u64| middle(summary, place, &format!("{verb} {n} at once"), of);
            lines.push((format!("{verb}, {way}"), numbers.iter().map(value).collect()));
        }
    }
    let unit = rate_scale(lines.iter().flat_map(|line| line.1.iter().flatten()).copied().fold(0.0, f64::max));
    let series: Vec<Series> = (0..)
        .zip(&lines)
        .map(|(number, (name, values))| {
            let mut line = Series::line(name.clone(), number, []);
            line.points = values.iter().map(|v| figure(v.map_or(f64::NAN, |v| unit.of(v)))).collect();
            line
        })
        .collect();
    let mut columns = vec![right("files at once")];
    columns.extend(lines.iter().map(|(name, _)| right(format!("{name}, {}", unit.unit))));
    let row = |(place, files): (usize, &u64)| -> Vec<Cell> {
        let value = |line: &(String, Vec<Option<f64>>)| line.1.get(place).copied().flatten();
        let cells =
            lines.iter().map(|line| value(line).map_or_else(String::new, |v| short(unit.of(v))).into());
        std::iter::once(Cell::from(files.to_string())).chain(cells).collect()
    };
    let table = Table { columns, rows: (0..).zip(&numbers).map(row).collect() };
    Some(Chart {
        title: format!(
            "{}: rate against the number of files, {}",
            shorten(place, NAME_CHARACTERS_MAX),
            unit.unit
        ),
        note: "Moved is what all files got together; the first file times N is how the event logger's test \
               told it."
            .into(),
        table,
        ..plot(
            &Axis::category("files at once", numbers.iter().map(u64::to_string).collect()),
            &Axis::linear(format!("rate, {}", unit.unit)).with_zero(),
            &series,
            230,
        )
    })
}
