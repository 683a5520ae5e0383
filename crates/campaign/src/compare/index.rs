//! Index of each system: geometric mean of its ratios. The ranking does not depend on the baseline. Rows with
//! too few values, or that were measured for too short a time, do not count.
use fastrand::Rng;
use keepup_measure::stats::{median, quantile};
use keepup_measure::sum::Sums;
use keepup_results::{Better, Change, ComparedIndex, ComparedRow, Quantity};

use super::is_headline;
use super::systems::System;

const RESAMPLES: u32 = 1000;
const SEED: u64 = 1;

/// Indices of all systems. That of the baseline is 1. Empty if no other system has one.
pub(super) fn of(systems: &[System], rows: &[ComparedRow]) -> Vec<ComparedIndex> {
    let rows = chosen(rows);
    let index_of = |(number, system): (usize, &System)| {
        let shared: Vec<Sides<'_>> = rows.iter().filter_map(|row| sides(row, number)).collect();
        let changes = |change: Change| {
            let cells = rows.iter().filter_map(|row| row.cells[number].as_ref()?.beside);
            count(cells.filter(|beside| beside.change == change).count())
        };
        let interval = if number == 0 { None } else { interval(&shared) };
        ComparedIndex {
            system: system.name.clone(),
            index: mean_ratio(shared.iter().map(|sides| sides.ratio(median(sides.base), median(sides.own)))),
            lower: interval.map(|(lower, _)| lower),
            upper: interval.map(|(_, upper)| upper),
            rows: count(shared.len()),
            better: changes(Change::Better),
            worse: changes(Change::Worse),
        }
    };
    let indices: Vec<ComparedIndex> = systems.iter().enumerate().map(index_of).collect();
    let is_ranked = indices.iter().skip(1).any(|index| index.index.is_some());
    if is_ranked { indices } else { Vec::new() }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// One row for each operation: byte rate if any, otherwise operation rate, otherwise time.
pub(super) fn chosen(rows: &[ComparedRow]) -> Vec<&ComparedRow> {
    let has_preferred_row = |row: &ComparedRow| {
        let same = rows.iter().filter(|other| other.place == row.place && other.what == row.what);
        same.filter(|other| is_headline(other.quantity)).any(|other| other.quantity < row.quantity)
    };
    rows.iter().filter(|row| is_headline(row.quantity) && !has_preferred_row(row)).collect()
}

/// Values of the baseline and of a system in a row.
struct Sides<'a> {
    base: &'a [f64],
    own: &'a [f64],
    quantity: Quantity,
}

fn sides(row: &ComparedRow, number: usize) -> Option<Sides<'_>> {
    let values = |n: usize| row.cells.get(n)?.as_ref().map(|cell| &cell.values[..]);
    let (base, own) = (values(0)?, values(number)?);
    let beside = row.cells.get(number)?.as_ref()?.beside;
    if beside.is_some_and(|beside| matches!(beside.change, Change::TooFew | Change::TooShort)) {
        return None;
    }
    let is_usable = |values: &[f64]| values.iter().all(|value| *value > 0.0);
    (is_usable(base) && is_usable(own)).then_some(Sides { base, own, quantity: row.quantity })
}

impl Sides<'_> {
    /// More than 1 is better.
    fn ratio(&self, base: Option<f64>, own: Option<f64>) -> Option<f64> {
        let ratio = own? / base?;
        Some(if self.quantity.better() == Better::Less { 1.0 / ratio } else { ratio })
    }
}

/// Geometric mean, `None` if empty or if a value is missing.
fn mean_ratio(ratios: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let logarithms = ratios.map(|ratio| ratio.map(f64::ln)).collect::<Option<Vec<f64>>>()?;
    let count = logarithms.len();
    (count > 0).then(|| (logarithms.iter().float_sum() / count as f64).exp())
}

/// 95 % percentile bootstrap interval of the index. Resamples both sides of each row.
fn interval(rows: &[Sides<'_>]) -> Option<(f64, f64)> {
    if rows.is_empty() || rows.iter().any(|row| row.base.len() < 2 || row.own.len() < 2) {
        return None;
    }
    let mut rng = Rng::with_seed(SEED);
    let mut draw = |values: &[f64]| {
        let drawing: Vec<f64> = (0..values.len()).map(|_| values[rng.usize(..values.len())]).collect();
        median(&drawing)
    };
    let mut means = Vec::new();
    for _ in 0..RESAMPLES {
        means.push(mean_ratio(rows.iter().map(|row| row.ratio(draw(row.base), draw(row.own))))?);
    }
    Some((quantile(&means, 0.025)?, quantile(&means, 0.975)?))
}
