//! Badges: what they say, and that they are whole whatever is in them.

use std::path::Path;

use keepup_results::{FailedRate, Stored, StoredResult};

use super::{answer, escape, render, width};

fn badge(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    render(&StoredResult::open(&path).unwrap().summary)
}

#[test]
fn a_badge_says_the_verdict_with_its_rate() {
    assert!(badge("tests/fit.json").contains("aria-label=\"keepup: FIT 120 MB/s\""));
    assert!(badge("tests/not_fit.json").contains("aria-label=\"keepup: NOT FIT 410 MB/s\""));
    assert!(badge("tests/bare.json").contains("keepup: "));
}

#[test]
fn the_two_rates_of_a_badge_have_one_unit() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fit.json");
    let Stored::Qualify(mut summary) = StoredResult::open(&path).unwrap().summary else {
        panic!("another kind")
    };
    let condition = "the backlog grew".to_owned();
    let failed = FailedRate { bytes_per_second: 1.05e9, seconds: 4.0, lost_events: 0, condition };
    (summary.qualified_bytes_per_second, summary.failed_above) = (Some(950e6), Some(failed));
    assert_eq!(answer(&Stored::Qualify(summary)).0, "FIT 0.95 GB/s, failed 1.05 GB/s");
}

#[test]
fn a_badge_names_the_machine() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fit.json");
    let Stored::Qualify(mut summary) = StoredResult::open(&path).unwrap().summary else {
        panic!("another kind")
    };
    let mut badge = |environment| {
        summary.environment = environment;
        render(&Stored::Qualify(summary.clone()))
    };
    let named = badge(serde_json::json!({ "host": "daq1", "label": "rack <3>" }));
    assert!(named.contains("aria-label=\"keepup: FIT 120 MB/s on rack &lt;3&gt; (daq1)\""), "{named}");
    assert!(named.contains("</text><text"), "{named}");
    let long = badge(serde_json::json!({ "host": "x".repeat(300) }));
    assert!(long.contains("FIT 120 MB/s on xxx") && long.contains('…') && long.len() < 1200, "{long}");
    assert!(badge(serde_json::json!({})).contains("aria-label=\"keepup: FIT 120 MB/s\""));
}

#[test]
fn another_test_says_its_best_figure() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../results/samples/disk-v4.json");
    let Stored::Disk(mut summary) = StoredResult::open(&path).unwrap().summary else {
        panic!("another kind")
    };
    // The sample was measured for less than 1 s.
    let short = answer(&Stored::Disk(summary.clone())).0;
    assert_eq!(short, "disk concurrent, too short to be evidence");
    for phase in summary.runs.iter_mut().flat_map(|run| &mut run.phases) {
        phase.seconds *= 30.0;
    }
    let long = answer(&Stored::Disk(summary)).0;
    assert!(long.starts_with("disk concurrent ") && long.ends_with("B/s"), "{long}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../results/samples/soak-v3.json");
    let Stored::Soak(mut summary) = StoredResult::open(&path).unwrap().summary else {
        panic!("another kind")
    };
    assert_eq!(answer(&Stored::Soak(summary.clone())).0, "TOO SHORT");
    summary.totals.elapsed_ns = 2_000_000_000;
    assert_eq!(answer(&Stored::Soak(summary)).0, "NO ERROR");
}

#[test]
fn a_longer_text_takes_more_room() {
    assert!(width("FIT WITH LIMITS") > width("FIT"));
    assert!(width("WWW") > width("iii"));
}

#[test]
fn text_is_escaped() {
    assert_eq!(escape("<&>\"'\u{1}"), "&lt;&amp;&gt;&quot;&#39;\u{fffd}");
}
