//! Rows of other machines: results of the same reproduction that were made there.
use keepup_results::{PaperPage, PaperTable, Stored, StoredResult};

/// Adds the measured rows of other machines' pages of the same paper to the tables with the same title, and
/// says which results are of no use.
pub(crate) fn add_rows(page: &mut PaperPage, with: &[StoredResult]) {
    for result in with {
        // The page of the paper itself uses results of other kinds.
        let Stored::Campaign(summary) = &result.summary else { continue };
        let path = result.path.display();
        match &summary.paper {
            Some(other) if other.name == page.name => add_page(page, other),
            Some(other) => {
                page.limits.push(format!("{path}: not shown, because it reproduces {}", other.name))
            }
            None => page.limits.push(format!("{path}: not shown, because it reproduces no paper")),
        }
    }
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
