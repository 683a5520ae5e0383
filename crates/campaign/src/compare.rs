//! Results beside each other: first what differs between the systems, then every figure that they share.
//!
//! Invariants: pure; systems that differ in more than was declared are not ranked unless the user insists; a
//! change is told only where chance does not explain it; what was published has no interval and says so.
mod differences;
mod error;
mod index;
mod rows;
mod systems;

use keepup_results::{
    COMPARE_SCHEMA_VERSION, Change, CompareSummary, ComparedLimit, ComparedRow, ComparedSystem, Headed, Kind,
    Quantity, StoredResult,
};

pub use self::error::CompareError;
use self::systems::System;

/// What is to be compared: results under one name are of one system, and their values are put together.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// What it is called.
    pub name: String,
    /// Its results, in the order in which they were measured.
    pub results: Vec<StoredResult>,
}

/// A system whose figures were published: one value each.
#[derive(Debug, Clone)]
pub struct Published {
    /// What it is called.
    pub name: String,
    /// Where it was published.
    pub source: String,
    /// When, where that is known.
    pub year: Option<u16>,
    /// Its figures, called as the test calls them.
    pub figures: Vec<keepup_results::Figure>,
}

/// How to compare.
#[derive(Debug, Clone, Default)]
pub struct CompareOptions {
    /// Name of the system that is 1; the first one unless given.
    pub baseline: Option<String>,
    /// In what the systems may differ.
    pub axes: Vec<String>,
    /// Rank them whatever differs.
    pub anyway: bool,
    /// No ratio may be below this.
    pub fail_below: Option<f64>,
    /// Only figures whose names hold this text.
    pub only: Option<String>,
}

/// Compares. The summary's command, version and time are the caller's to fill in.
///
/// # Errors
/// There is nothing to compare, or not the same test was run.
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
    let not_ranked = match options.anyway {
        true => None,
        false => differences::refusal(&differences, &options.axes),
    };
    let rows = rows::of(&systems, options.only.as_deref(), &mut notes);
    if rows.is_empty() {
        return Err(CompareError::NothingShared);
    }
    let indices = match not_ranked {
        None => index::of(&systems, &rows),
        Some(_) => Vec::new(),
    };
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
        systems: systems.iter().map(System::told).collect(),
        declared: options.axes.clone(),
        differences,
        not_ranked,
        rows,
        indices,
        notes,
    })
}

/// Quantities that a system is judged by as a whole: how much it does, or how long it takes for each.
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
            let Some(beside) = cell.beside.filter(|b| is_headline(row.quantity) && b.ratio < below) else {
                continue;
            };
            let told = format!("{} at {:.3} of the baseline", name(), beside.ratio);
            match beside.change {
                Change::Worse => limit.failed.push(told),
                Change::Better | Change::NotJudged => {}
                Change::NotShown | Change::TooFew => limit.open.push(told),
            }
        }
    }
    limit
}

impl System {
    fn told(&self) -> ComparedSystem {
        ComparedSystem {
            name: self.name.clone(),
            results: self.results.clone(),
            place: self.place.clone(),
            created: self.created.clone(),
            tool_version: self.tool_version.clone(),
            published: self.published.clone(),
        }
    }
}

/// The workload of a result in words: its kind and its test.
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
