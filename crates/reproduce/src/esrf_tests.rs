//! What the page takes from the published tables.
use std::path::Path;

use keepup_campaign::{Forecasts, PaperSettings, RunDone, State, parse, summarise};
use keepup_results::{CampaignSummary, Ended, Figure, TestSummary as _};

use super::*;
use crate::testing::{begun, full_request};
use crate::{campaign_text, names};

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
    let settings = PaperSettings { name: NAME.into(), scale: 1.0, with: Vec::new() };
    let campaign = CampaignSummary::begun(&begun());
    let answers =
        answers(&Reproduced::read(&settings, &campaign, Path::new("/nowhere")), &PublishedPaper::of(NAME));
    assert!(answers[1].question.contains("120 MiB/s of a camera"), "{}", answers[1].question);
    // Table 2, single file write, the three systems of Linux md.
    assert!(answers[1].published.contains("111 to 146 MiB/s"), "{}", answers[1].published);
    assert!(answers.iter().all(|answer| answer.here == "not measured"), "{answers:?}");
}

/// Answer to the first question for one volume, if testdisk and bonnie++ reached these rates without and with
/// the network load in each run.
fn answer(runs: &[(f64, f64)]) -> String {
    let request = PaperRequest { volumes: full_request().volumes[..1].to_vec(), ..full_request() };
    let campaign = parse(&campaign_text(&Esrf, &request).unwrap(), "test", &names()).unwrap();
    let cells = campaign.cells();
    let coordinates: Vec<_> = cells.iter().map(|cell| campaign.coordinates(cell)).collect();
    let mut state = State::new(campaign, Forecasts::default());
    for (repetition, (quiet, busy)) in (1..).zip(runs) {
        for (cell, labels) in (1..).zip(&coordinates).filter(|(_, labels)| labels["test"] != FILL) {
            let rate = MIB * if labels["beside"] == QUIET { quiet } else { busy };
            let figure = |what: &str| Figure {
                place: "DIR".into(),
                what: what.into(),
                quantity: Quantity::BytesPerSecond,
                values: vec![rate],
                is_too_short: false,
            };
            let names = match labels["test"].starts_with(BONNIE) {
                true => ["write", "read"],
                false => ["create 1 x 4 GiB", "create 512 x 8 MiB"],
            };
            let figures = names.map(figure).to_vec();
            state.take(RunDone { cell, repetition, figures, ..RunDone::default() });
        }
    }
    let summary = summarise(&state, &begun(), None, Ended::default());
    let settings = PaperSettings { name: NAME.into(), scale: 1.0, with: Vec::new() };
    let found = Reproduced::read(&settings, &summary, Path::new("/nowhere"));
    answers(&found, &PublishedPaper::of(NAME)).remove(0).here
}

#[test]
fn a_loss_is_one_if_five_pairs_say_so() {
    let loss = [(100.0, 68.0), (101.0, 70.0), (99.0, 69.0), (102.0, 71.0), (98.0, 66.0), (100.0, 69.0)];
    assert!(answer(&loss).starts_with("DIR: single file write keeps 69 %"), "{}", answer(&loss));
    let none = [(100.0, 101.0), (101.0, 100.0), (99.0, 99.5), (102.0, 101.0), (98.0, 98.5)];
    assert!(answer(&none).contains("no significant loss"), "{}", answer(&none));
    let noisy = [(100.0, 50.0), (60.0, 100.0), (99.0, 70.0), (70.0, 110.0), (98.0, 60.0)];
    assert!(answer(&noisy).contains("cannot tell") && answer(&noisy).contains("reach down to"));
    assert!(answer(&loss[..4]).contains("fewer than 5 pairs"), "{}", answer(&loss[..4]));
    assert_eq!(answer(&[]), NOT_MEASURED);
}
