//! Summary of a campaign: figures pooled over repetitions, and ratios to the baseline.
use keepup_measure::stats::{Pairing, VALUES_MIN, compare as compare_values};
use keepup_results::{
    Begun, Better, CampaignAxis, CampaignCell, CampaignRatio, CampaignRun, CampaignSummary, CampaignTotals,
    Ended, Figure, TestSummary,
};

use crate::cells::Cell;
use crate::plan::CampaignOrder;
use crate::state::{RESAMPLES, RunDone, SEED, State};

/// Summary of all finished runs.
#[must_use]
pub fn summarise(state: &State, begun: &Begun, stopped: Option<String>, ended: Ended) -> CampaignSummary {
    let campaign = state.campaign();
    let mut summary = CampaignSummary::begun(begun);
    summary.name = campaign.name.clone();
    summary.title = campaign.title.clone();
    summary.axes = campaign
        .axes
        .iter()
        .map(|axis| CampaignAxis {
            name: axis.name.clone(),
            labels: axis.values.iter().map(|value| value.label.clone()).collect(),
        })
        .collect();
    summary.baseline = campaign.baseline.clone();
    summary.order = match campaign.order {
        CampaignOrder::Alternating => "alternating".to_owned(),
        CampaignOrder::Random { .. } => "random".to_owned(),
    };
    summary.repetitions = campaign.repetitions;
    summary.cells = state.cells().iter().map(|cell| summary_of(state, cell)).collect();
    summary.totals = totals(state, stopped);
    summary.end(ended);
    summary
}

fn totals(state: &State, stopped: Option<String>) -> CampaignTotals {
    let progress = state.progress();
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    CampaignTotals {
        cells: count(state.cells().len()),
        skipped: count(state.cells().iter().filter(|cell| cell.skipped.is_some()).count()),
        planned: progress.planned,
        runs: progress.done,
        failed: progress.failed,
        spared: progress.spared,
        left: progress.left,
        seconds: progress.seconds,
        bytes_written: progress.bytes_written,
        stopped,
    }
}

fn summary_of(state: &State, cell: &Cell) -> CampaignCell {
    let runs: Vec<&RunDone> = state.runs_of(cell.number).collect();
    let ratios = cell.baseline.map_or_else(Vec::new, |number| {
        let base: Vec<&RunDone> = state.runs_of(number).collect();
        ratios(&runs, &base)
    });
    CampaignCell {
        number: cell.number,
        coordinates: state.campaign().coordinates(cell),
        command: cell.command(),
        baseline: cell.baseline,
        changed: cell.changed.clone(),
        settings: cell.settings.clone(),
        confounded: cell.is_confounded(),
        alone: cell.alone.clone(),
        skipped: cell.skipped.clone(),
        runs: runs.iter().map(|run| campaign_run(run)).collect(),
        figures: pooled(&runs),
        ratios,
    }
}

fn campaign_run(run: &RunDone) -> CampaignRun {
    CampaignRun {
        repetition: run.repetition,
        directory: run.directory.clone(),
        exit_code: run.exit_code,
        seconds: run.seconds,
        why: run.why.clone(),
    }
}

/// Figures of all runs with their values concatenated.
fn pooled(runs: &[&RunDone]) -> Vec<Figure> {
    Figure::pooled(runs.iter().flat_map(|run| run.figures.iter().cloned()))
}

/// Ratios of all figures of a cell to its baseline, paired by repetition. Figures that were measured for too
/// short a time have none.
fn ratios(runs: &[&RunDone], base: &[&RunDone]) -> Vec<CampaignRatio> {
    let (own, other) = (pooled(runs), pooled(base));
    let (own_places, other_places) = (places(&own), places(&other));
    let mut found = Vec::new();
    for figure in &own {
        // If the place itself varies, places are matched by their order.
        let place = match other_places.contains(&figure.place.as_str()) {
            true => Some(figure.place.as_str()),
            false => own_places
                .iter()
                .position(|place| *place == figure.place)
                .and_then(|n| other_places.get(n).copied()),
        };
        let Some(place) = place else { continue };
        let wanted = Figure { place: place.to_owned(), values: Vec::new(), ..figure.clone() };
        let is_too_short = |figures: &[Figure], wanted: &Figure| {
            figures.iter().any(|figure| figure.is_same(wanted) && figure.is_too_short)
        };
        if figure.is_too_short || is_too_short(&other, &wanted) {
            continue;
        }
        let mut pairs = Vec::new();
        for run in runs {
            let beside = base.iter().find(|base| base.repetition == run.repetition);
            let (Some(mine), Some(its)) =
                (values(run, figure), beside.and_then(|base| values(base, &wanted)))
            else {
                continue;
            };
            pairs.extend(mine.iter().copied().zip(its.iter().copied()));
        }
        found.extend(ratio(figure, &pairs));
    }
    found
}

/// Distinct places in order of appearance.
fn places(figures: &[Figure]) -> Vec<&str> {
    let mut places = Vec::new();
    for figure in figures {
        if !places.contains(&figure.place.as_str()) {
            places.push(figure.place.as_str());
        }
    }
    places
}

fn values<'a>(run: &'a RunDone, wanted: &Figure) -> Option<&'a [f64]> {
    run.figures.iter().find(|figure| figure.is_same(wanted)).map(|figure| &figure.values[..])
}

fn ratio(figure: &Figure, pairs: &[(f64, f64)]) -> Option<CampaignRatio> {
    let (own, base): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    // More than 1 is better.
    let (first, second) = match figure.quantity.better() {
        Better::Less => (&own, &base),
        Better::More | Better::Neither => (&base, &own),
    };
    let found = compare_values(first, second, Pairing::Paired, RESAMPLES, SEED)?;
    Some(CampaignRatio {
        place: figure.place.clone(),
        what: figure.what.clone(),
        quantity: figure.quantity,
        ratio: found.ratio,
        lower: found.interval.map(|interval| interval.lower),
        upper: found.interval.map(|interval| interval.upper),
        pairs: u32::try_from(pairs.len()).unwrap_or(u32::MAX),
        flagged: pairs.len() >= VALUES_MIN
            && found.is_change()
            && figure.quantity.better() != Better::Neither,
    })
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
