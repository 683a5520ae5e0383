//! The stored sample passes, and each contradiction that a result could show is found.

use keepup_results::Verdict;

use super::*;

fn stored() -> ResultSummary {
    open(&Path::new("..").join(SAMPLE)).unwrap()
}

#[test]
fn the_stored_sample_and_its_page_are_sound() {
    assert_eq!(check(Path::new("..")), []);
}

#[test]
fn only_the_number_of_limits_is_in_the_readme() {
    let page = "Reasons\n  - one\n\nNot tested\n  - a\n  - b\n    more\n  result   x\n\n[ FIT ]\n";
    let short = "Reasons\n  - one\n\nNot tested\n  ... (2 assumptions and limits)\n  result   x\n\n[ FIT ]\n";
    assert_eq!(shortened(page), short);
    assert_eq!(shortened("[ FIT ]\n"), "[ FIT ]\n");
}

#[test]
fn every_contradiction_is_named() {
    type Change = fn(&mut ResultSummary);
    let cases: [(&str, Change); 12] = [
        ("failed", |s| {
            s.trials[0].passed = false;
            s.trials[0].failed_condition = Some("events were lost".into());
            s.trials[0].asked_bytes_per_second = s.qualified_bytes_per_second.unwrap() * 0.9;
        }),
        ("the knee is", |s| {
            s.knee_bytes_per_second = s.knee_bytes_per_second.map(|knee| knee * 100.0);
            s.knee_interval = None;
        }),
        ("more was held for the whole soak", |s| {
            s.knee_bytes_per_second = s.qualified_bytes_per_second.map(|held| held * 0.99);
            s.knee_interval = None;
        }),
        ("bytes over its time", |s| s.soak.as_mut().unwrap().bytes /= 2),
        ("no trial that passed was asked", |s| {
            let held = s.qualified_bytes_per_second.unwrap();
            s.trials.retain(|trial| (trial.asked_bytes_per_second / held - 1.0).abs() > 0.05);
        }),
        ("other bytes than the soak", |s| s.ledger.durable.bytes /= 2),
        ("no limit says so", |s| s.limits.clear()),
        ("became durable", |s| {
            let trial = s.trials.iter_mut().find(|trial| trial.passed).unwrap();
            trial.durable_bytes_per_second /= 2.0;
        }),
        ("than was received", |s| s.trials[0].achieved_bytes_per_second /= 2.0),
        ("times a year", |s| s.storage.bytes_per_year = s.storage.bytes_per_year.map(|year| year * 2)),
        ("whole run", |s| s.interrupted = true),
        ("headroom is not the one", |s| {
            (s.verdict, s.headroom_wanted) = (Verdict::Fit, s.headroom.unwrap() * 2.0);
        }),
    ];
    assert_eq!(sample::contradictions(&stored()), Vec::<String>::new());
    for (word, change) in cases {
        let mut changed = stored();
        change(&mut changed);
        let found = sample::contradictions(&changed);
        assert!(found.iter().any(|text| text.contains(word)), "{word}: {found:?}");
    }
}

#[test]
fn the_sample_replaces_what_stands_between_the_markers_alone() {
    let readme = format!("above\n{START}old\n{END}\nbelow\n");
    let drawn = with_sample(&readme, &stored()).unwrap();
    assert!(drawn.starts_with(&format!("above\n{START}```\n$ keepup qualify csl")), "{drawn}");
    assert!(drawn.ends_with(&format!("```\n{END}\nbelow\n")) && !drawn.contains("old"), "{drawn}");
    assert_eq!(with_sample(&drawn, &stored()), Some(drawn.clone()), "drawing twice changes nothing");
    assert_eq!(with_sample("no markers", &stored()), None);
}

/// The stored sample as a machine with nothing else to do would have measured it.
fn quiet() -> ResultSummary {
    let mut summary = stored();
    let cpu = &mut summary.cpu;
    (cpu.seconds_per_gb, cpu.source_seconds_per_gb, cpu.drain_seconds_per_gb) = (Some(0.4), Some(0.5), None);
    (cpu.per_core_percent, cpu.steal_percent) = (vec![65.0, 70.0], Some(0.1));
    let per_gb = 1e9 * 1.3 / 0.9;
    let scale = per_gb / summary.qualified_bytes_per_second.unwrap();
    cpu.per_core_percent.iter_mut().for_each(|busy| *busy /= scale);
    summary
}

#[test]
fn a_run_beside_other_work_is_not_taken() {
    assert_eq!(sample::noise(&quiet()), None);
    let mut busy = quiet();
    busy.cpu.per_core_percent = vec![99.0, 99.0];
    assert!(sample::noise(&busy).unwrap().contains("not quiet"));
    let mut stolen = quiet();
    stolen.cpu.steal_percent = Some(20.0);
    assert!(sample::noise(&stolen).unwrap().contains("not quiet"));
}

#[test]
fn a_result_in_which_something_contradicts_is_not_taken() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir_all(place.path().join("docs/sample")).unwrap();
    let result = place.path().join("result.json");
    let mut summary = quiet();
    fs::write(&result, serde_json::to_string(&summary).unwrap()).unwrap();
    take(place.path(), &result).unwrap();
    assert_eq!(open(&place.path().join(SAMPLE)).unwrap(), summary);
    summary.soak.as_mut().unwrap().bytes *= 3;
    fs::write(&result, serde_json::to_string(&summary).unwrap()).unwrap();
    assert!(take(place.path(), &result).unwrap_err().to_string().contains("contradicts itself"));
}
