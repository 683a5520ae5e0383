//! Badges: what they say, and that they are whole whatever is in them.

use std::path::Path;

use keepup_results::StoredResult;

use super::{escape, render, width};

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
fn another_test_says_its_best_figure() {
    assert!(badge("../results/samples/disk-v4.json").contains("keepup: disk concurrent "));
    assert!(badge("../results/samples/disk-v4.json").contains("B/s"));
    assert!(badge("../results/samples/soak-v3.json").contains("keepup: NO ERROR"));
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
