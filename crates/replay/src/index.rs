//! Comparison of targets over a set of traces: ratios of mean times to a baseline, and their
//! geometric means.
use fastrand::Rng;
use keepup_measure::stats::mean_interval;
use keepup_measure::sum::Sums;
use keepup_results::{ReplayIndex, ReplayMetric, ReplayPass, ReplayPlace, ReplayRatio};

/// Coefficient of variation of passes above which a trace counts as noisy.
const NOISY: f64 = 0.05;
/// Number of bootstrap resamples, and the seed.
const RESAMPLES: u32 = 2000;
const SEED: u64 = 0x6b65_6570;

/// Compares the targets of `passes`, all of one mode, with the one named `baseline`. `None` if
/// there is no such target or a second mode.
pub fn compare(passes: &[ReplayPass], baseline: &str) -> Option<ReplayIndex> {
    let mode = passes.first()?.mode.clone();
    if passes.iter().any(|pass| pass.mode != mode) {
        return None;
    }
    let metric = match mode.as_str() {
        "timed" | "paced" => ReplayMetric::MeanResponse,
        _ => ReplayMetric::MeanService,
    };
    let (places, traces) = (names(passes, |pass| &pass.place), names(passes, |pass| &pass.trace));
    if !places.contains(&baseline) {
        return None;
    }
    let cells = |place: &str| -> Vec<Cell> {
        traces.iter().map(|trace| Cell::of(passes, place, trace, metric)).collect()
    };
    let base = cells(baseline);
    let places =
        places.iter().map(|place| line((place, *place == baseline), &traces, &cells(place), &base)).collect();
    Some(ReplayIndex { baseline: baseline.into(), mode, metric, places })
}

/// Distinct names in order of first appearance.
fn names<'a>(passes: &'a [ReplayPass], name: impl Fn(&'a ReplayPass) -> &'a String) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for pass in passes {
        if !names.contains(&name(pass).as_str()) {
            names.push(name(pass));
        }
    }
    names
}

/// Results of one trace on one target.
struct Cell {
    /// Mean request time of each usable warm pass, ns.
    means: Vec<f64>,
    why: Option<String>,
}

impl Cell {
    fn of(passes: &[ReplayPass], place: &str, trace: &str, metric: ReplayMetric) -> Self {
        let mut cell = Self { means: Vec::new(), why: None };
        for pass in passes.iter().filter(|p| p.place == place && p.trace == trace && !p.is_cold) {
            let times = pass.all.filter(|_| pass.is_usable());
            match (times, metric) {
                (Some(times), ReplayMetric::MeanService) => cell.means.push(times.service.mean_ns),
                (Some(times), ReplayMetric::MeanResponse) => cell.means.push(times.response.mean_ns),
                (None, _) => cell.why = Some(unusable(pass)),
            }
        }
        cell
    }

    fn mean(&self) -> Option<f64> {
        (!self.means.is_empty()).then(|| self.means.iter().float_sum() / self.means.len() as f64)
    }

    /// Mean of a bootstrap resample of the passes.
    fn drawn(&self, rng: &mut Rng) -> f64 {
        let draw = (0..self.means.len()).map(|_| self.means[rng.usize(..self.means.len())]);
        draw.float_sum() / self.means.len() as f64
    }
}

fn unusable(pass: &ReplayPass) -> String {
    match (&pass.failure, &pass.fidelity) {
        (Some(failure), _) => format!("pass {}: {failure}", pass.pass),
        (None, Some(fidelity)) if fidelity.is_target => {
            format!("target slower than the trace: {}", fidelity.why.join("; "))
        }
        (None, Some(fidelity)) => format!("time not kept: {}", fidelity.why.join("; ")),
        (None, None) => format!("pass {} made no request", pass.pass),
    }
}

fn line((place, is_baseline): (&str, bool), traces: &[&str], cells: &[Cell], base: &[Cell]) -> ReplayPlace {
    let ratios: Vec<ReplayRatio> = traces
        .iter()
        .zip(cells.iter().zip(base))
        .map(|(trace, (cell, base))| ratio(trace, cell, base))
        .collect();
    let known: Option<Vec<f64>> = ratios.iter().map(|ratio| ratio.ratio).collect();
    let by_ratio = |a: &&ReplayRatio, b: &&ReplayRatio| {
        a.ratio.unwrap_or(f64::NAN).total_cmp(&b.ratio.unwrap_or(f64::NAN))
    };
    let named = |ratio: &ReplayRatio| ratio.trace.clone();
    let with = || ratios.iter().filter(|ratio| ratio.ratio.is_some());
    let index = known.as_deref().and_then(geometric_mean);
    // The baseline is 1 by definition.
    let interval = index.filter(|_| !is_baseline).and_then(|_| bootstrap(cells, base));
    ReplayPlace {
        place: place.into(),
        index,
        lower: interval.map(|(lower, _)| lower),
        upper: interval.map(|(_, upper)| upper),
        arithmetic_mean: known.filter(|k| !k.is_empty()).map(|k| k.iter().float_sum() / k.len() as f64),
        loss_percent: index.map(|index| 100.0 * (1.0 - index)),
        best: with().max_by(by_ratio).map(named),
        worst: with().min_by(by_ratio).map(named),
        ratios,
    }
}

fn ratio(trace: &str, cell: &Cell, base: &Cell) -> ReplayRatio {
    let interval = mean_interval(&cell.means);
    let variation = interval.map(|interval| {
        let squares: f64 = cell.means.iter().map(|mean| (mean - interval.value).powi(2)).float_sum();
        (squares / (cell.means.len() - 1) as f64).sqrt() / interval.value
    });
    ReplayRatio {
        trace: trace.into(),
        ratio: base.mean().zip(cell.mean()).map(|(base, mean)| base / mean),
        mean_ns: cell.mean(),
        half_width_ns: interval.map(|interval| interval.upper - interval.value),
        variation,
        is_noisy: variation.is_some_and(|variation| variation > NOISY),
        passes: cell.means.len() as u32,
        why: cell.why.clone().or_else(|| base.why.clone().filter(|_| base.means.is_empty())),
    }
}

/// Geometric mean of positive values; `None` for an empty list.
fn geometric_mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| (values.iter().map(|v| v.ln()).float_sum() / values.len() as f64).exp())
}

/// 95 % percentile bootstrap interval of the index, resampling the passes of each trace for target
/// and baseline (Efron, 1979). `None` if a trace has fewer than two passes.
fn bootstrap(cells: &[Cell], base: &[Cell]) -> Option<(f64, f64)> {
    if cells.iter().chain(base).any(|cell| cell.means.len() < 2) {
        return None;
    }
    let mut rng = Rng::with_seed(SEED);
    let mut drawn = Vec::with_capacity(RESAMPLES as usize);
    for _ in 0..RESAMPLES {
        let ratios: Vec<f64> =
            cells.iter().zip(base).map(|(cell, base)| base.drawn(&mut rng) / cell.drawn(&mut rng)).collect();
        drawn.push(geometric_mean(&ratios)?);
    }
    let end = |q| keepup_measure::stats::quantile(&drawn, q);
    Some((end(0.025)?, end(0.975)?))
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
