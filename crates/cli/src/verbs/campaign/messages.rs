//! Messages of campaigns: announcement and cost.
use keepup_campaign::{Forecast, Forecasts, State};
use keepup_report::listing;

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
