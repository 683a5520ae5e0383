//! The logger's campaign can be read back, and scales; its page without results says so.
use std::path::Path;

use keepup_campaign::{PaperSettings, parse};
use keepup_results::CampaignSummary;

use super::findings::answers;
use super::reliability::per_petabyte;
use super::tables::setting;
use super::*;
use crate::testing::full_request;
use crate::{campaign_text, names};

fn request(volumes: &[&str], scale: f64) -> PaperRequest {
    let volume = |name: &&str| NamedVolume { name: (*name).to_owned(), path: name.into() };
    let volumes = volumes.iter().map(volume).collect();
    PaperRequest { volumes, scale, repetitions: Some(1), is_long: false, ..full_request() }
}

fn labels(volumes: &[&str]) -> Vec<String> {
    let text = campaign_text(&Cdf, &request(volumes, 0.1)).unwrap();
    let campaign = parse(&text, "cdf-csl", &names()).unwrap();
    campaign.axes[0].values.iter().map(|value| value.label.clone()).collect()
}

#[test]
fn volumes_at_once_take_two_volumes() {
    let (one, two) = (labels(&["/a"]), labels(&["/a", "/b"]));
    assert!(one.contains(&"logger, /a".to_owned()) && !one.iter().any(|label| label.contains("at once, w")));
    assert!(two.contains(&TWO_WRITE.to_owned()) && two.contains(&"logger, all volumes".to_owned()));
    assert!(two.contains(&TOGETHER.to_owned()) && !one.contains(&TOGETHER.to_owned()));
    assert!(Cdf.campaign(&request(&[], 1.0)).is_err());
}

#[test]
fn the_long_run_has_the_amounts_of_the_paper() {
    let commands = |is_long, scale| {
        let request = PaperRequest { is_long, ..request(&["/a"], scale) };
        let campaign = parse(&campaign_text(&Cdf, &request).unwrap(), "test", &names()).unwrap();
        campaign.cells().iter().map(|cell| cell.command()).collect::<Vec<_>>().join("\n")
    };
    let long = commands(true, 1.0);
    assert!(long.contains("--copies 3804") && long.contains("--time '172800000 ms'"), "{long}");
    assert!(long.contains("--state cdf-csl-burn-in-ID.jsonl"), "{long}");
    let short = commands(false, 1.0);
    assert!(short.contains("--copies 8") && short.contains("--mode burn-in") && !short.contains("--state"));
    assert!(!short.contains("--max"), "the probe of the page cache ends by itself: {short}");
    assert!(commands(false, 0.5).contains("--max"));
}

#[test]
fn settings_are_read_from_the_names_of_phases() {
    assert_eq!(setting("0 writers, 1 reader flat out"), Some((0, 0.0)));
    assert_eq!(setting("4 writers pausing 20ms, 1 reader flat out"), Some((4, 20.0)));
    assert_eq!(setting("reader"), None);
}

#[test]
fn without_an_error_there_is_a_bound() {
    let found = per_petabyte(2.0, 1e15);
    assert_eq!((found.value, found.note), (Some(2.0), None));
    let bound = per_petabyte(0.0, 1e15);
    assert!((bound.value.unwrap() - 2.995_732).abs() < 1e-6 && bound.note.is_some());
}

#[test]
fn a_page_without_results_claims_nothing() {
    let table = PaperSettings { name: "cdf-csl".into(), scale: 0.1, with: Vec::new() };
    let nothing = serde_json::json!({
        "schema_version": 1, "tool_version": "0.1.0", "id": "0", "created": "", "command": "",
        "kind": "campaign",
        "workload": "campaign", "plan": null, "environment": {}, "failure": null,
        "interrupted": false, "name": "cdf-csl", "title": "", "axes": [], "baseline": {},
        "order": "alternating",
        "repetitions": 1, "cells": [], "paper": null,
        "totals": {"cells": 0, "skipped": 0, "planned": 0, "runs": 0, "failed": 0, "spared": 0, "left": 0,
            "seconds": 0.0, "bytes_written": 0, "stopped": null},
    });
    let campaign: CampaignSummary = serde_json::from_value(nothing).unwrap();
    let found = Reproduced::read(&table, &campaign, Path::new("nowhere"));
    assert!(
        answers(&found, &PublishedPaper::of("cdf-csl")).iter().all(|answer| answer.here == "not measured")
    );
    let published: Vec<String> =
        answers(&found, &PublishedPaper::of("cdf-csl")).into_iter().map(|answer| answer.published).collect();
    assert_eq!(published[0], "4, at 30 MB/s each.");
    let page = Cdf.page(&found);
    assert_eq!(page.answers[0].question, "How many such machines are needed to buffer 80 MB/s?");
    assert!(page.findings.is_empty() && page.curves.is_empty(), "{page:#?}");
    assert!(page.tables.iter().flat_map(|table| &table.rows).any(|row| !row.is_here));
}
