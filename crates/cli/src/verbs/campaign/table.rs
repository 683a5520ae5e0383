//! Campaigns for people: the list of cells, a line for each run, the table at the end.
use std::fmt::Write as _;

use keepup_campaign::{Forecast, Forecasts, News, Progress, State};
use keepup_measure::stats::median;
use keepup_plan::units::Bytes;
use keepup_results::{Begun, CampaignCell, CampaignRatio, CampaignSummary, Figure, Quantity, rfc3339};

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

/// A line on a run that begins or has ended.
pub(super) fn news(news: &News<'_>) -> String {
    let left = |progress: &Progress| {
        let seconds = progress.seconds_left.filter(|_| progress.left > 0);
        seconds.map_or_else(String::new, |seconds| format!(", {} left", time(seconds)))
    };
    let part = |progress: &Progress, done: u32| format!("{done}/{}", progress.planned - progress.spared);
    match news {
        News::Begins { cell, name, repetition, progress } => {
            let run = part(progress, progress.done + 1);
            format!("run {run}: cell {} ({name}), repetition {repetition}{}", cell.number, left(progress))
        }
        News::Ended { cell, name, run, progress } => {
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

/// The whole result.
pub(super) fn page(summary: &CampaignSummary) -> String {
    let mut lines = vec![summary.title.clone()];
    for cell in &summary.cells {
        lines.push(String::new());
        lines.extend(cell_lines(summary, cell));
    }
    let totals = &summary.totals;
    lines.push(String::new());
    lines.push(format!(
        "{} of {} runs in {}, {} failed, {} not needed, {} left; {} of {} cells left out",
        totals.runs,
        totals.planned,
        time(totals.seconds),
        totals.failed,
        totals.spared,
        totals.left,
        totals.skipped,
        totals.cells
    ));
    lines.extend(totals.stopped.as_ref().map(|why| format!("stopped by its own rule: {why}")));
    if !summary.baseline.is_empty() {
        lines.push(
            "ratio: to the baseline's, pair by pair, more than 1 is better; [interval of 95 %]; *: at least \
             five pairs, and chance does not explain it"
                .to_owned(),
        );
    }
    lines.join("\n")
}

fn cell_lines(summary: &CampaignSummary, cell: &CampaignCell) -> Vec<String> {
    let label = |name: &String| Some(format!("{name} {}", cell.coordinates.get(name)?));
    let labels: Vec<String> = summary.axes.iter().filter_map(|axis| label(&axis.name)).collect();
    let beside = cell.baseline.map_or_else(String::new, |number| format!(", beside cell {number}"));
    let mut lines = vec![format!("cell {}: {}{beside}", cell.number, labels.join(", "))];
    lines.extend(cell.skipped.as_ref().map(|why| format!("  left out: {why}")));
    lines.extend(cell.confounded.then(|| confounded(cell)));
    for run in cell.runs.iter().filter(|run| run.exit_code != 0) {
        let why = run.why.as_deref().unwrap_or("no reason told");
        lines.push(format!("  repetition {} FAILED with {}: {why}", run.repetition, run.exit_code));
    }
    if !cell.figures.is_empty() {
        lines.push(format!(
            "  {:<20} {:<28} {:<14} {:>4} {:>14}  ratio",
            "place", "what", "quantity", "n", "median"
        ));
    }
    lines.extend(cell.figures.iter().map(|figure| figure_line(cell, figure)));
    lines
}

/// Why no ratio of the cell tells what did it.
fn confounded(cell: &CampaignCell) -> String {
    let alone: Vec<String> = cell.alone.iter().map(ToString::to_string).collect();
    match cell.changed.len() {
        0 | 1 => format!("  CONFOUNDED: {} change at once", cell.settings.join(" and ")),
        _ => format!(
            "  CONFOUNDED: {} change at once; each alone: cells {}",
            cell.changed.join(" and "),
            alone.join(", ")
        ),
    }
}

fn figure_line(cell: &CampaignCell, figure: &Figure) -> String {
    let value = median(&figure.values).map_or_else(|| "-".to_owned(), |value| shown(figure.quantity, value));
    let mut line = format!(
        "  {:<20} {:<28} {:<14} {:>4} {value:>14}",
        figure.place,
        figure.what,
        figure.quantity.name(),
        figure.values.len()
    );
    let is_its = |ratio: &&CampaignRatio| {
        (&ratio.place, &ratio.what, ratio.quantity) == (&figure.place, &figure.what, figure.quantity)
    };
    if let Some(ratio) = cell.ratios.iter().find(is_its) {
        // A String takes whatever is written.
        let _ = write!(line, "  {:.3}", ratio.ratio);
        if let (Some(lower), Some(upper)) = (ratio.lower, ratio.upper) {
            let _ = write!(line, " [{lower:.3}, {upper:.3}]{}", if ratio.flagged { " *" } else { "" });
        }
    }
    line
}

/// A value with its unit.
fn shown(quantity: Quantity, value: f64) -> String {
    match quantity {
        Quantity::BytesPerSecond => format!("{:.1} MB/s", value / 1e6),
        Quantity::Bytes => format!("{:.1} MB", value / 1e6),
        _ if quantity.unit() == "s" && value < 1e-3 => format!("{:.2} us", value * 1e6),
        _ if quantity.unit() == "s" && value < 1.0 => format!("{:.3} ms", value * 1e3),
        _ => format!("{value:.3} {}", quantity.unit()).trim_end().to_owned(),
    }
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
