//! Which setting of a network test is the best, and which the smallest that is good enough.

use keepup_results::{NetRun, NetSummary, Stored};

use super::{best, names};
use crate::samples::samples;

/// A summary with a run of each of these rates, bytes per second, and with these settings.
fn summary(rates: &[(&str, u64)], plan: serde_json::Value) -> NetSummary {
    let found = samples().into_iter().find_map(|(_, stored)| match stored {
        Stored::Net(found) if found.runs.iter().any(|run| run.goodput(None).is_some()) => Some(found),
        _ => None,
    });
    let mut summary = *found.unwrap();
    let first = summary.runs[0].clone();
    let run = |(name, rate): &(&str, u64)| {
        let mut run = NetRun { name: (*name).to_owned(), ..first.clone() };
        run.flows.truncate(1);
        for moved in run.flows.iter_mut().filter_map(|flow| flow.received.as_mut()) {
            (moved.bytes, moved.seconds) = (*rate, 1.0);
        }
        run
    };
    summary.runs = rates.iter().map(run).collect();
    summary.plan = plan;
    summary
}

fn setting(flows: u64, message: u64, buffer: Option<u64>) -> serde_json::Value {
    serde_json::json!({ "flows": flows, "message_bytes": message, "receive_buffer_bytes": buffer })
}

#[test]
fn the_smallest_setting_that_is_good_enough_is_named() {
    let rates = [("a", 970_000_000), ("b", 985_000_000), ("c", 990_000_000), ("d", 1_000_000_000)];
    let plan = [
        setting(1, 1024, Some(1 << 16)),
        setting(2, 1024, Some(1 << 16)),
        setting(1, 65536, Some(1 << 20)),
        setting(1, 65536, None),
    ];
    let summary = summary(&rates, plan.to_vec().into());
    assert_eq!(
        best(&summary, &names(&summary)),
        ["Best setting: d (1.00 GB/s).", "Smallest setting that reaches 98 % of it: c (990 MB/s).",]
    );
}

#[test]
fn one_setting_is_the_best_by_itself() {
    let summary = summary(&[("a", 970_000_000)], vec![setting(1, 1024, None)].into());
    assert_eq!(best(&summary, &names(&summary)), ["970 MB/s received with a."]);
}
