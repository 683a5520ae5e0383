//! What the page takes from the published tables.
use std::path::Path;

use keepup_campaign::PaperSettings;
use keepup_results::{Begun, CampaignSummary, TestSummary as _};

use super::*;

#[test]
fn the_load_and_the_repeatability_follow_from_the_paper() {
    let edition = PublishedPaper::of(NAME);
    assert_eq!(network(&edition), "net=123.6MB/s");
    assert!((repeatability(&edition) - 0.055).abs() < 0.0005, "{}", repeatability(&edition));
    assert_eq!(published_ratios(&edition).count(), 28, "seven systems have both tables");
    let shared = published_ratios(&edition).filter(|(figure, _)| figure.id == SHARED_BUS);
    let writes = shared.filter(|(figure, _)| figure.quantity.ends_with("write"));
    assert_eq!(range(writes.map(|(_, ratio)| 100.0 * ratio)), "67 to 70");
}

#[test]
fn published_answers_come_from_the_tables() {
    let begun = Begun {
        id: "0123abcd".into(),
        tool_version: "0.1.0".into(),
        created_unix_ns: 0,
        command: "keepup reproduce esrf-2007".into(),
        workload: NAME.into(),
        plan: serde_json::Value::Null,
        environment: serde_json::Value::Null,
    };
    let settings = PaperSettings { name: NAME.into(), scale: 1.0, with: Vec::new() };
    let campaign = CampaignSummary::begun(&begun);
    let answers =
        answers(&Reproduced::read(&settings, &campaign, Path::new("/nowhere")), &PublishedPaper::of(NAME));
    assert!(answers[1].question.contains("120 MiB/s of a camera"), "{}", answers[1].question);
    // Table 2, single file write, the three systems of Linux md.
    assert!(answers[1].published.contains("111 to 146 MiB/s"), "{}", answers[1].published);
    assert!(answers.iter().all(|answer| answer.here == "not measured"), "{answers:?}");
}
