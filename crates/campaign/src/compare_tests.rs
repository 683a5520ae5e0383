//! Comparisons of results that a real program wrote, with figures put in.
use std::path::Path;

use keepup_error::Diagnostic as _;
use keepup_results::{Change, CompareSummary, Figure, Quantity, Stored, StoredResult};
use serde_json::json;

use super::{Candidate, CompareError, CompareOptions, Published, compare};

/// A result of two repeats on /data/a and /data/b.
fn sample() -> StoredResult {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../results/samples");
    StoredResult::open(&samples.join("disk-v4.json")).unwrap()
}

/// A result of one volume with so many runs, each `factor` as fast as the number of the run says.
fn on(volume: &str, factors: &[f64]) -> StoredResult {
    let mut result = sample();
    let Stored::Disk(summary) = &mut result.summary else { panic!() };
    let run = summary.runs.remove(0);
    summary.runs = factors
        .iter()
        .enumerate()
        .map(|(n, factor)| {
            let mut run = run.clone();
            run.volumes = vec![volume.to_owned()];
            run.repeat = n as u32 + 1;
            for phase in &mut run.phases {
                phase.seconds /= factor * (1.0 + 0.001 * n as f64);
            }
            run
        })
        .collect();
    result
}

fn candidate(name: &str, result: StoredResult) -> Candidate {
    Candidate { name: name.into(), results: vec![result] }
}

fn options() -> CompareOptions {
    CompareOptions::default()
}

fn row(summary: &CompareSummary, quantity: Quantity) -> &keepup_results::ComparedRow {
    summary.rows.iter().find(|row| row.quantity == quantity).unwrap()
}

const FIVE: [f64; 5] = [1.0, 1.01, 0.99, 1.005, 0.995];

#[test]
fn a_faster_disk_is_shown_and_its_place_is_the_axis() {
    let fast: Vec<f64> = FIVE.iter().map(|factor| factor * 1.2).collect();
    let both = [candidate("slow", on("/data/a", &FIVE)), candidate("fast", on("/data/z", &fast))];
    let summary = compare(&both, &[], &options()).unwrap();
    assert_eq!(summary.not_ranked, None, "one axis differs: {:?}", summary.differences);
    assert!(summary.differences.iter().all(|d| d.axis == "place" && !d.is_declared));
    let cell = row(&summary, Quantity::BytesPerSecond).cells[1].clone().unwrap();
    let beside = cell.beside.unwrap();
    assert_eq!(beside.change, Change::Better);
    assert!((beside.ratio - 1.2).abs() < 0.01, "{beside:?}");
    assert!(beside.lower.unwrap() > 1.0 && !beside.is_paired);
    let index = &summary.indices[1];
    assert!((index.index.unwrap() - 1.2).abs() < 0.01 && index.worse == 0, "{index:?}");
    assert_eq!(summary.indices[0].index, Some(1.0));
    // Costs go the other way round: the same CPU for the same bytes is neither.
    let cpu = row(&summary, Quantity::CpuSecondsPerGb).cells[1].clone().unwrap().beside.unwrap();
    assert_eq!(cpu.change, Change::NotShown);
    assert!(
        summary.notes.iter().any(|note| note.contains("not measured alternately")),
        "{:?}",
        summary.notes
    );
}

#[test]
fn the_baseline_can_be_named_and_turns_the_ratios() {
    let fast: Vec<f64> = FIVE.iter().map(|factor| factor * 1.25).collect();
    let both = [candidate("slow", on("/data/a", &FIVE)), candidate("fast", on("/data/a", &fast))];
    let named = CompareOptions { baseline: Some("fast".into()), ..options() };
    let summary = compare(&both, &[], &named).unwrap();
    assert_eq!(summary.systems[0].name, "fast");
    let beside = row(&summary, Quantity::BytesPerSecond).cells[1].clone().unwrap().beside.unwrap();
    assert!((beside.ratio - 0.8).abs() < 0.01 && beside.change == Change::Worse, "{beside:?}");
    let unknown = CompareOptions { baseline: Some("medium".into()), ..options() };
    let error = compare(&both, &[], &unknown).unwrap_err();
    assert_eq!(error.hint().as_deref(), Some("use one of slow, fast"), "{error}");
}

#[test]
fn more_differences_than_declared_are_not_ranked() {
    let mut other = on("/data/z", &FIVE);
    let Stored::Disk(summary) = &mut other.summary else { panic!() };
    summary.plan["files"] = json!(77);
    let both = [candidate("one", on("/data/a", &FIVE)), candidate("two", other)];
    let refused = compare(&both, &[], &options()).unwrap();
    let why = refused.not_ranked.clone().unwrap();
    assert!(why.contains("files") && why.contains("place") && why.contains("--axis files"), "{why}");
    assert!(refused.indices.is_empty() && !refused.rows.is_empty(), "figures are shown all the same");
    let declared = CompareOptions { axes: vec!["place".into()], ..options() };
    let why = compare(&both, &[], &declared).unwrap().not_ranked.unwrap();
    assert!(why.contains("differ in files, in addition to the declared axes"), "{why}");
    let both_declared = CompareOptions { axes: vec!["place".into(), "files".into()], ..options() };
    assert_eq!(compare(&both, &[], &both_declared).unwrap().not_ranked, None);
    let anyway = CompareOptions { anyway: true, ..options() };
    assert_eq!(compare(&both, &[], &anyway).unwrap().not_ranked, None);
}

