//! State of a campaign: selects the next run from the finished ones.
//!
//! Invariants: pure; the same campaign with the same finished runs gives the same next action, however often
//! it was interrupted.
use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use keepup_measure::stats::bootstrap_median;
use keepup_results::{CampaignRun, Figure};

use crate::cells::Cell;
use crate::forecast::{Forecast, Forecasts};
use crate::plan::{Campaign, CampaignOrder};

/// Fewest repetitions for an early end of a cell.
const REPETITIONS_MIN: usize = 3;
/// Bootstrap resamples.
pub(crate) const RESAMPLES: u32 = 2000;
/// Fixed seed, so that intervals are reproducible.
pub(crate) const SEED: u64 = 1979;

/// Finished run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunDone {
    /// Cell number.
    pub cell: u32,
    /// Repetition, from 1.
    pub repetition: u32,
    /// Exit code.
    pub exit_code: i32,
    /// Result, relative to the campaign directory.
    pub directory: Option<String>,
    /// Duration, seconds.
    pub seconds: f64,
    /// Error, if any.
    pub why: Option<String>,
    /// Figures.
    pub figures: Vec<Figure>,
}

/// Next action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Run a cell.
    Run {
        /// Cell number.
        cell: u32,
        /// Repetition, from 1.
        repetition: u32,
    },
    /// All runs are done.
    End,
    /// A stop condition was reached.
    Stop {
        /// Condition.
        why: String,
    },
}

/// Progress of a campaign.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Progress {
    /// Planned runs, without skipped cells.
    pub planned: u32,
    /// Finished runs.
    pub done: u32,
    /// Finished runs with an exit code other than 0.
    pub failed: u32,
    /// Runs that are not needed because their cell is precise enough.
    pub spared: u32,
    /// Remaining runs.
    pub left: u32,
    /// Total duration of finished runs, seconds.
    pub seconds: f64,
    /// Estimated remaining time, seconds.
    pub seconds_left: Option<f64>,
    /// Most bytes that the finished runs wrote.
    pub bytes_written: u64,
}

/// State of a campaign.
#[derive(Debug, Clone)]
pub struct State {
    campaign: Campaign,
    cells: Vec<Cell>,
    forecasts: Forecasts,
    /// All runs in order.
    order: Vec<(u32, u32)>,
    /// Index in `order` of the first run that may remain.
    from: usize,
    runs: BTreeMap<(u32, u32), RunDone>,
    /// Cells that are precise enough.
    exact: BTreeSet<u32>,
    failed: u32,
    seconds: f64,
    bytes_written: u64,
}

impl State {
    /// Creates the state before the first run. Commands without a forecast count as writing nothing.
    #[must_use]
    pub fn new(campaign: Campaign, forecasts: Forecasts) -> Self {
        let cells = campaign.cells();
        let order = order(&campaign, &cells);
        Self {
            campaign,
            cells,
            forecasts,
            order,
            from: 0,
            runs: BTreeMap::new(),
            exact: BTreeSet::new(),
            failed: 0,
            seconds: 0.0,
            bytes_written: 0,
        }
    }

    /// Campaign.
    #[must_use]
    pub fn campaign(&self) -> &Campaign {
        &self.campaign
    }

    /// All cells.
    #[must_use]
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Cell with this number.
    #[must_use]
    pub fn cell(&self, number: u32) -> Option<&Cell> {
        self.cells.get(usize::try_from(number).ok()?.checked_sub(1)?)
    }

    /// Finished runs of a cell, by repetition.
    pub fn runs_of(&self, cell: u32) -> impl Iterator<Item = &RunDone> {
        self.runs.range((cell, 0)..=(cell, u32::MAX)).map(|(_, run)| run)
    }

    /// Adds a finished run. Ignores unknown and repeated ones.
    pub fn take(&mut self, run: RunDone) {
        let at = (run.cell, run.repetition);
        let Some(cell) = self.cell(run.cell) else { return };
        let is_known = (1..=self.campaign.repetitions).contains(&run.repetition) && cell.skipped.is_none();
        if !is_known || self.runs.contains_key(&at) {
            return;
        }
        let bytes = self.forecasts.of(cell).map_or(0, |forecast| forecast.bytes_written);
        self.bytes_written = self.bytes_written.saturating_add(bytes);
        self.seconds += run.seconds;
        self.failed += u32::from(!CampaignRun::is_success(run.exit_code));
        self.runs.insert(at, run);
        if let Some(width) = self.campaign.stop.half_width
            && self.is_exact(at.0, width)
        {
            self.exact.insert(at.0);
        }
        while self.order.get(self.from).is_some_and(|at| !self.is_left(*at)) {
            self.from += 1;
        }
    }

