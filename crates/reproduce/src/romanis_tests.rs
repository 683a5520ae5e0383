//! The acoustic camera's campaign, and its page of made-up figures.
use std::path::Path;

use keepup_campaign::{Forecasts, PaperSettings, RunDone, State, parse, summarise};
use keepup_results::{Begun, CampaignSummary, Ended, Figure};

use super::*;
use crate::testing::{begun, full_request};
use crate::{campaign_text, names};

fn request(volumes: usize, raid: bool, scale: f64) -> PaperRequest {
    let volume = |n| NamedVolume { name: format!("/d/{n}"), path: format!("/d/{n}").into() };
    let raid = raid.then(|| "/d/raid".into());
    PaperRequest { volumes: (0..volumes).map(volume).collect(), scale, raid, ..full_request() }
}

fn figure(what: &str, quantity: Quantity, values: &[f64]) -> Figure {
    Figure {
        place: "somewhere".into(),
        what: what.into(),
        quantity,
        values: values.to_vec(),
        is_too_short: false,
    }
}

/// A campaign of `volumes` whose writes reached `rates`, in MB/s, and whose RAID recorded at `raid`.
fn campaign(rates: &[[f64; 3]], raid: Option<[f64; 3]>) -> CampaignSummary {
    let text = campaign_text(&Romanis, &request(rates.len(), raid.is_some(), 1.0)).unwrap();
    let campaign = parse(&text, "test", &names()).unwrap();
    let scale: Vec<Figure> = rates
        .iter()
        .zip(1..)
        .map(|(rates, n)| figure(&plural(n), Quantity::BytesPerSecond, &rates.map(|rate| rate * MB)))
        .collect();
    let record = |rates: [f64; 3]| {
        vec![
            figure("record", Quantity::BytesPerSecond, &rates.map(|rate| rate * MB)),
            figure("record", Quantity::CpuSecondsPerGb, &[0.2, 0.21, 0.22]),
            figure("read back", Quantity::BytesPerSecond, &[900.0 * MB; 3]),
        ]
    };
    let figures = |label: &str| match (label, raid) {
        (label, _) if label.starts_with(FIGURE_3) => scale.clone(),
        (label, Some(rates)) if label.contains(RAID) => record(rates),
        _ => record([1000.0, 1010.0, 1020.0]),
    };
    let labels: Vec<String> = campaign.axes[0].values.iter().map(|value| value.label.clone()).collect();
    let mut state = State::new(campaign, Forecasts::default());
    for (cell, label) in (1..).zip(&labels) {
        state.take(RunDone { cell, repetition: 1, figures: figures(label), ..RunDone::default() });
    }
    let environment = serde_json::json!({ "cpu": { "logical_cores": { "value": 2 } } });
    let begun = Begun { environment, ..begun() };
    summarise(&state, &begun, None, Ended::default())
}

fn page(campaign: &CampaignSummary) -> PaperPage {
    let table = PaperSettings { name: "romanis".into(), scale: 1.0, with: Vec::new() };
    Romanis.page(&Reproduced::read(&table, campaign, Path::new("/nowhere")))
}

#[test]
fn every_number_of_volumes_and_the_raid_is_a_cell() {
    let text = campaign_text(&Romanis, &request(3, true, 1.0)).unwrap();
    let cells = parse(&text, "test", &names()).unwrap().cells();
    assert_eq!(cells.len(), 4 + 2 * 3 + 2);
    let of_figure = cells[0].command();
    for words in ["disk scale", "--outstanding 1", "--request '2097152 B'", "--volume /d/2"] {
        assert!(of_figure.contains(words), "{words} in {of_figure}");
    }
    let raid = cells[11].command();
    assert!(raid.contains("--volume /d/raid") && !raid.contains("/d/0"), "{raid}");
    assert!(raid.contains("--streams 508") && raid.contains("--rate max"), "{raid}");
    assert!(campaign_text(&Romanis, &request(0, false, 1.0)).is_err());
}

#[test]
fn the_camera_is_as_published() {
    assert_eq!((CAMERA.sensors, CAMERA.mb_per_s, CAMERA.rate()), (508, 200.0, ("at 200 MB/s", "200 MB/s")));
    let page = page(&campaign(&[[100.0, 101.0, 99.0]], None));
    assert!(
        page.answers[1].question.starts_with("Can 508 sensors")
            && page.answers[1].question.contains("1.6 Gbit")
    );
    assert!(page.answers[1].published.contains("2 loops of 800 Mbit/s"), "{}", page.answers[1].published);
}

#[test]
fn every_sensor_sends_at_any_scale() {
    assert_eq!(amount(1.0), (12 * 508, "2097152 B".into()));
    assert_eq!(amount(0.5), (6 * 508, "2097152 B".into()));
    assert_eq!(amount(0.05), (508, "1258496 B".into()));
    assert_eq!(amount(1e-9), (508, "1024 B".into()));
}

#[test]
fn the_knee_is_where_the_scatter_no_longer_reaches_the_line() {
    let linear = campaign(&[[100.0, 101.0, 99.0], [198.0, 190.0, 150.0], [290.0, 280.0, 295.0]], None);
    assert!(page(&linear).findings.iter().any(|text| text.contains("knee was not reached")));
    let bent = campaign(&[[100.0, 101.0, 99.0], [198.0, 190.0, 150.0], [210.0, 200.0, 205.0]], None);
    let text = page(&bent).findings.join("\n");
    assert!(text.contains("up to 2: 3 volumes reach less than 90 % of 3x one"), "{text}");
    assert_eq!(page(&bent).answers[0].here, "Up to 2 of 3.");
}

#[test]
fn one_volume_tells_nothing_of_more() {
    let page = page(&campaign(&[[100.0, 101.0, 99.0]], None));
    assert!(page.answers[0].here.starts_with("Unknown"), "{}", page.answers[0].here);
    assert!(page.answers[2].here.starts_with("Unknown"), "{}", page.answers[2].here);
    assert!(page.curves.is_empty(), "one number of disks is no curve");
}

#[test]
fn a_raid_differs_only_beyond_the_scatter() {
    let rates = [[100.0, 101.0, 99.0], [198.0, 190.0, 150.0]];
    let alike = page(&campaign(&rates, Some([1015.0, 1025.0, 1005.0])));
    assert!(alike.answers[2].here.contains("recording rate 1x (no significant"), "{}", alike.answers[2].here);
    let slower = page(&campaign(&rates, Some([505.0, 500.0, 510.0])));
    assert!(slower.answers[2].here.contains("recording rate 0.50x"), "{}", slower.answers[2].here);
}

#[test]
fn published_figures_stand_in_their_columns() {
    let page = page(&campaign(&[[100.0, 101.0, 99.0]], None));
    let cpu = page.tables[0].rows.iter().find_map(|row| row.cells[1].value);
    assert_eq!(cpu, Some(100.0), "the slow processor above 4 disks");
    let required = &page.tables[1].rows[0].cells[0];
    assert_eq!((required.value, required.note.as_deref()), (Some(200.0), Some("required")));
    for table in &page.tables {
        assert!(table.rows.iter().all(|row| row.cells.len() == table.columns.len()));
    }
    assert_eq!(page.answers[1].here, "not measured", "without results there is no word of the camera");
}