#[test]
fn another_machine_is_one_axis_with_all_that_comes_with_it() {
    let mut other = on("/data/z", &FIVE);
    let Stored::Disk(summary) = &mut other.summary else { panic!() };
    summary.environment["cpu"]["model"] = json!({"value": "Z80"});
    summary.environment["kernel"]["release"] = json!({"value": "2.6.9"});
    let both = [candidate("one", on("/data/a", &FIVE)), candidate("two", other)];
    let why = compare(&both, &[], &options()).unwrap().not_ranked.unwrap();
    assert!(why.contains("kernel") && why.contains("machine"), "{why}");
    let machine = CompareOptions { axes: vec!["machine".into()], ..options() };
    assert_eq!(compare(&both, &[], &machine).unwrap().not_ranked, None);
}

#[test]
fn places_of_one_result_took_turns() {
    let summary = compare(&[candidate("one", sample())], &[], &options()).unwrap();
    assert_eq!(summary.systems.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["/data/a", "/data/b"]);
    let beside = row(&summary, Quantity::BytesPerSecond).cells[1].clone().unwrap().beside.unwrap();
    assert!(beside.is_paired);
    assert_eq!(beside.change, Change::TooFew, "two repeats show nothing");
    assert!(summary.rows.iter().all(|row| row.place.is_empty()), "the place is the system");
}

#[test]
fn results_of_one_name_are_of_one_system() {
    let two = |factor: f64| vec![on("/data/a", &[factor]), on("/data/a", &[factor * 1.01])];
    let both = [
        Candidate { name: "old".into(), results: two(1.0) },
        Candidate { name: "new".into(), results: two(1.1) },
    ];
    let summary = compare(&both, &[], &options()).unwrap();
    assert_eq!(row(&summary, Quantity::BytesPerSecond).cells[0].clone().unwrap().values.len(), 2);
}

#[test]
fn a_limit_fails_on_what_is_shown_and_leaves_open_what_is_not() {
    let slow: Vec<f64> = FIVE.iter().map(|factor| factor * 0.8).collect();
    let limited = CompareOptions { fail_below: Some(0.95), ..options() };
    let both = [candidate("old", on("/data/a", &FIVE)), candidate("new", on("/data/a", &slow))];
    let limit = compare(&both, &[], &limited).unwrap().limit.unwrap();
    assert!(!limit.failed.is_empty() && limit.open.is_empty(), "{limit:?}");
    let few = [candidate("old", on("/data/a", &FIVE[..2])), candidate("new", on("/data/a", &slow[..2]))];
    let limit = compare(&few, &[], &limited).unwrap().limit.unwrap();
    assert!(limit.failed.is_empty() && !limit.open.is_empty(), "{limit:?}");
    let same = [candidate("old", on("/data/a", &FIVE)), candidate("new", on("/data/a", &FIVE))];
    let limit = compare(&same, &[], &limited).unwrap().limit.unwrap();
    assert!(limit.failed.is_empty() && limit.open.is_empty(), "{limit:?}");
}

#[test]
fn what_was_published_has_a_ratio_and_no_interval() {
    let result = on("/data/a", &FIVE);
    let Stored::Disk(summary) = &result.summary else { panic!() };
    let what = summary.runs[0].phases[0].name.clone();
    let figure =
        Figure { place: "/data/a".into(), what, quantity: Quantity::BytesPerSecond, values: vec![60e6] };
    let published =
        Published { name: "2002".into(), source: "a paper".into(), year: Some(2002), figures: vec![figure] };
    let summary = compare(&[candidate("now", result)], &[published], &options()).unwrap();
    assert_eq!(summary.systems[1].published.as_deref(), Some("a paper"));
    let beside = row(&summary, Quantity::BytesPerSecond).cells[1].clone().unwrap().beside.unwrap();
    assert!(beside.lower.is_none() && beside.change == Change::TooFew && beside.ratio < 1.0, "{beside:?}");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let one = || candidate("one", on("/data/a", &FIVE));
    assert!(matches!(compare(&[], &[], &options()), Err(CompareError::Nothing)));
    assert!(matches!(compare(&[one()], &[], &options()), Err(CompareError::OneSystem { .. })));
    assert!(matches!(compare(&[one(), one()], &[], &options()), Err(CompareError::SameName { .. })));
    let mut other = sample();
    let Stored::Disk(summary) = &mut other.summary else { panic!() };
    summary.workload = "sweep".into();
    let error = compare(&[one(), candidate("two", other)], &[], &options()).unwrap_err();
    assert!(matches!(error, CompareError::DifferentWorkloads { .. }), "{error}");
    let nothing = CompareOptions { only: Some("no such thing".into()), ..options() };
    let both = [one(), candidate("two", on("/data/a", &FIVE))];
    assert!(matches!(compare(&both, &[], &nothing), Err(CompareError::NothingShared)));
}

#[test]
fn cells_of_a_campaign_are_compared_as_they_took_turns() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../results/samples");
    let campaign = StoredResult::open(&samples.join("campaign-v1.json")).unwrap();
    let axes = vec!["volume".into(), "load".into(), "place".into()];
    let declared = CompareOptions { axes, ..options() };
    let summary = compare(&[candidate("campaign", campaign)], &[], &declared).unwrap();
    assert_eq!(summary.systems.len(), 4);
    assert_eq!(summary.systems[0].name, "/data/a, quiet");
    assert_eq!(summary.not_ranked, None, "{:?}", summary.differences);
    let beside = row(&summary, Quantity::BytesPerSecond).cells[3].clone().unwrap().beside.unwrap();
    assert!(beside.is_paired);
}
