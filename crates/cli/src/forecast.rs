//! `--dry-run`: data written, space used and duration of a command, as text or JSON.
use std::collections::BTreeMap;
use std::path::PathBuf;

use keepup_campaign::Forecast;
use keepup_workload::Footprint;
use keepup_workload::load::LoadPlan;

use crate::output::{json, result};

/// Combines the cost of a command and its background loads; `text` is the same as text. A duration of 0 means
/// unknown.
pub(crate) fn forecast(own: &Footprint, load_plan: &LoadPlan, text: String) -> Forecast {
    let loads = load_plan.footprint(own.time);
    let both = |own: &BTreeMap<PathBuf, u64>, loads: &BTreeMap<PathBuf, u64>| {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for (volume, bytes) in own.iter().chain(loads) {
            let sum = sums.entry(volume.display().to_string()).or_default();
            *sum = sum.saturating_add(*bytes);
        }
        sums
    };
    let written = both(&own.bytes_written, &loads.bytes_written);
    let seconds = Some(own.time.as_secs_f64()).filter(|seconds| *seconds > 0.0);
    Forecast { seconds, text, ..Forecast::of_volumes(written, both(&own.space_bytes, &loads.space_bytes)) }
}

/// Prints the plan.
pub(crate) fn print_plan(forecast: &Forecast, is_json: bool) {
    match is_json {
        true => json(&serde_json::to_value(forecast).unwrap_or_default()),
        false => result(&forecast.text),
    }
}
