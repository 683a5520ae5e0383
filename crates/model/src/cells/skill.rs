//! Accuracy of the model, and comparison with the "no change" baseline.

use keepup_measure::stats::median;
use keepup_results::{Origin, PredictedCell, Skill};

/// Accuracy per kind of cell and overall. Fitted cells prove nothing and are excluded.
pub(super) fn of(cells: &[PredictedCell]) -> Vec<Skill> {
    let derived = |cell: &&PredictedCell| cell.origin == Origin::Derived;
    let predicted = |cell: &&PredictedCell| cell.origin == Origin::Predicted;
    let beside =
        |cell: &&PredictedCell| predicted(cell) && cell.paper == "esrf-2007" && cell.unchanged.is_some();
    let all = || cells.iter();
    let kinds = [
        skill("from protocols and counts", all().filter(derived)),
        skill("with constants fitted to other figures", all().filter(predicted)),
        skill("disks with network traffic (E1 to E7)", all().filter(beside)),
        skill("all", all().filter(|cell| derived(cell) || predicted(cell))),
    ];
    kinds.into_iter().flatten().collect()
}

fn skill<'a>(name: &str, cells: impl Iterator<Item = &'a PredictedCell>) -> Option<Skill> {
    let cells: Vec<&PredictedCell> = cells.collect();
    let errors: Vec<f64> = cells.iter().map(|cell| cell.error.abs()).collect();
    let pairs = cells.iter().filter_map(|cell| Some((cell.error, cell.unchanged? / cell.published - 1.0)));
    let (own, unchanged) = pairs
        .fold((0.0, 0.0), |(own, unchanged), (error, null)| (own + error * error, unchanged + null * null));
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Some(Skill {
        of: name.to_owned(),
        cells: count(cells.len()),
        met: count(cells.iter().filter(|cell| cell.error.abs() <= cell.target).count()),
        median_error: median(&errors)?,
        worst_error: errors.iter().copied().fold(0.0, f64::max),
        over_unchanged: (unchanged > 0.0).then(|| 1.0 - own / unchanged),
    })
}
