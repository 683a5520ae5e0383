//! Numbers of hosts: the campaign, and pages of made-up qualifications.
use std::path::Path;

use keepup_campaign::{Forecasts, PaperSettings, RunDone, State, parse, summarise};
use keepup_results::{
    Ended, FailedRate, Figures as _, FleetBottleneck, FleetQualifySummary, Kind, LostHost, QualifiedHost,
    ResultDirectory, TestSummary, Verdict,
};

use super::answer::{Needed, needed};
use super::*;
use crate::testing::{begun, full_request};
use crate::{campaign_text, names, reproduction};

fn request(recorders: u32, scale: f64) -> PaperRequest {
    let fleet = Some(FleetRequest { file: "/d/hall.toml".into(), recorders, each: true });
    PaperRequest { fleet, scale, ..full_request() }
}

/// A result of so many recorders that qualified at a rate, MB/s, and who limited it.
fn result(streams: u32, qualified: Option<f64>, limit: &[&str]) -> FleetQualifySummary {
    let failed = |rate| FailedRate {
        bytes_per_second: 1.05 * rate,
        seconds: 1.0,
        lost_events: 0,
        condition: "the backlog grew".to_owned(),
    };
    let qualified = qualified.map(|rate| rate * MB);
    let hosts: Vec<String> = limit.iter().map(|host| (*host).to_owned()).collect();
    let stage = if hosts.is_empty() { "switch or sources".to_owned() } else { format!("host {}", hosts[0]) };
    FleetQualifySummary {
        fleet: "hall-3".to_owned(),
        streams,
        verdict: Verdict::Fit,
        qualified_bytes_per_second: qualified,
        failed_above: qualified.map(failed),
        bottleneck: Some(FleetBottleneck { stage, hosts, evidence: String::new() }),
        ..FleetQualifySummary::begun(&begun())
    }
}

/// A recorder that was tested.
fn tested(number: usize) -> QualifiedHost {
    QualifiedHost {
        host: format!("r{number}"),
        source: String::new(),
        streams: 1,
        held_bytes_per_second: None,
        alone: None,
        failed: None,
        stage: None,
        cpu_seconds_per_gb: None,
        start_delay_seconds_max: None,
        clock: None,
    }
}

/// The page of a paper with these results of 1, 2, ... recorders, all of which were tested.
fn page(paper: &str, results: &[FleetQualifySummary]) -> PaperPage {
    let hosts = |count: usize| (0..count).map(tested).collect();
    let all = (1..).zip(results);
    let all = all.map(|(count, result)| FleetQualifySummary { hosts: hosts(count), ..result.clone() });
    page_of(paper, &all.collect::<Vec<_>>())
}

