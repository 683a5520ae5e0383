//! Messages of campaigns: announcement, one line per run.
use keepup_campaign::{CampaignEvent, Forecast, Forecasts, Progress, State};
use keepup_report::{listing, time};

use crate::output::plain;

/// Cost of the whole campaign, with its cells as text.
pub(super) fn forecast(state: &State, forecasts: &Forecasts) -> Forecast {
    let whole = state.forecast_left();
    let text = listing::campaign_plan(state, forecasts, &whole, plain()).trim_end().to_owned();
    Forecast { text, ..whole }
}

/// Message before the first run.
pub(super) fn announcement(state: &State, left: &Forecast) -> String {
    let progress = state.progress();
    let done = match progress.done {
        0 => String::new(),
        done => format!(", {done} done before"),
    };
    let head = format!("campaign {}: {} runs{done}", state.campaign().name, progress.planned);
    format!("{head}\n{}", listing::campaign_cost(left, plain()).trim_end())
}

/// Progress line of a run that started or ended.
pub(super) fn progress_line(event: &CampaignEvent<'_>) -> String {
    let left = |progress: &Progress| {
        let seconds = progress.seconds_left.filter(|_| progress.left > 0);
        seconds.map_or_else(String::new, |seconds| format!(", {} left", time(seconds)))
    };
    let part = |progress: &Progress, done: u32| format!("{done}/{}", progress.planned - progress.spared);
    match event {
        CampaignEvent::RunStarted { cell, name, repetition, progress } => {
            let run = part(progress, progress.done + 1);
            format!("run {run}: cell {} ({name}), repetition {repetition}{}", cell.number, left(progress))
        }
        CampaignEvent::RunEnded { cell, name, run, progress } => {
            let how = match &run.why {
                None => String::new(),
                Some(why) => format!(", FAILED with {}: {why}", run.exit_code),
            };
            format!(
                "run {}: cell {} ({name}), repetition {}: {}{how}{}",
                part(progress, progress.done),
                cell.number,
                run.repetition,
                time(run.seconds),
                left(progress)
            )
        }
    }
}
