//! The text of a campaign's file: refused with a message, or a campaign whose cells are all there, and whose
//! plan reads back as the same.
#![no_main]

use keepup_campaign::{Action, Campaign, Forecasts, RUNS_MAX, RunDone, State, parse};
use libfuzzer_sys::fuzz_target;

/// More runs than this are not gone through one by one.
const RUNS: usize = 200;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(campaign) = parse(text, "fuzzed", &["esrf-2007"]) else { return };
    let plan = serde_json::to_value(&campaign).expect("written down");
    assert_eq!(serde_json::from_value::<Campaign>(plan).expect("read back"), campaign);
    let cells = campaign.cells();
    let count: usize = campaign.axes.iter().map(|axis| axis.values.len()).product();
    assert!(cells.len() == count && cells.len() as u64 * u64::from(campaign.repetitions) <= RUNS_MAX);
    let mut state = State::new(campaign, Forecasts::default());
    for _ in 0..RUNS {
        let Action::Run { cell, repetition } = state.next() else { return };
        state.take(RunDone { cell, repetition, ..RunDone::default() });
    }
});