/// The page of a paper whose cells had these results.
fn page_of(paper: &str, results: &[FleetQualifySummary]) -> PaperPage {
    let recorders = u32::try_from(results.len()).unwrap();
    let text = campaign_text(reproduction(paper).unwrap(), &request(recorders, 1.0)).unwrap();
    let campaign = parse(&text, "test", &names()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let mut state = State::new(campaign, Forecasts::default());
    for (cell, result) in (1..).zip(results) {
        let place = directory.path().join(format!("{cell}"));
        let version = FleetQualifySummary::SCHEMA_VERSION;
        let (stored, log) = ResultDirectory::begin(&place, Kind::QualifyFleet, version, &begun()).unwrap();
        log.finish().unwrap();
        stored.write_summary(result).unwrap();
        let stored = stored.path().strip_prefix(directory.path()).unwrap().display().to_string();
        let run = RunDone { cell, repetition: 1, directory: Some(stored), ..RunDone::default() };
        state.take(RunDone { figures: result.figures(), ..run });
    }
    let summary = summarise(&state, &begun(), None, Ended::default());
    let settings = PaperSettings { name: paper.into(), scale: 1.0, with: Vec::new() };
    crate::page(Some(&settings), &summary, Path::new(directory.path())).unwrap()
}

fn near(value: Option<f64>, wanted: f64) -> bool {
    value.is_some_and(|value| (value - wanted).abs() < 1e-6 * wanted)
}

#[test]
fn every_number_of_recorders_is_a_cell() {
    let commands = |paper: &str, scale: f64| {
        let text = campaign_text(reproduction(paper).unwrap(), &request(3, scale)).unwrap();
        let campaign = parse(&text, "test", &names()).unwrap();
        campaign.cells().iter().map(|cell| cell.command()).collect::<Vec<_>>()
    };
    let camera = commands("romanis", 1.0);
    assert_eq!(camera.len(), 3);
    for (count, command) in (1..).zip(&camera) {
        let words = format!("keepup qualify romanis {}", if count == 3 { "--each " } else { "--event" });
        assert!(command.starts_with(&words), "{command}");
        assert!(command.contains(&format!("--recorders {count} ")), "{command}");
        assert!(command.contains("--streams 508") && command.contains("--soak '60000 ms'"), "{command}");
        assert!(command.contains("--fleet /d/hall.toml") && !command.contains("--quick"), "{command}");
    }
    let short = commands("romanis", 0.01);
    assert!(short[0].contains("--quick") && short[0].contains("--soak '2000 ms'"), "{short:?}");
    // Events are not scaled, and every logger has one stream.
    let loggers = commands("cdf-csl", 1.0);
    assert!(loggers[2].contains("--streams 3") && !loggers[2].contains("--event"), "{loggers:?}");
}

#[test]
fn a_measured_number_is_not_extrapolated() {
    let results = [result(1, Some(50.0), &["r0"]), result(2, Some(98.0), &["r1"])];
    let page = page("cdf-csl", &results);
    // 80 MB/s, with headroom 104 MB/s.
    let here = &page.answers[0].here;
    assert!(
        here.starts_with("2, measured; with 1.3x headroom: 3, extrapolated from 2 recorders at 49.0"),
        "{here}"
    );
    assert!(here.ends_with("By the model: 2; with headroom: 3."), "{here}");
    let rows = &page.tables[0].rows;
    assert!(near(rows[0].cells[2].value, 50.0) && near(rows[1].cells[2].value, 100.0), "{rows:#?}");
    let notes: Vec<_> = rows.iter().map(|row| row.cells[2].note.as_deref()).collect();
    assert_eq!((notes, rows[0].cells[3].value), (vec![Some("fitted"), None], None));
    assert!(near(rows[1].cells[3].value, 0.98), "{rows:#?}");
    let hosts: Vec<_> = page.tables[1].rows.iter().flat_map(|row| row.cells[1..].iter()).collect();
    assert_eq!(hosts.iter().map(|cell| cell.value).collect::<Vec<_>>(), [2.0, 3.0, 2.0, 3.0].map(Some));
    assert_eq!(hosts[1].note.as_deref(), Some("extrapolated"));
    assert!(page.findings.iter().any(|text| text.contains("lowest ratio to the model is 0.98")), "{page:#?}");
    assert!(page.limits.iter().any(|text| text == "more than 2 recorders were not measured"), "{page:#?}");
    assert_eq!(page.curves[0].series[1].points.len(), 3);
    assert_eq!((page.fleet.as_deref(), &*page.machine), (Some("hall-3"), "fleet hall-3, up to 2 recorders"));
    assert!(page.experiments.is_empty() && !page.claims.is_empty());
    for table in &page.tables {
        assert!(table.rows.iter().all(|row| row.cells.len() == table.columns.len()));
    }
}

#[test]
fn a_shared_limit_is_fitted_and_ends_the_prediction() {
    let results = [result(508, Some(50.0), &["r0"]), result(508, Some(70.0), &[])];
    let page = page("romanis", &results);
    let here = &page.answers[0].here;
    assert!(
        here.ends_with("By the model: no number is enough; with headroom: no number is enough."),
        "{here}"
    );
    let wanted =
        "no number; switch or sources limit 2 recorders to 70.0 MB/s, and more hosts do not help; with ";
    assert!(here.starts_with(wanted), "{here}");
    for cell in &page.tables[1].rows[0].cells[1..] {
        let wanted = "limited by switch or sources: more hosts do not help";
        assert_eq!((cell.value, cell.note.as_deref()), (None, Some(wanted)));
    }
    let model = &page.tables[0].rows[1].cells[2];
    assert!(near(model.value, 70.0) && model.note.as_deref() == Some("fitted"), "{model:?}");
    assert!(page.findings.iter().any(|text| text.contains("fitted to 2 recorders")), "{page:#?}");
    assert!(
        page.answers[0].published.starts_with("54 computers with 18 disks"),
        "{}",
        page.answers[0].published
    );
}

#[test]
fn recorders_that_do_not_add_up_are_reported() {
    let results = [result(508, Some(50.0), &["r0"]), result(508, Some(60.0), &["r0", "r1"])];
    let page = page("romanis", &results);
    let finding = "2 recorders carry 60 % of what the model predicts";
    assert!(page.findings.iter().any(|text| text.starts_with(finding)), "{:#?}", page.findings);
}

#[test]
fn without_results_there_is_no_answer() {
    let page = page("romanis", &[result(508, None, &["r0"]), result(508, Some(90.0), &["r0"])]);
    assert_eq!(page.tables[0].rows[0].cells[0].note.as_deref(), Some("not measured"));
    assert!(
        page.answers[0].here.ends_with("No model: one recorder was not measured."),
        "{}",
        page.answers[0].here
    );
    assert!(page.limits.iter().any(|text| text.starts_with("1 recorder qualified at no rate")), "{page:#?}");
    assert!(page.curves.is_empty());
}

#[test]
fn sources_that_are_too_slow_are_no_limit_of_the_hosts() {
    let mut slow = result(508, Some(60.0), &[]);
    slow.bottleneck.as_mut().unwrap().stage = "source 10.1.0.7:7614".to_owned();
    let page = page("romanis", &[result(508, Some(50.0), &["r0"]), slow]);
    assert!(page.limits.iter().any(|text| text.starts_with("the sources were too slow for 2")), "{page:#?}");
    assert!(near(page.tables[0].rows[1].cells[2].value, 100.0), "{page:#?}");
    // 200 MB/s from 2 recorders at 30 MB/s each.
    let hosts = &page.tables[1].rows[0].cells[1];
    let note = hosts.note.as_deref();
    assert_eq!((hosts.value, note), (Some(7.0), Some("extrapolated; sources too slow")));
    let here = &page.answers[0].here;
    assert!(here.contains("fewer may be enough: the sources were too slow"), "{here}");
}

#[test]
fn runs_without_all_recorders_are_not_counted() {
    let of = |hosts: &[usize], rate: f64| FleetQualifySummary {
        hosts: hosts.iter().map(|host| tested(*host)).collect(),
        ..result(508, Some(rate), &["r0"])
    };
    let lost = LostHost { host: "r1".to_owned(), trial: 3, why: "the host was lost".to_owned() };
    let without = FleetQualifySummary { lost: vec![lost], ..of(&[0, 1], 60.0) };
    let page = page_of("romanis", &[of(&[0], 50.0), without, of(&[0, 1], 65.0)]);
    // Nothing follows from them: 4 hosts at 50 MB/s, not 7 at the 30 MB/s of a recorder and an absent one.
    let here = &page.answers[0].here;
    assert!(here.starts_with("4, extrapolated from 1 recorder at 50.0 MB/s each"), "{here}");
    let qualified: Vec<_> = page.tables[0].rows.iter().map(|row| row.cells[0].value).collect();
    assert_eq!(qualified, [Some(50.0), None, None]);
    let id = begun().id;
    for why in
        ["2 recorders is not counted: r1 was lost", "3 recorders is not counted: it tested 2 recorders"]
    {
        let limit = format!("run {id} of {why}");
        assert!(page.limits.contains(&limit), "{limit}: {:#?}", page.limits);
    }
    assert_eq!(page.fleet.as_deref(), Some("hall-3"));
}

#[test]
fn the_slowest_run_decides() {
    let runs = [result(4, Some(90.0), &["r0"]), result(4, Some(70.0), &["r0"])];
    let measured = [Measured { recorders: 1, results: runs.iter().collect() }];
    assert_eq!(needed(&measured, 70.0 * MB), Some(Needed::Measured(1)));
    let extrapolated = Needed::Extrapolated { hosts: 2, from: 1, each: 70.0 * MB, is_source_bound: false };
    assert_eq!(needed(&measured, 80.0 * MB), Some(extrapolated));
    let rate = measured[0].rate().unwrap();
    assert_eq!((rate.value, rate.low), (80.0 * MB, 70.0 * MB));
    assert!((rate.high - 94.5 * MB).abs() < 1.0, "the highest rate that failed: {}", rate.high);
    assert_eq!(needed(&[], MB), None);
}

#[test]
fn a_single_run_has_the_bounds_of_the_scatter() {
    let run = FleetQualifySummary { failed_above: None, ..result(4, Some(100.0), &["r0"]) };
    let rate = Measured { recorders: 1, results: vec![&run] }.rate().unwrap();
    assert_eq!((rate.low, rate.high), (95.0 * MB, 105.0 * MB));
}
