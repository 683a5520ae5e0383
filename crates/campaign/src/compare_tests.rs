//! Comparisons of results that a real program wrote, with figures put in.
use std::path::Path;

use keepup_error::Diagnostic as _;
use keepup_results::{
    Change, CompareSummary, FailedRate, Figure, IntervalPosition, Quantity, Stored, StoredResult,
};
use serde_json::json;

use super::{Candidate, CompareError, CompareOptions, Published, compare};

/// How much longer the phases of [`sample`] are than those of the file, which take 0.02 to 0.2 s.
const LENGTHENED: f64 = 100.0;

/// A result of two repeats on /data/a and /data/b, long enough to be evidence.
fn sample() -> StoredResult {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../results/samples");
    let mut result = StoredResult::open(&samples.join("disk-v4.json")).unwrap();
    let Stored::Disk(summary) = &mut result.summary else { panic!() };
    for phase in summary.runs.iter_mut().flat_map(|run| &mut run.phases) {
        phase.seconds *= LENGTHENED;
    }
    result
}

/// A result of one volume with so many runs, each `factor` as fast as the number of the run says.
fn on(volume: &str, factors: &[f64]) -> StoredResult {
    lasting(1.0, volume, factors)
}

/// The same with phases that are `longer` times as long as those of the sample.
fn lasting(longer: f64, volume: &str, factors: &[f64]) -> StoredResult {
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
                phase.seconds *= longer / (factor * (1.0 + 0.001 * n as f64));
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
    assert!((beside.ratio.unwrap() - 1.2).abs() < 0.01, "{beside:?}");
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
    assert!((beside.ratio.unwrap() - 0.8).abs() < 0.01 && beside.change == Change::Worse, "{beside:?}");
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
    assert_eq!((beside.change, beside.ratio), (Change::TooFew, None), "two repeats show nothing");
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
    // Two values are neither below the limit nor above it.
    for factors in [&slow[..2], &FIVE[..2]] {
        let few = [candidate("old", on("/data/a", &FIVE[..2])), candidate("new", on("/data/a", factors))];
        let limit = compare(&few, &[], &limited).unwrap().limit.unwrap();
        assert!(limit.failed.is_empty() && !limit.open.is_empty(), "{limit:?}");
        assert!(limit.open.iter().all(|open| open.ends_with(": too few values")), "{limit:?}");
    }
    let same = [candidate("old", on("/data/a", &FIVE)), candidate("new", on("/data/a", &FIVE))];
    let limit = compare(&same, &[], &limited).unwrap().limit.unwrap();
    assert!(limit.failed.is_empty() && limit.open.is_empty(), "{limit:?}");
}

/// All numbers of a comparison that a reader could take for a rank.
fn ranks(summary: &CompareSummary) -> usize {
    let beside = summary.rows.iter().flat_map(|row| &row.cells).flatten().filter_map(|cell| cell.beside);
    let ratios = beside.filter(|beside| beside.change != Change::NotJudged).map(|beside| {
        let numbers = [beside.ratio, beside.lower, beside.upper, beside.chance, beside.effect];
        numbers.iter().flatten().count()
    });
    ratios.sum::<usize>() + summary.indices.len()
}

#[test]
fn too_few_values_have_no_rank_but_the_number_of_runs_that_allow_one() {
    let fast: Vec<f64> = FIVE.iter().map(|factor| factor * 2.0).collect();
    let with = |old: usize, new: usize| {
        let both =
            [candidate("old", on("/data/a", &FIVE[..old])), candidate("new", on("/data/a", &fast[..new]))];
        compare(&both, &[], &options()).unwrap()
    };
    let one = with(1, 1);
    assert_eq!(ranks(&one), 0, "{one:#?}");
    let needed = &one.runs_needed[0];
    assert_eq!((needed.spread, needed.figure.as_str()), (None, ""), "one run has no spread");
    assert_eq!((needed.runs, needed.more_of_baseline, needed.more_of_system), (5, 4, 4));
    assert!(!one.notes.iter().any(|note| note.contains("ratios")), "there are none: {:?}", one.notes);

    let some = with(3, 4);
    assert_eq!(ranks(&some), 0, "{some:#?}");
    let needed = &some.runs_needed[0];
    assert_eq!((needed.system.as_str(), needed.difference), ("new", 0.05));
    assert!((0.001..0.02).contains(&needed.spread.unwrap()), "{needed:?}");
    assert!(needed.figure.ends_with(", rate"), "{needed:?}");
    assert_eq!((needed.more_of_baseline, needed.more_of_system), (needed.runs - 3, needed.runs - 4));

    let enough = with(5, 5);
    assert!(enough.runs_needed.is_empty() && ranks(&enough) > 0, "{enough:#?}");
}

