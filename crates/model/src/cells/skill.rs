//! Accuracy of the model, beside two simple models: "nothing changes", and the median change of the other
//! machines. Skill is also given with each machine left out, since one machine can make all of it.

use keepup_measure::stats::median;
use keepup_measure::sum::Sums;
use keepup_results::{Origin, PredictedCell, Skill, SkillWithout};

/// Fewest machines for leaving one out.
const MACHINES_MIN: usize = 3;

/// Accuracy per kind of cell and overall. Fitted and assumed cells prove nothing and are excluded.
pub(super) fn of(cells: &[PredictedCell]) -> Vec<Skill> {
    let derived = |cell: &&PredictedCell| cell.origin == Origin::Derived;
    let predicted = |cell: &&PredictedCell| cell.origin == Origin::Predicted;
    let beside =
        |cell: &&PredictedCell| predicted(cell) && cell.paper == "esrf-2007" && cell.unchanged.is_some();
    let kinds = [
        skill("from protocols and counts", cells, derived),
        skill("with constants fitted to other figures", cells, predicted),
        skill("disks with network traffic (E1 to E7)", cells, beside),
        skill("all", cells, |cell| cell.origin.is_test()),
    ];
    kinds.into_iter().flatten().collect()
}

/// Relative errors of one cell by the model and by the two simple ones.
struct Errors<'a> {
    machine: &'a str,
    model: f64,
    unchanged: f64,
    others: Option<f64>,
}

fn skill(name: &str, all: &[PredictedCell], is_of_kind: impl Fn(&&PredictedCell) -> bool) -> Option<Skill> {
    let cells: Vec<&PredictedCell> = all.iter().filter(is_of_kind).collect();
    let errors: Vec<f64> = cells.iter().map(|cell| cell.error.abs()).collect();
    let compared: Vec<Errors<'_>> = cells.iter().filter_map(|cell| errors_of(cell, all)).collect();
    let without = |machine: Option<&str>| accuracy(&compared, machine);
    let whole = without(None);
    Some(Skill {
        of: name.to_owned(),
        cells: count(cells.len()),
        met: count(cells.iter().filter(|cell| cell.error.abs() <= cell.target).count()),
        median_error: median(&errors)?,
        worst_error: errors.iter().copied().fold(0.0, f64::max),
        median_error_unchanged: whole.as_ref().map(|whole| whole.median_error_unchanged),
        median_error_of_others: whole.as_ref().and_then(|whole| whole.median_error_of_others),
        over_unchanged: whole.and_then(|whole| whole.over_unchanged),
        left_out: left_out(&compared).into_iter().filter_map(|machine| without(Some(machine))).collect(),
    })
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Errors of a cell that has a "no change" value.
fn errors_of<'a>(cell: &'a PredictedCell, all: &[PredictedCell]) -> Option<Errors<'a>> {
    let unchanged = cell.unchanged?;
    let is_other = |other: &&PredictedCell| {
        other.paper == cell.paper
            && other.quantity == cell.quantity
            && other.unit == cell.unit
            && other.machine != cell.machine
    };
    // Of published values alone: a fitted cell counts as well.
    let changes = all.iter().filter(is_other).filter_map(|other| Some(other.published / other.unchanged?));
    let change = median(&changes.collect::<Vec<f64>>());
    Some(Errors {
        machine: &cell.machine,
        model: cell.error,
        unchanged: unchanged / cell.published - 1.0,
        others: change.map(|change| unchanged * change / cell.published - 1.0),
    })
}

/// Machines to leave out, in order; none if there are too few.
fn left_out<'a>(errors: &[Errors<'a>]) -> Vec<&'a str> {
    let mut machines: Vec<&str> = Vec::new();
    for one in errors {
        if !machines.contains(&one.machine) {
            machines.push(one.machine);
        }
    }
    if machines.len() < MACHINES_MIN { Vec::new() } else { machines }
}

/// Accuracy of all models over the same cells, without those of one machine. `None` without a cell.
fn accuracy(errors: &[Errors<'_>], without: Option<&str>) -> Option<SkillWithout> {
    let kept: Vec<&Errors<'_>> = errors.iter().filter(|one| Some(one.machine) != without).collect();
    let absolute = |of: &dyn Fn(&Errors<'_>) -> Option<f64>| -> Option<f64> {
        median(&kept.iter().filter_map(|one| Some(of(one)?.abs())).collect::<Vec<f64>>())
    };
    let squares = |of: fn(&Errors<'_>) -> f64| kept.iter().map(|one| of(one).powi(2)).float_sum();
    let (own, unchanged) = (squares(|one| one.model), squares(|one| one.unchanged));
    Some(SkillWithout {
        machine: without.unwrap_or_default().to_owned(),
        cells: count(kept.len()),
        median_error: absolute(&|one| Some(one.model))?,
        median_error_unchanged: absolute(&|one| Some(one.unchanged))?,
        median_error_of_others: absolute(&|one| one.others),
        over_unchanged: (unchanged > 0.0).then(|| 1.0 - own / unchanged),
    })
}

#[cfg(test)]
#[path = "skill_tests.rs"]
mod tests;
