//! Both ends of the qualified rates: the rate that held, and the lowest that failed above it.
use keepup_results::{ComparedInterval, IntervalPosition};

use super::systems::{Ends, System};

/// Intervals of all systems relative to the baseline's; empty unless all measured systems have one.
pub(super) fn of(systems: &[System]) -> Vec<ComparedInterval> {
    let measured = systems.iter().filter(|system| system.published.is_none());
    let ends: Option<Vec<(&System, Ends)>> =
        measured.map(|system| Some((system, over_all_runs(&system.qualified)?))).collect();
    let ends = ends.unwrap_or_default();
    let Some((_, baseline)) = ends.first().copied() else { return Vec::new() };
    let interval = |(number, (system, own)): (usize, &(&System, Ends))| ComparedInterval {
        system: system.name.clone(),
        held_bytes_per_second: own.0,
        failed_bytes_per_second: own.1,
        position: (number > 0).then(|| IntervalPosition::of(*own, baseline)),
    };
    ends.iter().enumerate().map(interval).collect()
}

/// Ends over all runs. Open above if one run found no failure. `None` without runs, or if one run qualified
/// no rate.
fn over_all_runs(runs: &[Option<Ends>]) -> Option<Ends> {
    let runs: Vec<Ends> = runs.iter().copied().collect::<Option<_>>()?;
    let held = runs.iter().map(|(held, _)| *held).reduce(f64::min)?;
    let failed: Option<Vec<f64>> = runs.iter().map(|(_, failed)| *failed).collect();
    Some((held, failed.and_then(|failed| failed.into_iter().reduce(f64::max))))
}
