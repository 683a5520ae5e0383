//! Ratios of all figures to the baseline.
use keepup_error::Cause;
use keepup_measure::stats::{CHANCE_MAX, Pairing, VALUES_MIN, compare, median};
use keepup_measure::sum::Sums;
use keepup_results::{
    Better, Change, ComparedCell, ComparedRatio, ComparedRow, EVIDENCE_SECONDS_MIN, Figure, Quantity,
};

use super::systems::System;

/// Bootstrap resamples. The seed is fixed, so that the output is reproducible.
const RESAMPLES: u32 = 2000;
const SEED: u64 = 1;

/// Figures that at least two systems have and whose names contain `only`, in the order of the baseline.
pub(super) fn of(systems: &[System], only: Option<&str>, notes: &mut Vec<String>) -> Vec<ComparedRow> {
    let mut keys: Vec<&Figure> = Vec::new();
    for figure in systems.iter().flat_map(|system| &system.figures) {
        if !keys.iter().any(|known| known.is_same(figure)) {
            keys.push(figure);
        }
    }
    let (mut rows, mut alone) = (Vec::new(), 0);
    for key in keys {
        let row = row(systems, key);
        match row.cells.iter().flatten().count() {
            0 | 1 => alone += 1,
            _ if only.is_none_or(|text| name(&row).contains(text)) => rows.push(row),
            _ => {}
        }
    }
    if alone > 0 {
        notes.push(format!("{alone} figures were skipped: only one system has them"));
    }
    rows
}

/// Name of a row.
pub(super) fn name(row: &ComparedRow) -> String {
    let words = [row.place.as_str(), row.what.as_str(), row.quantity.name()];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
}

fn row(systems: &[System], key: &Figure) -> ComparedRow {
    let found: Vec<Option<&Figure>> =
        systems.iter().map(|system| system.figures.iter().find(|figure| figure.is_same(key))).collect();
    let base = found.first().copied().flatten();
    let cells = systems.iter().zip(&found).enumerate().map(|(number, (system, figure))| {
        let values = figure.map(|figure| figure.values.clone())?;
        let beside = base.filter(|_| number > 0).and_then(|base| {
            let is_paired = system.turns.is_some()
                && system.turns == systems[0].turns
                && values.len() == base.values.len();
            let is_published = system.published.is_some();
            let too_short = figure.is_some_and(|figure| figure.is_too_short) || base.is_too_short;
            ratio(&base.values, &values, key.quantity, is_paired, is_published).map(
                |beside| match too_short {
                    true => without_ratio(beside),
                    false => beside,
                },
            )
        });
        let is_too_short = figure.is_some_and(|figure| figure.is_too_short);
        Some(ComparedCell {
            median: median(&values)?,
            variation: variation(&values),
            values,
            is_too_short,
            beside,
        })
    });
    ComparedRow {
        place: key.place.clone(),
        what: key.what.clone(),
        quantity: key.quantity,
        cells: cells.collect(),
    }
}

fn ratio(
    base: &[f64],
    own: &[f64],
    quantity: Quantity,
    is_paired: bool,
    is_published: bool,
) -> Option<ComparedRatio> {
    let pairing = if is_paired { Pairing::Paired } else { Pairing::Apart };
    // More than 1 is better.
    let (first, second) = if quantity.better() == Better::Less { (own, base) } else { (base, own) };
    let found = compare(first, second, pairing, RESAMPLES, SEED)?;
    let change = match quantity.better() {
        // A published value has no repeats, and no run can add any.
        _ if is_published => Change::NotJudged,
        _ if base.len().min(own.len()) < VALUES_MIN => Change::TooFew,
        Better::Neither => Change::NotJudged,
        _ if !found.is_change() => Change::NotShown,
        _ if found.ratio > 1.0 => Change::Better,
        _ => Change::Worse,
    };
    // A ratio of too few values would be read as a rank.
    let judged = Some(found).filter(|_| change != Change::TooFew);
    let interval = judged.and_then(|found| found.interval);
    Some(ComparedRatio {
        ratio: judged.map(|found| found.ratio),
        lower: interval.map(|interval| interval.lower),
        upper: interval.map(|interval| interval.upper),
        chance: judged.and_then(|found| found.chance),
        effect: judged.map(|found| found.effect),
        is_paired,
        change,
    })
}

