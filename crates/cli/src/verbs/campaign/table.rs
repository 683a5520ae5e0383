//! Campaigns for people: the list of cells, a line for each run, how far it is.
use keepup_campaign::{CampaignEvent, Forecast, Forecasts, Progress, State};
use keepup_plan::units::Bytes;
use keepup_results::{Begun, rfc3339};

/// What a whole campaign costs, with a line for each cell.
pub(super) fn forecast(state: &State, forecasts: &Forecasts) -> Forecast {
    let mut whole = state.forecast_left();
    let campaign = state.campaign();
    let mut lines = vec![format!(
        "{}: {} cells, {} runs of each, {} runs in all",
        campaign.title,
        state.cells().len(),
        campaign.repetitions,
        state.progress().planned
    )];
    for cell in state.cells() {
        let name = campaign.name_of(cell);
        let what = match (&cell.skipped, forecasts.of(&cell.arguments)) {
            (Some(why), _) => format!("left out: {why}"),
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

/// Bytes, time, space and wear of all runs together.
fn cost(whole: &Forecast) -> Vec<String> {
    let seconds = whole.seconds.map_or_else(|| "a time that is not known".to_owned(), time);
    let mut lines = vec![format!("in all at most {} written, about {seconds}", Bytes(whole.bytes_written))];
    for (volume, bytes) in &whole.volume_bytes_written {
        let held = whole.space_bytes.get(volume).copied().unwrap_or(0);
        lines.push(format!("  {volume}: at most {} written, {} held at a time", Bytes(*bytes), Bytes(held)));
    }
    lines
}

/// What is said before the first run.
pub(super) fn announcement(state: &State, left: &Forecast) -> String {
    let progress = state.progress();
    let done = match progress.done {
        0 => String::new(),
        done => format!(", {done} were made before"),
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

/// How far a campaign is.
pub(super) fn status(state: &State, begun: &Begun, is_running: bool) -> String {
    let progress = state.progress();
    let skipped = state.cells().iter().filter(|cell| cell.skipped.is_some()).count();
    let mut lines = vec![
        format!(
            "{}, begun {}: {}",
            state.campaign().name,
            rfc3339(begun.created_unix_ns),
            match (is_running, progress.left) {
                (true, _) => "it is running",
                (false, 0) => "all is done",
                (false, _) => "it is not running",
            }
        ),
        format!(
            "{} of {} runs done, {} of them failed, {} not needed, {} left; {skipped} cells left out",
            progress.done, progress.planned, progress.failed, progress.spared, progress.left
        ),
    ];
    if progress.left > 0 {
        let left = progress.seconds_left.map_or_else(|| "not known yet".to_owned(), time);
        lines.push(format!("{} so far, time left: {left}", time(progress.seconds)));
    }
    lines.join("\n")
}

/// The same as one object.
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

/// A length of time, rounded.
fn time(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}
