//! Text output of campaigns: list of cells, one line per run, progress.
use keepup_campaign::{CampaignEvent, Forecast, Forecasts, Progress, State};
use keepup_plan::units::Bytes;
use keepup_results::{Begun, rfc3339};

/// Cost of the whole campaign, with one line per cell.
pub(super) fn forecast(state: &State, forecasts: &Forecasts) -> Forecast {
    let mut whole = state.forecast_left();
    let campaign = state.campaign();
    let mut lines = vec![format!(
        "{}: {} cells, {} runs per cell, {} runs in total",
        campaign.title,
        state.cells().len(),
        campaign.repetitions,
        state.progress().planned
    )];
    for cell in state.cells() {
        let name = campaign.name_of(cell);
        let what = match (&cell.skipped, forecasts.of(&cell.arguments)) {
            (Some(why), _) => format!("skipped: {why}"),
            (None, Some(forecast)) => format!(
                "{}{}; {}",
                Bytes(forecast.bytes_written),
                forecast.seconds.map_or_else(String::new, |seconds| format!(", {}", time(seconds))),
                cell.command()
            ),
            (None, None) => cell.command(),
        };
        lines.push(format!("{:>5}  {name}: {what}", cell.number));
    }
    lines.extend(cost(&whole));
    whole.text = lines.join("\n");
    whole
}

/// Data written, duration and space of all runs.
fn cost(whole: &Forecast) -> Vec<String> {
    let seconds = whole
        .seconds
        .map_or_else(|| "unknown duration".to_owned(), |seconds| format!("about {}", time(seconds)));
    let mut lines = vec![format!("total: at most {} written, {seconds}", Bytes(whole.bytes_written))];
    for (volume, bytes) in &whole.volume_bytes_written {
        let held = whole.space_bytes.get(volume).copied().unwrap_or(0);
        lines.push(format!("  {volume}: at most {} written, {} of space used", Bytes(*bytes), Bytes(held)));
    }
    lines
}

/// Message before the first run.
pub(super) fn announcement(state: &State, left: &Forecast) -> String {
    let progress = state.progress();
    let done = match progress.done {
        0 => String::new(),
        done => format!(", {done} done before"),
    };
    let head = format!("campaign {}: {} runs{done}", state.campaign().name, progress.planned);
    std::iter::once(head).chain(cost(left)).collect::<Vec<_>>().join("\n")
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

/// Progress of a campaign as text.
pub(super) fn status(state: &State, begun: &Begun, is_running: bool) -> String {
    let progress = state.progress();
    let skipped = state.cells().iter().filter(|cell| cell.skipped.is_some()).count();
    let mut lines = vec![
        format!(
            "{}, started {}: {}",
            state.campaign().name,
            rfc3339(begun.created_unix_ns),
            match (is_running, progress.left) {
                (true, _) => "running",
                (false, 0) => "complete",
                (false, _) => "not running",
            }
        ),
        format!(
            "{} of {} runs done, {} of them failed, {} not needed, {} left; {skipped} cells skipped",
            progress.done, progress.planned, progress.failed, progress.spared, progress.left
        ),
    ];
    if progress.left > 0 {
        let left = progress.seconds_left.map_or_else(|| "unknown".to_owned(), time);
        lines.push(format!("elapsed: {}, remaining: {left}", time(progress.seconds)));
    }
    lines.join("\n")
}

/// Progress of a campaign as JSON.
pub(super) fn status_json(state: &State, is_running: bool) -> serde_json::Value {
    let progress = state.progress();
    serde_json::json!({
        "name": state.campaign().name,
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

/// Formats a duration, rounded.
fn time(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}