#[test]
fn more_spread_needs_more_runs() {
    let needed = |factors: &[f64]| {
        let both = [candidate("old", on("/data/a", factors)), candidate("new", on("/data/a", factors))];
        compare(&both, &[], &options()).unwrap().runs_needed[0].clone()
    };
    let (quiet, noisy) = (needed(&[1.0, 1.001, 0.999]), needed(&[1.0, 1.2, 0.8]));
    assert_eq!(quiet.runs, 5, "{quiet:?}");
    assert!(noisy.runs > 100 && noisy.spread.unwrap() > 0.15, "{noisy:?}");
}

/// A qualification that held and failed at these rates, MB/s.
fn qualified(held: f64, failed: Option<f64>) -> StoredResult {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../results/samples");
    let mut result = StoredResult::open(&samples.join("qualify-v2.json")).unwrap();
    let Stored::Qualify(summary) = &mut result.summary else { panic!() };
    summary.qualified_bytes_per_second = Some(1e6 * held);
    summary.failed_above = failed.map(|failed| FailedRate {
        bytes_per_second: 1e6 * failed,
        seconds: 30.0,
        lost_events: 51,
        condition: "no event may be lost".into(),
    });
    result
}

#[test]
fn one_qualification_each_is_not_ranked_and_both_ends_are_compared() {
    let position = |old: StoredResult, new: StoredResult| {
        let summary = compare(&[candidate("old", old), candidate("new", new)], &[], &options()).unwrap();
        assert_eq!(ranks(&summary), 0, "{summary:#?}");
        assert_eq!(summary.runs_needed.len(), 1, "{summary:#?}");
        assert_eq!(summary.qualified[0].position, None, "the baseline");
        (summary.qualified[1].position.unwrap(), summary.qualified[1].clone())
    };
    let (found, own) = position(qualified(1430.0, Some(1610.0)), qualified(1490.0, Some(1780.0)));
    assert_eq!(found, IntervalPosition::Overlaps);
    assert_eq!((own.held_bytes_per_second, own.failed_bytes_per_second), (1490e6, Some(1780e6)));
    let apart = |new| position(qualified(1430.0, Some(1610.0)), new).0;
    assert_eq!(apart(qualified(1700.0, None)), IntervalPosition::Above);
    assert_eq!(apart(qualified(900.0, Some(1000.0))), IntervalPosition::Below);
    assert_eq!(apart(qualified(900.0, None)), IntervalPosition::Overlaps, "no rate above 900 MB/s failed");
}

#[test]
fn several_qualifications_widen_the_interval() {
    let results = vec![qualified(1430.0, Some(1610.0)), qualified(1200.0, Some(1500.0))];
    let both = [Candidate { name: "old".into(), results }, candidate("new", qualified(1550.0, Some(1700.0)))];
    let summary = compare(&both, &[], &options()).unwrap();
    let ends = &summary.qualified[0];
    assert_eq!((ends.held_bytes_per_second, ends.failed_bytes_per_second), (1200e6, Some(1610e6)));
    assert_eq!(summary.qualified[1].position, Some(IntervalPosition::Overlaps));
    let mut none = qualified(1.0, None);
    let Stored::Qualify(changed) = &mut none.summary else { panic!() };
    changed.qualified_bytes_per_second = None;
    let both = [candidate("old", none), candidate("new", qualified(1550.0, Some(1700.0)))];
    assert!(compare(&both, &[], &options()).unwrap().qualified.is_empty());
}

