//! Published systems as rows beside measured ones: which test of today measures what a paper's figure says.
use keepup_campaign::Published;
use keepup_error::Cause;
use keepup_model::papers::{Paper, PublishedFigure, paper};
use keepup_results::{Figure, Quantity};

use crate::error::ReproduceError;

/// One figure of a paper, and what a test of today calls the same.
struct Same {
    paper: &'static str,
    /// Table or figure of the paper.
    place: &'static str,
    /// The paper's condition and quantity.
    condition: &'static str,
    quantity: &'static str,
    /// Today's test.
    workload: &'static str,
    /// What it calls it.
    what: &'static str,
}

const fn same(
    paper: &'static str,
    [place, condition, quantity]: [&'static str; 3],
    [workload, what]: [&'static str; 2],
) -> Same {
    Same { paper, place, condition, quantity, workload, what }
}

const QUIET: &str = "no other load";
const ESRF: &str = "esrf-2007";
const CDF: &str = "cdf-csl";

/// All of them are rates.
const ALL: [Same; 12] = [
    same(ESRF, ["table 1", QUIET, "single file write"], ["disk testdisk", "create 1 x 4 GiB"]),
    same(ESRF, ["table 1", QUIET, "many files write"], ["disk testdisk", "create 512 x 8 MiB"]),
    same(ESRF, ["table 1", QUIET, "block write"], ["disk block", "write"]),
    same(ESRF, ["table 1", QUIET, "block read"], ["disk block", "read"]),
    same(CDF, ["section 2", "one file", "write rate"], ["disk concurrent", "write 1 at once"]),
    same(CDF, ["section 2", "one file", "read rate"], ["disk concurrent", "read 1 at once"]),
    same(CDF, ["figure 1", "2 files at once", "write rate"], ["disk concurrent", "write 2 at once"]),
    same(CDF, ["figure 1", "2 files at once", "read rate"], ["disk concurrent", "read 2 at once"]),
    same(CDF, ["figure 1", "3 files at once", "write rate"], ["disk concurrent", "write 3 at once"]),
    same(CDF, ["figure 1", "3 files at once", "read rate"], ["disk concurrent", "read 3 at once"]),
    same(CDF, ["figure 1", "4 files at once", "write rate"], ["disk concurrent", "write 4 at once"]),
    same(CDF, ["figure 1", "4 files at once", "read rate"], ["disk concurrent", "read 4 at once"]),
];

/// The systems of a paper whose figures a test of today measures too.
///
/// # Errors
/// There is no such paper, or it measured nothing that `workload` does.
pub fn published_systems(name: &str, workload: &str) -> Result<Vec<Published>, ReproduceError> {
    let nothing = |why: Cause| ReproduceError::NotPublished { paper: name.to_owned(), why };
    let paper = paper(name).map_err(|error| nothing(Cause::of(&error)))?;
    let mut systems: Vec<Published> = Vec::new();
    for same in ALL.iter().filter(|same| same.paper == name && same.workload == workload) {
        for figure in paper.figures.iter().filter(|figure| same.is_of(figure)) {
            let Some(value) = figure.in_base() else { continue };
            let values = vec![value];
            let (place, what) = (String::new(), same.what.to_owned());
            let found = Figure { place, what, quantity: Quantity::BytesPerSecond, values };
            match systems.iter_mut().find(|system| system.name == figure.system) {
                Some(system) => system.figures.push(found),
                None => systems.push(system(&paper, figure, found)),
            }
        }
    }
    if systems.is_empty() {
        let mut known: Vec<&str> = ALL.iter().filter(|s| s.paper == name).map(|s| s.workload).collect();
        known.dedup();
        return Err(nothing(match known.is_empty() {
            true => "none of its figures is one that a test of keepup measures alone".into(),
            false => format!("it has figures for {}, and this is {workload}", known.join(" and ")).into(),
        }));
    }
    Ok(systems)
}

fn system(paper: &Paper, figure: &PublishedFigure, found: Figure) -> Published {
    Published {
        name: figure.system.clone(),
        source: paper.title.clone(),
        year: paper.year,
        figures: vec![found],
    }
}

impl Same {
    fn is_of(&self, figure: &PublishedFigure) -> bool {
        let of = (figure.place.as_str(), figure.condition.as_str(), figure.quantity.as_str());
        of == (self.place, self.condition, self.quantity)
    }
}

#[cfg(test)]
#[path = "systems_tests.rs"]
mod tests;