    /// Next action.
    #[must_use]
    pub fn next(&self) -> Action {
        let left = self.order.get(self.from..).unwrap_or_default();
        let Some(&(cell, repetition)) = left.iter().find(|at| self.is_left(**at)) else {
            return Action::End;
        };
        let stop = &self.campaign.stop;
        if stop.failures.is_some_and(|most| self.failed >= most) {
            return Action::Stop { why: format!("{} runs failed", self.failed) };
        }
        if stop.seconds.is_some_and(|most| self.seconds >= most) {
            return Action::Stop { why: format!("the runs took {:.0} s", self.seconds) };
        }
        let bytes = self.forecast(cell).map_or(0, |forecast| forecast.bytes_written);
        let after = self.bytes_written.saturating_add(bytes);
        if stop.bytes.is_some_and(|most| after > most) {
            let gb = |bytes: u64| bytes as f64 / 1e9;
            return Action::Stop {
                why: format!(
                    "up to {:.3} GB written; the next run could write {:.3} GB",
                    gb(self.bytes_written),
                    gb(bytes)
                ),
            };
        }
        Action::Run { cell, repetition }
    }

    /// Progress.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let left: Vec<(u32, u32)> = self.order.iter().copied().filter(|at| self.is_left(*at)).collect();
        let planned = u32::try_from(self.order.len()).unwrap_or(u32::MAX);
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let (done, left_count) = (count(self.runs.len()), count(left.len()));
        Progress {
            planned,
            done,
            failed: self.failed,
            spared: planned - done - left_count,
            left: left_count,
            seconds: self.seconds,
            seconds_left: self.seconds_left(&left),
            bytes_written: self.bytes_written,
        }
    }

    /// Name and progress, as `campaign status --json` prints them.
    #[must_use]
    pub fn to_json(&self, is_running: bool) -> serde_json::Value {
        let progress = self.progress();
        serde_json::json!({
            "name": self.campaign.name,
            "is_running": is_running,
            "planned": progress.planned,
            "done": progress.done,
            "failed": progress.failed,
            "spared": progress.spared,
            "left": progress.left,
            "seconds": progress.seconds,
            "seconds_left": progress.seconds_left,
        })
    }

    /// Forecast of all remaining runs.
    #[must_use]
    pub fn forecast_left(&self) -> Forecast {
        let mut times: BTreeMap<u32, u32> = BTreeMap::new();
        self.order
            .iter()
            .filter(|at| self.is_left(**at))
            .for_each(|(cell, _)| *times.entry(*cell).or_default() += 1);
        let mut whole = Forecast::default();
        for (cell, times) in times {
            if let Some(forecast) = self.forecast(cell) {
                whole.then(forecast, times);
            }
        }
        whole
    }

    fn forecast(&self, cell: u32) -> Option<&Forecast> {
        self.forecasts.of(self.cell(cell)?)
    }

    fn is_left(&self, at: (u32, u32)) -> bool {
        !self.runs.contains_key(&at) && !self.exact.contains(&at.0)
    }

    /// Whether the median of the first figure of a cell is known to within a share of `width`.
    fn is_exact(&self, cell: u32, width: f64) -> bool {
        let runs: Vec<&RunDone> = self.runs_of(cell).filter(|run| !run.figures.is_empty()).collect();
        let values: Vec<f64> = runs.iter().flat_map(|run| run.figures[0].values.iter().copied()).collect();
        if runs.len() < REPETITIONS_MIN {
            return false;
        }
        bootstrap_median(&values, RESAMPLES, SEED).is_some_and(|found| {
            let reach = (found.upper - found.value).max(found.value - found.lower);
            reach <= width * found.value.abs()
        })
    }

    /// Estimated duration: mean of the finished runs of the same cell, else the forecast scaled by the error
    /// of forecasts so far, else the mean of all runs.
    fn seconds_left(&self, left: &[(u32, u32)]) -> Option<f64> {
        let mut measured: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
        let (mut real, mut planned) = (0.0, 0.0);
        for run in self.runs.values() {
            let sum = measured.entry(run.cell).or_default();
            *sum = (sum.0 + run.seconds, sum.1 + 1.0);
            if let Some(seconds) = self.forecast(run.cell).and_then(|forecast| forecast.seconds) {
                (real, planned) = (real + run.seconds, planned + seconds);
            }
        }
        let scale = if planned > 0.0 { real / planned } else { 1.0 };
        let mean = (!self.runs.is_empty()).then(|| self.seconds / self.runs.len() as f64);
        let each = |cell: u32| {
            let own = measured.get(&cell).map(|(seconds, runs)| seconds / runs);
            let forecast = || self.forecast(cell)?.seconds.map(|seconds| seconds * scale);
            own.or_else(forecast).or(mean)
        };
        left.iter().try_fold(0.0, |sum, (cell, _)| Some(sum + each(*cell)?))
    }
}

/// Order of all runs: in each repetition, all cells that are not skipped.
fn order(campaign: &Campaign, cells: &[Cell]) -> Vec<(u32, u32)> {
    let mut block: Vec<u32> =
        cells.iter().filter(|cell| cell.skipped.is_none()).map(|cell| cell.number).collect();
    let mut rng = match campaign.order {
        CampaignOrder::Alternating => None,
        CampaignOrder::Random { seed } => Some(Rng::with_seed(seed)),
    };
    let mut order = Vec::new();
    for repetition in 1..=campaign.repetitions {
        if let Some(rng) = &mut rng {
            rng.shuffle(&mut block);
        }
        order.extend(block.iter().map(|cell| (*cell, repetition)));
    }
    order
}

#[cfg(test)]
#[path = "state_tests.rs"]
pub(crate) mod tests;