#[test]
fn a_measurement_of_less_than_a_second_is_shown_and_not_ranked() {
    let fast: Vec<f64> = FIVE.iter().map(|factor| factor * 1.2).collect();
    let both = |longer| {
        let slow = candidate("slow", lasting(longer, "/data/a", &FIVE));
        let both = [slow, candidate("fast", lasting(longer, "/data/z", &fast))];
        let options = CompareOptions { fail_below: Some(2.0), anyway: true, ..options() };
        compare(&both, &[], &options).unwrap()
    };
    // Control: the same rates, measured for longer.
    let long = both(1.0);
    assert!(long.not_ranked.is_none() && !long.indices.is_empty());
    assert!(!long.notes.iter().any(|note| note.contains("too short")), "{:?}", long.notes);
    let short = both(1.0 / LENGTHENED);
    assert!(short.not_ranked.as_ref().unwrap().contains("took less than 1 s"), "{:?}", short.not_ranked);
    assert!(short.indices.is_empty() && short.runs_needed.is_empty());
    let cell = row(&short, Quantity::BytesPerSecond).cells[1].clone().unwrap();
    assert!(cell.is_too_short && cell.values.len() == 5, "{cell:?}");
    let beside = cell.beside.unwrap();
    assert_eq!((beside.change, beside.ratio, beside.effect), (Change::TooShort, None, None));
    assert!(short.notes.iter().any(|note| note.contains("too short to be evidence")), "{:?}", short.notes);
    let limit = short.limit.unwrap();
    assert!(limit.failed.is_empty() && limit.open[0].ends_with("measured for too short a time"), "{limit:?}");
    // One long side is not enough.
    let mixed =
        [candidate("a", on("/data/a", &FIVE)), candidate("b", lasting(1.0 / LENGTHENED, "/data/a", &fast))];
    let mixed = compare(&mixed, &[], &options()).unwrap();
    assert!(mixed.not_ranked.is_some() && mixed.indices.is_empty());
}

