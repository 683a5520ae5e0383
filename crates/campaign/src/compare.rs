//! Comparison of results: differences between the systems, then ratios of their common figures.
//!
//! Invariants: pure; systems with undeclared differences are not ranked unless forced; changes are reported
//! only if significant; too few values, and measurements of less than 1 s, have no ratio; published figures
//! have no intervals.
mod differences;
mod error;
mod index;
mod intervals;
mod rows;
mod runs;
mod systems;

use keepup_results::{
    COMPARE_SCHEMA_VERSION, Change, CompareSummary, ComparedLimit, ComparedRow, ComparedSystem, Headed, Kind,
    Quantity, StoredResult,
};

pub use self::error::CompareError;
use self::systems::System;

/// System to compare. The values of its results are pooled.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Name.
    pub name: String,
    /// Results in order of measurement.
    pub results: Vec<StoredResult>,
}

/// Published system, with one value for each figure.
#[derive(Debug, Clone)]
pub struct Published {
    /// Name.
    pub name: String,
    /// Publication.
    pub source: String,
    /// Year, if known.
    pub year: Option<u16>,
    /// Figures, with the names of the test.
    pub figures: Vec<keepup_results::Figure>,
}

/// Options of a comparison.
#[derive(Debug, Clone, Default)]
pub struct CompareOptions {
    /// Baseline system. Default: the first one.
    pub baseline: Option<String>,
    /// Declared differences.
    pub axes: Vec<String>,
    /// Rank despite undeclared differences.
    pub anyway: bool,
    /// Fail if a ratio is below this.
    pub fail_below: Option<f64>,
    /// Compare only figures whose names contain this text.
    pub only: Option<String>,
}

/// Compares systems. The caller sets command, version and time of the summary.
///
/// # Errors
/// Nothing to compare, or different tests.
pub fn compare(
    candidates: &[Candidate],
    published: &[Published],
    options: &CompareOptions,
) -> Result<CompareSummary, CompareError> {
    let mut notes = Vec::new();
    let mut systems = systems::of(candidates, &mut notes)?;
    let workload = systems::one_workload(&systems)?;
    systems::put_first(&mut systems, options.baseline.as_deref())?;
    let differences = differences::of(&mut systems, &options.axes, &mut notes);
    let place = match &systems[0].places()[..] {
        [place] => place.clone(),
        _ => String::new(),
    };
    systems.extend(published.iter().map(|published| System::published(published, &place)));
    if systems.len() < 2 {
        return Err(CompareError::OneSystem { name: systems.remove(0).name });
    }
    let refusal = match options.anyway {
        true => None,
        false => differences::refusal(&differences, &options.axes),
    };
    let rows = rows::of(&systems, options.only.as_deref(), &mut notes);
    if rows.is_empty() {
        return Err(CompareError::NothingShared);
    }
    let not_ranked = refusal.or_else(|| rows::all_too_short(&rows));
    let indices = match not_ranked {
        None => index::of(&systems, &rows),
        Some(_) => Vec::new(),
    };
    let runs_needed = runs::of(&systems, &rows);
    notes.extend(rows::too_short(&rows));
    notes.extend(rows::by_chance(&rows));
    notes.extend(rows::not_alternated(&systems, &rows));
    let first = &systems[0];
    Ok(CompareSummary {
        schema_version: COMPARE_SCHEMA_VERSION,
        kind: Kind::Compare,
        tool_version: String::new(),
        created: String::new(),
        command: String::new(),
        workload,
        plan: first.plan.clone(),
        environment: first.environment.clone(),
        limit: options.fail_below.map(|below| limit(&systems, &rows, below)),
        systems: systems.iter().map(System::summary).collect(),
        declared: options.axes.clone(),
        differences,
        not_ranked,
        rows,
        indices,
        runs_needed,
        qualified: intervals::of(&systems),
        notes,
    })
}

/// Whether a quantity counts for the index: rates and times per operation.
fn is_headline(quantity: Quantity) -> bool {
    matches!(
        quantity,
        Quantity::BytesPerSecond
            | Quantity::OperationsPerSecond
            | Quantity::MeanSeconds
            | Quantity::SecondsPerRegister
    )
}

fn limit(systems: &[System], rows: &[ComparedRow], below: f64) -> ComparedLimit {
    let mut limit = ComparedLimit { below, failed: Vec::new(), open: Vec::new() };
    for row in rows {
        for (system, cell) in systems.iter().zip(&row.cells).skip(1) {
            let Some(cell) = cell else { continue };
            let name = || format!("{}: {}", system.name, rows::name(row));
            if row.quantity == Quantity::Lost && rows::loses_more(row, cell) {
                limit.failed.push(name());
            }
            let Some(beside) = cell.beside.filter(|_| is_headline(row.quantity)) else { continue };
            if beside.change == Change::TooFew {
                limit.open.push(format!("{}: too few values", name()));
            }
            if beside.change == Change::TooShort {
                limit.open.push(format!("{}: measured for too short a time", name()));
            }
            let Some(ratio) = beside.ratio.filter(|ratio| *ratio < below) else { continue };
            let text = format!("{} at {ratio:.3} of the baseline", name());
            match beside.change {
                Change::Worse => limit.failed.push(text),
                Change::Better => {}
                Change::NotShown | Change::TooFew | Change::TooShort | Change::NotJudged => {
                    limit.open.push(text)
                }
            }
        }
    }
    limit
}

impl System {
    fn summary(&self) -> ComparedSystem {
        ComparedSystem {
            name: self.name.clone(),
            results: self.results.clone(),
            place: self.place.clone(),
            created: self.created.clone(),
            tool_version: self.tool_version.clone(),
            machines: self.machines.clone(),
            published: self.published.clone(),
        }
    }
}

/// Kind and test of a result.
#[must_use]
pub fn workload_of(result: &StoredResult) -> String {
    let head = result.summary.head();
    let kind = serde_json::to_value(head.kind).ok();
    let kind = kind.as_ref().and_then(|kind| kind.as_str()).unwrap_or_default();
    match head.workload.starts_with(kind) {
        true => head.workload.to_owned(),
        false => format!("{kind} {}", head.workload),
    }
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