/// The comparison of a value that was measured for too short a time to be evidence.
fn without_ratio(beside: ComparedRatio) -> ComparedRatio {
    let change = Change::TooShort;
    ComparedRatio { ratio: None, lower: None, upper: None, chance: None, effect: None, change, ..beside }
}

/// Standard deviation over mean.
fn variation(values: &[f64]) -> Option<f64> {
    let count = values.len();
    let mean = values.iter().float_sum() / count as f64;
    if count < 2 || mean == 0.0 {
        return None;
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).float_sum();
    Some((squares / (count - 1) as f64).sqrt() / mean)
}

/// Whether a system lost events and the baseline none. A ratio cannot express this.
pub(super) fn loses_more(row: &ComparedRow, cell: &ComparedCell) -> bool {
    let lost = |cell: &ComparedCell| cell.values.iter().float_sum();
    row.cells.first().and_then(Option::as_ref).is_some_and(|base| lost(base) == 0.0 && lost(cell) > 0.0)
}

/// Reason for no ranking if every figure that could be ranked was measured for too short a time.
pub(super) fn all_too_short(rows: &[ComparedRow]) -> Option<String> {
    let beside = || rows.iter().flat_map(|row| &row.cells).flatten().filter_map(|cell| cell.beside);
    let mut judged = beside().filter(|beside| beside.change != Change::NotJudged).peekable();
    judged.peek()?;
    let why = format!("every measurement took less than {EVIDENCE_SECONDS_MIN} s, too short to be evidence");
    let hint = "measure for longer, or with more data";
    judged.all(|beside| beside.change == Change::TooShort).then(|| Cause::new(why).with_hint(hint).to_text())
}

/// Note about figures that are not ranked because they were measured for too short a time.
pub(super) fn too_short(rows: &[ComparedRow]) -> Option<String> {
    let is_too_short = |row: &&ComparedRow| row.cells.iter().flatten().any(|cell| cell.is_too_short);
    let count = rows.iter().filter(is_too_short).count();
    (count > 0).then(|| {
        format!(
            "{} measured for less than {EVIDENCE_SECONDS_MIN} s: too short to be evidence, not ranked",
            if count == 1 { "1 figure was".to_owned() } else { format!("{count} figures were") },
        )
    })
}

/// Note about the number of false positives to expect.
pub(super) fn by_chance(rows: &[ComparedRow]) -> Option<String> {
    let judged = rows
        .iter()
        .flat_map(|row| &row.cells)
        .flatten()
        .filter_map(|cell| cell.beside)
        .filter(|beside| matches!(beside.change, Change::Better | Change::Worse | Change::NotShown))
        .count();
    let expected = judged as f64 * CHANCE_MAX;
    (expected >= 0.5).then(|| {
        format!("{judged} ratios were tested: up to {expected:.0} of them may be significant by chance")
    })
}

/// Note if systems were measured one after the other: the ratios then include drift.
pub(super) fn not_alternated(systems: &[System], rows: &[ComparedRow]) -> Option<String> {
    let beside = || rows.iter().flat_map(|row| &row.cells).flatten().filter_map(|cell| cell.beside);
    let is_sequential = systems.iter().filter(|system| system.published.is_none()).count() > 1
        && beside().any(|beside| beside.ratio.is_some() && !beside.is_paired);
    is_sequential.then(|| {
        "the systems were not measured alternately: the ratios include any drift of the machine (a campaign \
         alternates)"
            .to_owned()
    })
}