#[test]
fn what_was_published_has_a_ratio_and_no_interval() {
    let result = on("/data/a", &FIVE);
    let Stored::Disk(summary) = &result.summary else { panic!() };
    let what = summary.runs[0].phases[0].name.clone();
    let quantity = Quantity::BytesPerSecond;
    let figure = Figure {
        place: "/data/a".into(),
        what,
        quantity,
        values: vec![60e6 / LENGTHENED],
        is_too_short: false,
    };
    let published =
        Published { name: "2002".into(), source: "a paper".into(), year: Some(2002), figures: vec![figure] };
    let summary = compare(&[candidate("now", result)], &[published], &options()).unwrap();
    assert_eq!(summary.systems[1].published.as_deref(), Some("a paper"));
    let beside = row(&summary, Quantity::BytesPerSecond).cells[1].clone().unwrap().beside.unwrap();
    assert!(beside.lower.is_none() && beside.change == Change::NotJudged, "{beside:?}");
    assert!(beside.ratio.unwrap() < 1.0, "{beside:?}");
    assert!(summary.runs_needed.is_empty(), "no run can be added to a publication");
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

/// A result whose settings name its volume, as those of `trial` and `qualify` do.
fn with_settings(volume: &str, loads: &[&str]) -> StoredResult {
    let mut result = on(volume, &FIVE);
    let Stored::Disk(summary) = &mut result.summary else { panic!() };
    summary.plan["volumes"] = json!([volume]);
    summary.plan["loads"] = json!(loads);
    result
}

#[test]
fn the_setting_that_names_the_volume_is_no_difference_beside_the_place() {
    let both =
        [candidate("one", with_settings("/data/a", &[])), candidate("two", with_settings("/data/z", &[]))];
    let summary = compare(&both, &[], &options()).unwrap();
    assert_eq!(summary.not_ranked, None, "{:?}", summary.differences);
    assert!(summary.differences.len() > 1 && summary.differences.iter().all(|d| d.axis == "place"));
    for name in ["place", "volume", "volumes"] {
        let declared = CompareOptions { axes: vec![name.into()], ..options() };
        let summary = compare(&both, &[], &declared).unwrap();
        assert!(summary.differences.iter().all(|d| d.is_declared), "{name}: {:?}", summary.differences);
    }
    // Another load is a second axis.
    let loaded = with_settings("/data/z", &["disk=1MB/s@/data/z,read"]);
    let both = [candidate("one", with_settings("/data/a", &[])), candidate("two", loaded)];
    let why = compare(&both, &[], &options()).unwrap().not_ranked.unwrap();
    assert!(why.starts_with("the systems differ in load and in place,"), "{why}");
}

/// A campaign with the axes `array` and `load`: cells with a label on each, and the volume of its figures.
fn campaign(cells: &[[&str; 3]]) -> StoredResult {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../results/samples");
    let mut result = StoredResult::open(&samples.join("campaign-v1.json")).unwrap();
    let Stored::Campaign(summary) = &mut result.summary else { panic!() };
    let cell = summary.cells.iter().find(|cell| !cell.figures.is_empty()).unwrap().clone();
    summary.axes[0].name = "array".into();
    let load = summary.axes[1].name.clone();
    summary.cells = cells
        .iter()
        .map(|[array, loaded, volume]| {
            let labels = [("array".to_owned(), (*array).to_owned()), (load.clone(), (*loaded).to_owned())];
            let figures =
                cell.figures.iter().map(|figure| Figure { place: (*volume).into(), ..figure.clone() });
            keepup_results::CampaignCell {
                coordinates: labels.into(),
                figures: figures.collect(),
                ..cell.clone()
            }
        })
        .collect();
    result
}

#[test]
fn the_axis_of_a_campaign_that_chooses_the_volume_is_one_with_the_place() {
    let cells = [["raid0", "quiet", "/data/a"], ["raid5", "quiet", "/data/b"]];
    let summary = compare(&[candidate("campaign", campaign(&cells))], &[], &options()).unwrap();
    assert_eq!(summary.not_ranked, None, "{:?}", summary.differences);
    assert!(summary.differences.iter().all(|d| d.axis == "array"), "{:?}", summary.differences);
    assert!(!summary.rows.is_empty());
    // The other axis is a second difference, and not declared by the name of the first.
    let cells = [&cells[..], &[["raid0", "busy", "/data/a"], ["raid5", "busy", "/data/b"]]].concat();
    for (axes, is_ranked) in [(vec!["array"], false), (vec!["array", "load"], true), (vec!["place"], false)] {
        let axes = axes.into_iter().map(str::to_owned).collect();
        let declared = CompareOptions { axes, ..options() };
        let summary = compare(&[candidate("campaign", campaign(&cells))], &[], &declared).unwrap();
        assert_eq!(summary.not_ranked.is_none(), is_ranked, "{:?}", summary.not_ranked);
        let places = summary.differences.iter().filter(|d| d.axis == "array");
        assert!(places.clone().count() > 0 && places.clone().all(|d| d.is_declared));
    }
}

#[test]
fn the_machines_of_the_systems_are_named() {
    let named = |host: &str| {
        let mut result = on("/data/a", &FIVE);
        let Stored::Disk(summary) = &mut result.summary else { panic!() };
        summary.environment["host"] = json!(host);
        result
    };
    let two = Candidate { name: "new".into(), results: vec![named("daq2"), named("daq3"), named("daq2")] };
    let summary = compare(&[candidate("old", named("daq1")), two], &[], &options()).unwrap();
    let machines: Vec<&[String]> = summary.systems.iter().map(|system| &system.machines[..]).collect();
    assert_eq!(machines, [&["daq1"][..], &["daq2", "daq3"]]);
    assert!(summary.differences.is_empty(), "a name is no difference: {:?}", summary.differences);
}
