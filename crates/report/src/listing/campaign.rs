//! Plan and progress of a campaign, by `campaign run --dry-run` and `campaign status`.

use keepup_campaign::{Forecast, Forecasts, State};
use keepup_results::{Begun, rfc3339};

use super::render;
use crate::Style;
use crate::format::{bytes, plural, time};
use crate::page::{Block, Fact, Item};

/// Lists the cells of a campaign with their commands, and the cost of `whole`, its remaining runs.
#[must_use]
pub fn campaign_plan(state: &State, forecasts: &Forecasts, whole: &Forecast, style: Style) -> String {
    let campaign = state.campaign();
    let title = format!(
        "{}: {} cells, {} runs per cell, {} runs in total",
        campaign.title,
        state.cells().len(),
        campaign.repetitions,
        state.progress().planned
    );
    let mut facts = Vec::new();
    for cell in state.cells() {
        let name = campaign.name_of(cell);
        let text = match (&cell.skipped, forecasts.of(cell)) {
            (Some(why), _) => format!("{name}: skipped: {why}"),
            (None, Some(cost)) => {
                let duration =
                    cost.seconds.map_or_else(String::new, |seconds| format!(", {}", time(seconds)));
                format!("{name}: {}{duration}", bytes(cost.bytes_written))
            }
            (None, None) => name,
        };
        facts.push(Fact::new(cell.number.to_string(), text));
        if cell.skipped.is_none() {
            facts.push(Fact::command("", cell.command()));
        }
    }
    render(vec![Block::new(title, vec![Item::Facts(facts)]), Block::new("", cost(whole))], style)
}

/// Data written, duration and space of all runs.
#[must_use]
pub fn campaign_cost(whole: &Forecast, style: Style) -> String {
    render(vec![Block::new("", cost(whole))], style)
}

fn cost(whole: &Forecast) -> Vec<Item> {
    let duration =
        whole.seconds.map_or_else(|| "unknown duration".to_owned(), |s| format!("about {}", time(s)));
    let total = format!("at most {} written, {duration}", bytes(whole.bytes_written));
    let mut facts = vec![Fact::new("total", total)];
    for (volume, written) in &whole.volume_bytes_written {
        let held = whole.space_bytes.get(volume).copied().unwrap_or(0);
        facts.push(Fact::path("volume", volume));
        let text = format!("at most {} written, {} of space used", bytes(*written), bytes(held));
        facts.push(Fact::new("", text));
    }
    vec![Item::Facts(facts)]
}

/// Reports the progress of a campaign.
#[must_use]
pub fn campaign_status(state: &State, begun: &Begun, is_running: bool, style: Style) -> String {
    let progress = state.progress();
    let skipped = state.cells().iter().filter(|cell| cell.skipped.is_some()).count();
    let now = match (is_running, progress.left) {
        (true, _) => "running",
        (false, 0) => "complete",
        (false, _) => "not running",
    };
    let title = format!("{}, started {}: {now}", state.campaign().name, rfc3339(begun.created_unix_ns));
    let runs = format!(
        "{} of {} runs done, {} of them failed, {} not needed, {} left",
        progress.done, progress.planned, progress.failed, progress.spared, progress.left
    );
    let mut facts = vec![Fact::new("runs", runs), Fact::new("skipped", plural(skipped as u64, "cell"))];
    if progress.left > 0 {
        let left = progress.seconds_left.map_or_else(|| "unknown".to_owned(), time);
        facts.push(Fact::new("elapsed", format!("{}, remaining: {left}", time(progress.seconds))));
    }
    render(vec![Block::new(title, vec![Item::Facts(facts)])], style)
}
