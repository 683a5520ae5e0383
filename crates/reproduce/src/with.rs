//! Rows of other machines: results of the same reproduction that were made there.
use keepup_error::Cause;
use keepup_results::{PaperPage, PaperTable, Stored, StoredResult};

use crate::Reproduction;
use crate::error::ReproduceError;

/// Adds the measured rows of other machines' pages of the same paper to the tables with the same title.
pub(crate) fn add_rows(page: &mut PaperPage, with: &[StoredResult]) {
    for result in with {
        if let Some(other) = page_of(result).filter(|other| other.name == page.name) {
            add_page(page, other);
        }
    }
}

fn page_of(result: &StoredResult) -> Option<&PaperPage> {
    match &result.summary {
        Stored::Campaign(summary) => summary.paper.as_ref(),
        _ => None,
    }
}

/// Checks that a reproduction of `paper` can show a result of another machine.
///
/// # Errors
/// It is neither a reproduction of the same paper nor a result that the paper's own tables show.
pub fn check_result_of_other(paper: &dyn Reproduction, result: &StoredResult) -> Result<(), ReproduceError> {
    let why = match page_of(result) {
        Some(page) if page.name == paper.name() => return Ok(()),
        Some(page) => format!("it reproduces {}", page.name),
        None if paper.shows(result) => return Ok(()),
        None => "it reproduces no paper".to_owned(),
    };
    let why = Cause::new(format!("cannot use the result {}: {why}", result.path.display()));
    let why =
        why.with_hint(format!("--with RESULT, of keepup reproduce {} on another machine", paper.name()));
    Err(ReproduceError::Paper { name: paper.name().to_owned(), why })
}

fn add_page(page: &mut PaperPage, other: &PaperPage) {
    if other.scale != page.scale {
        page.limits.push(format!("the rows of {} are of scale {}", other.machine, other.scale));
    }
    for table in &mut page.tables {
        let same = |found: &&PaperTable| {
            (&found.title, &found.stands, &found.columns) == (&table.title, &table.stands, &table.columns)
        };
        let Some(found) = other.tables.iter().find(same) else { continue };
        let here = found.rows.iter().filter(|row| row.is_here).cloned();
        let here: Vec<_> = here
            .map(|mut row| {
                row.name = format!("{}: {}", other.machine, row.name.trim_start_matches("this machine, "));
                row
            })
            .collect();
        table.rows.extend(here);
    }
}

#[cfg(test)]
#[path = "with_tests.rs"]
mod tests;
