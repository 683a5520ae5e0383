//! Published systems for comparisons: maps figures of papers to tests of keepup.
use keepup_campaign::Published;
use keepup_error::Cause;
use keepup_model::papers::{Paper, PublishedFigure, paper};
use keepup_results::{Figure, Quantity};

use crate::error::ReproduceError;

/// Figure of a paper with the matching figure of a test.
struct MatchingFigure {
    paper: &'static str,
    /// Table or figure of the paper.
    place: &'static str,
    /// Condition and quantity in the paper.
    condition: &'static str,
    quantity: &'static str,
    /// Test of keepup.
    workload: &'static str,
    /// Name of the figure in the test.
    what: &'static str,
}

const fn matching(
    paper: &'static str,
    [place, condition, quantity]: [&'static str; 3],
    [workload, what]: [&'static str; 2],
) -> MatchingFigure {
    MatchingFigure { paper, place, condition, quantity, workload, what }
}

const QUIET: &str = "no other load";
const ESRF: &str = "esrf-2007";
const CDF: &str = "cdf-csl";

/// All matches. All are rates.
const ALL: [MatchingFigure; 12] = [
    matching(ESRF, ["table 1", QUIET, "single file write"], ["disk testdisk", "create 1 x 4 GiB"]),
    matching(ESRF, ["table 1", QUIET, "many files write"], ["disk testdisk", "create 512 x 8 MiB"]),
    matching(ESRF, ["table 1", QUIET, "block write"], ["disk block", "write"]),
    matching(ESRF, ["table 1", QUIET, "block read"], ["disk block", "read"]),
    matching(CDF, ["section 2", "one file", "write rate"], ["disk concurrent", "write 1 at once"]),
    matching(CDF, ["section 2", "one file", "read rate"], ["disk concurrent", "read 1 at once"]),
    matching(CDF, ["figure 1", "2 files at once", "write rate"], ["disk concurrent", "write 2 at once"]),
    matching(CDF, ["figure 1", "2 files at once", "read rate"], ["disk concurrent", "read 2 at once"]),
    matching(CDF, ["figure 1", "3 files at once", "write rate"], ["disk concurrent", "write 3 at once"]),
    matching(CDF, ["figure 1", "3 files at once", "read rate"], ["disk concurrent", "read 3 at once"]),
    matching(CDF, ["figure 1", "4 files at once", "write rate"], ["disk concurrent", "write 4 at once"]),
    matching(CDF, ["figure 1", "4 files at once", "read rate"], ["disk concurrent", "read 4 at once"]),
];

/// Systems of a paper with figures that `workload` also measures.
///
/// # Errors
/// Unknown paper, or no figures for `workload`.
pub fn published_systems(name: &str, workload: &str) -> Result<Vec<Published>, ReproduceError> {
    let nothing = |why: Cause| ReproduceError::NotPublished { paper: name.to_owned(), why };
    let paper = paper(name).map_err(|error| nothing(Cause::of(&error)))?;
    let mut systems: Vec<Published> = Vec::new();
    for same in ALL.iter().filter(|same| same.paper == name && same.workload == workload) {
        for figure in paper.figures.iter().filter(|figure| same.matches(figure)) {
            let Some(value) = figure.in_base() else { continue };
            let values = vec![value];
            let (place, what) = (String::new(), same.what.to_owned());
            let (quantity, is_too_short) = (Quantity::BytesPerSecond, false);
            let found = Figure { place, what, quantity, values, is_too_short };
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
            true => "no test of keepup measures its figures".into(),
            false => format!("it has figures for {}, not for {workload}", known.join(" and ")).into(),
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

impl MatchingFigure {
    fn matches(&self, figure: &PublishedFigure) -> bool {
        let of = (figure.place.as_str(), figure.condition.as_str(), figure.quantity.as_str());
        of == (self.place, self.condition, self.quantity)
    }
}

#[cfg(test)]
#[path = "systems_tests.rs"]
mod tests;
