//! Tables of phases: a row for each phase, medians over all repeats in its columns.
use keepup_measure::stats::median;
use keepup_results::{DiskPhase, DiskSummary};

use super::run::figure;

/// A column: what stands above it, what it shows of a phase, how many digits after the point.
pub(super) type Column<'a> = (&'a str, &'a dyn Fn(&DiskPhase) -> Option<f64>, usize);

/// A row for each of `names`, which are labels with names of phases, as they were at `place`.
pub(super) fn rows(
    summary: &DiskSummary,
    place: &str,
    names: &[(String, String)],
    columns: &[Column<'_>],
) -> Vec<String> {
    let label_width = names.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    let width = |head: &str| head.len().max(9) + 2;
    let heads: String = columns.iter().map(|(head, _, _)| format!("{head:>0$}", width(head))).collect();
    let mut lines = vec![format!("{:<label_width$}{heads}", "")];
    for (label, phase) in names {
        let cell = |(head, of, digits): &Column<'_>| {
            let values: Vec<f64> = summary.phases(place, phase).filter_map(of).collect();
            format!("{:>1$}", figure(median(&values), *digits), width(head))
        };
        lines.push(format!("{label:<label_width$}{}", columns.iter().map(cell).collect::<String>()));
    }
    lines
}
