//! Background loads: requested and achieved amount of each load over all runs.

use keepup_measure::stats::median;
use keepup_results::{LoadResult, LoadUnit};

use crate::format::{NOT_MEASURED, digits, first_line, or_not_measured, percent, rate, shorten};
use crate::page::{Block, Item};
use crate::table::{Cell, Table, Tone, left, right};

/// Longest load text in the table.
const NAME_CHARACTERS_MAX: usize = 60;
/// Most runs listed in which a load missed its rate.
const NAMED_MAX: usize = 8;

/// Table of all loads over all runs, none without loads.
pub(super) fn block(loads: &[LoadResult]) -> Option<Block> {
    let mut specs: Vec<&str> = Vec::new();
    for load in loads {
        if !specs.contains(&load.spec.as_str()) {
            specs.push(&load.spec);
        }
    }
    let of = |spec: &str| loads.iter().filter(|load| load.spec == spec).collect::<Vec<_>>();
    let rows = specs.iter().filter_map(|spec| row(&of(spec))).collect();
    let columns = vec![
        left("load"),
        right("runs"),
        right("asked"),
        right("median achieved"),
        right("lowest"),
        right("its CPU, cores"),
        left(""),
    ];
    let problems: Vec<String> = specs.iter().flat_map(|spec| problems(&of(spec))).collect();
    let more = problems.len().saturating_sub(NAMED_MAX);
    let mut items = vec![Item::Table(Table { columns, rows })];
    if !problems.is_empty() {
        let more = (more > 0).then(|| format!("and {more} more"));
        items.push(Item::List(problems.into_iter().take(NAMED_MAX).chain(more).collect()));
    }
    (!specs.is_empty()).then(|| Block::new("Background load", items))
}

/// Formats a rate in the unit of its load.
pub(crate) fn amount(unit: LoadUnit, value: f64) -> String {
    match unit {
        LoadUnit::BytesPerSecond => rate(value),
        LoadUnit::Cores => format!("{} cores", digits(value)),
    }
}

/// Row of a load over its runs.
fn row(runs: &[&LoadResult]) -> Option<Vec<Cell>> {
    let first = runs.first()?;
    let of = |value: fn(&LoadResult) -> Option<f64>| -> Vec<f64> {
        runs.iter().filter_map(|load| value(load)).collect()
    };
    let achieved = of(|load| load.achieved);
    let lowest = achieved.iter().copied().reduce(f64::min);
    let mark = match () {
        () if runs.iter().any(|load| load.failure.is_some()) => Cell::toned("ended early", Tone::Bad),
        () if runs.iter().any(|load| load.fell_short) => Cell::toned("fell short", Tone::Doubtful),
        () => Cell::toned("reached", Tone::Good),
    };
    let text = |value: Option<f64>| or_not_measured(value, |value| amount(first.unit, value));
    Some(vec![
        shorten(&first.spec, NAME_CHARACTERS_MAX).into(),
        runs.len().to_string().into(),
        amount(first.unit, first.asked).into(),
        text(median(&achieved)).into(),
        text(lowest).into(),
        median(&of(LoadResult::cores)).map_or_else(|| NOT_MEASURED.to_owned(), digits).into(),
        mark,
    ])
}

/// Runs in which a load missed its rate, with the reason.
fn problems(runs: &[&LoadResult]) -> Vec<String> {
    let problem = |(number, load): (usize, &&LoadResult)| {
        let run = if runs.len() > 1 { format!(" in run {number}") } else { String::new() };
        problem(load, &run)
    };
    (1..).zip(runs).filter_map(problem).collect()
}

/// Reason why a load missed its rate in `run`, if it did.
pub(crate) fn problem(load: &LoadResult, run: &str) -> Option<String> {
    match (&load.failure, load.share()) {
        (Some(why), _) => Some(format!("load {} ended{run}: {}", load.spec, first_line(why))),
        (None, Some(share)) if load.fell_short => {
            Some(format!("load {} fell short{run}: {} of what was asked", load.spec, percent(100.0 * share)))
        }
        _ => None,
    }
}

#[cfg(test)]
#[path = "loads_tests.rs"]
mod tests;
