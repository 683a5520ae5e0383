//! Runs that systems with too few values need to be ranked.
use keepup_measure::stats::{Pairing, Resolution, VALUES_MIN, runs_to_resolve};
use keepup_results::{Change, ComparedRow, ComparedRuns};

use super::systems::System;
use super::{index, rows};

/// Difference that the runs resolve.
const DIFFERENCE: f64 = 0.05;

/// One entry for each system with too few values in every judged row.
pub(super) fn of(systems: &[System], rows: &[ComparedRow]) -> Vec<ComparedRuns> {
    let needed = |(number, system): (usize, &System)| {
        let judged = |row: &ComparedRow| {
            let change = row.cells[number].as_ref()?.beside?.change;
            // More runs of the same length are no help.
            (!matches!(change, Change::NotJudged | Change::TooShort)).then_some(change)
        };
        let is_too_few = |row: &&ComparedRow| judged(row) == Some(Change::TooFew);
        if rows.iter().filter_map(judged).any(|change| change != Change::TooFew) {
            return None;
        }
        let mut open: Vec<&ComparedRow> = index::chosen(rows).into_iter().filter(is_too_few).collect();
        if open.is_empty() {
            open = rows.iter().filter(is_too_few).collect();
        }
        (!open.is_empty()).then(|| of_system(system, number, &open))
    };
    systems.iter().enumerate().skip(1).filter_map(needed).collect()
}

/// Runs for the row with the largest spread. The number of missing runs counts from the row with the fewest.
fn of_system(system: &System, number: usize, open: &[&ComparedRow]) -> ComparedRuns {
    let values = |row: &ComparedRow, number: usize| {
        row.cells[number].as_ref().map_or_else(Vec::new, |cell| cell.values.clone())
    };
    let resolved = open.iter().filter_map(|row| {
        let is_paired = row.cells[number].as_ref()?.beside?.is_paired;
        let pairing = if is_paired { Pairing::Paired } else { Pairing::Apart };
        Some((*row, runs_to_resolve(&values(row, 0), &values(row, number), pairing, DIFFERENCE)?))
    });
    let widest = resolved.max_by(|(_, a), (_, b)| a.spread.total_cmp(&b.spread));
    let runs = widest.map_or(VALUES_MIN as u32, |(_, Resolution { runs, .. })| runs);
    let more = |number: usize| {
        let present = open.iter().map(|row| values(row, number).len()).min().unwrap_or_default();
        runs.saturating_sub(u32::try_from(present).unwrap_or(u32::MAX))
    };
    ComparedRuns {
        system: system.name.clone(),
        difference: DIFFERENCE,
        figure: widest.map_or_else(String::new, |(row, _)| rows::name(row)),
        spread: widest.map(|(_, Resolution { spread, .. })| spread),
        runs,
        more_of_baseline: more(0),
        more_of_system: more(number),
    }
}
