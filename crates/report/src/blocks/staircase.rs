//! Trials: one row each, with a bar for the rate and the first condition that failed.

use std::collections::BTreeSet;

use keepup_results::TrialResult;

use crate::format::{bar, plural, rate, seconds};
use crate::page::{Block, Item};
use crate::table::{Cell, Table, Tone, left, right};

const BAR_CHARACTERS: usize = 16;
/// Phase of the soaks.
const SOAK: &str = "soak";
/// Passed trials that are always shown, because they bound the knee.
const PASSED_KEPT: usize = 3;

pub(super) fn block(trials: &[TrialResult], trials_max: usize) -> Block {
    let title = "Trials, in order";
    if trials.is_empty() {
        return Block::new(title, vec![Item::Text("No trial was run.".to_owned())]);
    }
    let full = trials.iter().filter_map(asked).fold(0.0, f64::max);
    let hidden = omitted(trials, trials_max);
    let rows =
        (0..).zip(trials).filter(|(index, _)| !hidden.contains(index)).map(|(_, trial)| row(trial, full));
    let columns =
        vec![left("phase"), right("length"), right("asked"), right("durable"), left(""), left("outcome")];
    let mut items = vec![Item::Table(Table { columns, rows: rows.collect() })];
    if !hidden.is_empty() {
        let failed = (0..).zip(trials).filter(|(index, t)| hidden.contains(index) && !t.passed).count();
        let passed = hidden.len() - failed;
        items.push(Item::Text(format!(
            "Not shown: {passed} slower trials that passed, {failed} faster ones that failed (see \
             result.json)."
        )));
    }
    Block::new(title, items)
}

/// Requested rate, bytes per second; none without a schedule.
fn asked(trial: &TrialResult) -> Option<f64> {
    (!trial.is_unthrottled()).then_some(trial.asked_bytes_per_second)
}

fn row(trial: &TrialResult, full: f64) -> Vec<Cell> {
    let (outcome, tone) = if trial.passed {
        ("ok".to_owned(), Tone::Good)
    } else {
        let condition = trial.failed_condition.as_deref().unwrap_or("no condition recorded");
        let lost = match trial.lost_events {
            0 => String::new(),
            lost => format!(" ({} lost)", plural(lost, "event")),
        };
        (format!("failed: {condition}{lost}"), Tone::Bad)
    };
    let asked = asked(trial);
    vec![
        trial.phase.as_str().into(),
        seconds(trial.seconds).into(),
        asked.map_or_else(|| "unthrottled".to_owned(), rate).into(),
        rate(trial.durable_bytes_per_second).into(),
        // The bar is that of the requested rate.
        Cell::toned(asked.map_or_else(String::new, |asked| bar(asked, full, BAR_CHARACTERS)), tone),
        Cell::toned(outcome, tone),
    ]
}

/// Indices of the trials to omit when there are more than `trials_max`: those farthest from the knee, passed
/// ones at the lowest rates first, then failed ones at the highest. Soaks that held are never omitted.
fn omitted(trials: &[TrialResult], trials_max: usize) -> BTreeSet<usize> {
    let by_rate = |a: &usize, b: &usize| {
        trials[*a].asked_bytes_per_second.total_cmp(&trials[*b].asked_bytes_per_second).then(a.cmp(b))
    };
    let (mut passed, mut failed): (Vec<usize>, Vec<usize>) =
        (0..trials.len()).partition(|index| trials[*index].passed);
    // The soak that the verdict rests on stays.
    passed.retain(|index| trials[*index].phase != SOAK);
    passed.sort_by(by_rate);
    failed.sort_by(by_rate);
    passed.truncate(passed.len().saturating_sub(PASSED_KEPT));
    let surplus = trials.len().saturating_sub(trials_max);
    passed.into_iter().chain(failed.into_iter().rev()).take(surplus).collect()
}
