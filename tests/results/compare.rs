//! `keepup compare`: results of the real program, modified to differ.
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{directory, json, keepup, stored};

/// Runs a small disk test on volumes below `here` and stores its result below `out`. Returns its directory.
fn measured(here: &Path, volumes: &[&str], repeats: &str, depth: &str) -> PathBuf {
    let mut arguments = vec!["disk", "sweep", "--sizes", "64 KiB", "--depths", depth, "--time", "50ms"];
    arguments.extend(["--file", "8 MiB", "--repeats", repeats, "--out", "out"]);
    for volume in volumes {
        std::fs::create_dir_all(here.join(volume)).unwrap();
        arguments.extend(["--volume", volume]);
    }
    let run = keepup(here, &arguments);
    assert_eq!(run.code(), 0, "{run:#?}");
    let line =
        run.stderr.lines().find_map(|line| line.strip_prefix("result: ")).unwrap_or_default().to_owned();
    here.join(line)
}

/// The same with phases that are long enough to be evidence.
fn measured_for_longer(here: &Path, volumes: &[&str], repeats: &str, depth: &str) -> PathBuf {
    slowed(&measured(here, volumes, repeats, depth), &format!("{repeats}-{depth}.json"), 1000.0)
}

/// A copy of a result with all phases slowed down by `factor`, and without a checksum.
fn slowed(result: &Path, name: &str, factor: f64) -> PathBuf {
    let file = if result.is_dir() { result.join("result.json") } else { result.to_owned() };
    let mut summary: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    summary.as_object_mut().unwrap().remove("checksum");
    for run in summary["runs"].as_array_mut().unwrap() {
        for phase in run["phases"].as_array_mut().unwrap() {
            phase["seconds"] = (phase["seconds"].as_f64().unwrap() * factor).into();
        }
    }
    let path = result.parent().unwrap().join(name);
    std::fs::write(&path, summary.to_string()).unwrap();
    path
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn volumes_of_one_result_are_compared_in_pairs() {
    let place = directory();
    let result = measured_for_longer(place.path(), &["a", "b"], "5", "4");
    let run = keepup(place.path(), &["compare", text(&result), "--json"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    let found = json(&run);
    assert_eq!(found["systems"].as_array().unwrap().len(), 2);
    assert_eq!(found["not_ranked"], Value::Null, "{found:#}");
    let rates: Vec<&Value> = found["rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["quantity"] == "bytes_per_second")
        .collect();
    assert_eq!(rates.len(), 2, "written and read");
    for row in rates {
        let beside = &row["cells"][1]["beside"];
        assert_eq!(beside["is_paired"], true, "{row:#}");
        assert!(beside["lower"].as_f64() <= beside["ratio"].as_f64(), "{row:#}");
        assert!(beside["ratio"].as_f64() <= beside["upper"].as_f64(), "{row:#}");
    }
}

#[test]
fn a_slower_result_fails_and_an_equal_one_passes() {
    let place = directory();
    let before = measured_for_longer(place.path(), &["a"], "6", "4");
    let slow = slowed(&before, "slow.json", 1000.0);
    let limit = |other: &Path| {
        let (first, second) = (format!("before={}", text(&before)), format!("after={}", text(other)));
        keepup(place.path(), &["compare", &first, &second, "--fail-below", "0.95"])
    };
    let run = limit(&slow);
    assert_eq!(run.code(), 1, "{run:#?}");
    assert!(run.stdout.contains("LIMIT FAILED"), "{run:#?}");
    let run = limit(&slowed(&before, "same.json", 1.0));
    assert_eq!(run.code(), 0, "{run:#?}");
    assert!(run.stdout.contains("No figure is below 0.95"), "{run:#?}");
}

#[test]
fn a_short_measurement_is_not_ranked() {
    let place = directory();
    let short = measured(place.path(), &["a"], "5", "4");
    let run =
        keepup(place.path(), &["compare", text(&short), text(&slowed(&short, "same.json", 1.0)), "--json"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    let found = json(&run);
    assert!(found["not_ranked"].as_str().unwrap().contains("took less than 1 s"), "{found:#}");
    assert_eq!(found["rows"][0]["cells"][1]["beside"]["change"], "too_short", "{found:#}");
    let badge = |result: &Path| keepup(place.path(), &["report", text(result), "--badge"]).stdout;
    assert!(badge(&short).contains("disk sweep, too short to be evidence"), "{}", badge(&short));
    // Control: the same result, measured for longer.
    let long = slowed(&short, "long.json", 1000.0);
    let run =
        keepup(place.path(), &["compare", text(&long), text(&slowed(&long, "again.json", 1.0)), "--json"]);
    assert_eq!(json(&run)["not_ranked"], Value::Null, "{run:#?}");
    assert!(badge(&long).contains("B/s") && !badge(&long).contains("too short"));
}

#[test]
fn a_changed_result_is_refused() {
    let place = directory();
    let result = measured(place.path(), &["a"], "1", "4");
    let report = || keepup(place.path(), &["report", text(&result)]);
    let checked = || {
        let mut sums = std::process::Command::new("sha256sum");
        sums.args(["--check", "--strict", "SHA256SUMS"]).current_dir(&result).output().unwrap()
    };
    // Control: as it was written, and with a page that was added later.
    let page = result.join("report.html");
    assert_eq!(keepup(place.path(), &["report", text(&result), "--html", text(&page)]).code(), 0);
    let (run, sums) = (report(), checked());
    assert!(run.code() == 0 && !run.stderr.contains("checksum"), "{run:#?}");
    let listed = String::from_utf8_lossy(&sums.stdout).into_owned();
    assert!(sums.status.success() && listed.contains("report.html: OK"), "{sums:?}");
    for name in ["result.json", "events.jsonl"] {
        let file = result.join(name);
        let text_before = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text_before.replace("sweep", "sweeq")).unwrap();
        for verb in ["report", "compare"] {
            let run = keepup(place.path(), &[verb, text(&result)]);
            let said = format!("error: cannot read {}: it was changed after it was written", file.display());
            assert!(run.code() == 1 && run.stderr.contains(&said), "{verb}: {run:#?}");
            assert!(run.stderr.contains("hint: restore it from a copy, or remove "), "{run:#?}");
        }
        assert!(!checked().status.success());
        std::fs::write(&file, text_before).unwrap();
        assert_eq!(report().code(), 0);
    }
    // Printed results have a checksum of their own; one without is read, and said to have none.
    let printed = place.path().join("printed.json");
    let run =
        keepup(place.path(), &["compare", text(&result), text(&slowed(&result, "old.json", 1.0)), "--json"]);
    assert!(json(&run)["notes"].to_string().contains("old.json has no checksum"), "{run:#?}");
    assert!(!json(&run)["notes"].to_string().contains("sweep-"), "the other one has one: {run:#?}");
    std::fs::write(&printed, &run.stdout).unwrap();
    let show = || keepup(place.path(), &["report", text(&printed)]);
    assert!(show().code() == 0 && !show().stderr.contains("no checksum"), "{:#?}", show());
    std::fs::write(&printed, run.stdout.replace("too_short", "better")).unwrap();
    assert!(show().code() == 1 && show().stderr.contains("remove its field `checksum`"), "{:#?}", show());
    let old = keepup(place.path(), &["report", text(&place.path().join("out/old.json"))]);
    assert!(old.code() == 0 && old.stderr.contains("note: the result has no checksum"), "{old:#?}");
}

#[test]
fn too_few_runs_are_inconclusive() {
    let place = directory();
    let before = measured_for_longer(place.path(), &["a"], "2", "4");
    let slow = slowed(&before, "slow.json", 4.0);
    let run = keepup(place.path(), &["compare", text(&before), text(&slow), "--fail-below", "0.95"]);
    assert_eq!(run.code(), 5, "{run:#?}");
    let run = keepup(place.path(), &["compare", text(&before), text(&slow)]);
    assert_eq!(run.code(), 0, "{run:#?}");
    let page = run.stdout.replace("\n  ", " ");
    assert!(page.contains(" would resolve a difference of 5 %: the largest spread is "), "{page}");
    assert!(!page.contains("Index of each system") && !page.contains("significant"), "{page}");
    let found = json(&keepup(place.path(), &["compare", text(&before), text(&slow), "--json"]));
    assert_eq!(found["rows"][0]["cells"][1]["beside"]["ratio"], Value::Null, "{found:#}");
    assert!(found["runs_needed"][0]["more_of_system"].as_u64() >= Some(3), "{found:#}");
}

#[test]
fn two_qualifications_are_compared_by_both_ends_and_not_ranked() {
    let place = directory();
    let stored = |name: &str, held: f64, failed: f64| {
        let result = stored(place.path(), name, "qualify-v2.json");
        let file = result.join("result.json");
        let mut summary: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        summary["qualified_bytes_per_second"] = held.into();
        summary["failed_above"] = serde_json::json!({ "bytes_per_second": failed, "seconds": 30.0,
            "lost_events": 51, "condition": "no event may be lost" });
        std::fs::write(&file, summary.to_string()).unwrap();
        result
    };
    let (first, second) = (stored("first", 1.43e9, 1.61e9), stored("second", 1.49e9, 1.78e9));
    let run = keepup(place.path(), &["compare", text(&first), text(&second)]);
    assert_eq!(run.code(), 0, "{run:#?}");
    let page = run.stdout.replace("\n  ", " ");
    for words in [
        "[ TOO FEW RUNS ]",
        "4 more runs of first and 4 more runs of second are the least that the test accepts, 5 of each.",
        "second held 1.49 GB/s and failed at 1.78 GB/s; first held 1.43 GB/s and failed at 1.61 GB/s.",
        "The intervals overlap: neither system is shown to be faster.",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
}

#[test]
fn different_settings_are_reported_and_not_ranked() {
    let place = directory();
    let (first, second) =
        (measured(place.path(), &["a"], "1", "2"), measured(place.path(), &["b"], "1", "4"));
    let run = keepup(place.path(), &["compare", text(&first), text(&second)]);
    // The depths differ, so no values can be compared.
    assert_eq!(run.code(), 2, "{run:#?}");
    let second = slowed(&second, "second.json", 1000.0);
    let slow = slowed(&second, "slow.json", 2.0);
    let mut changed: Value = serde_json::from_str(&std::fs::read_to_string(&slow).unwrap()).unwrap();
    changed["plan"]["file_bytes"] = 77.into();
    changed["runs"][0]["volumes"][0] = "c".into();
    std::fs::write(&slow, changed.to_string()).unwrap();
    let run = keepup(place.path(), &["compare", text(&second), text(&slow)]);
    assert_eq!(run.code(), 0, "{run:#?}");
    let first_difference = run.stdout.find("77 instead of ").unwrap_or(usize::MAX);
    let figures = run.stdout.find("Median, with the standard deviation").unwrap_or(0);
    assert!(first_difference < figures, "differences precede the values: {run:#?}");
    let refusal = "Not ranked: the systems differ in file_bytes and in place";
    assert!(run.stdout.replace("\n  ", " ").contains(refusal), "{run:#?}");
    let run = keepup(
        place.path(),
        &["compare", text(&second), text(&slow), "--axis", "file_bytes", "--axis", "place"],
    );
    assert!(run.stdout.contains("[ TOO FEW RUNS ]") && !run.stdout.contains("Not ranked"), "{run:#?}");
}

#[test]
fn published_systems_are_compared_without_an_interval() {
    let place = directory();
    std::fs::create_dir_all(place.path().join("a")).unwrap();
    let test = ["disk", "concurrent", "--files", "2", "--size", "4 MiB", "--volume", "a", "--out", "out"];
    let run = keepup(place.path(), &test);
    assert_eq!(run.code(), 0, "{run:#?}");
    let line =
        run.stderr.lines().find_map(|line| line.strip_prefix("result: ")).unwrap_or_default().to_owned();
    let long = slowed(&place.path().join(&line), "long.json", 1000.0);
    let run = keepup(place.path(), &["compare", text(&long), "--published", "cdf-csl", "--json"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    let found = json(&run);
    let systems = found["systems"].as_array().unwrap();
    assert_eq!(systems.len(), 3, "XFS and ext3 of the paper");
    assert!(systems[1]["published"].is_string() && systems[0]["published"].is_null(), "{found:#}");
    let row = found["rows"].as_array().unwrap().iter().find(|row| row["what"] == "write 2 at once").unwrap();
    assert_eq!(row["cells"][1]["median"], 63e6);
    let beside = &row["cells"][1]["beside"];
    assert!(beside["ratio"].is_number() && beside["lower"].is_null(), "{row:#}");
    let run = keepup(place.path(), &["compare", &line, "--published", "esrf-2007"]);
    assert_eq!(run.code(), 2, "{run:#?}");
    assert!(run.stderr.contains("disk testdisk and disk block, not for disk concurrent"), "{run:#?}");
}

#[test]
fn an_invalid_result_or_another_test_is_refused() {
    let place = directory();
    let result = measured(place.path(), &["a"], "1", "2");
    let run = keepup(
        place.path(),
        &["register", "read", "ram", "--depth", "1", "--trials", "5", "--time", "5ms", "--out", "out"],
    );
    assert_eq!(run.code(), 0, "{run:#?}");
    let register =
        run.stderr.lines().find_map(|line| line.strip_prefix("result: ")).unwrap_or_default().to_owned();
    let run = keepup(place.path(), &["compare", text(&result), &register]);
    assert_eq!(run.code(), 2, "{run:#?}");
    assert!(run.stderr.contains("`disk sweep`") && run.stderr.contains("`register-read`"), "{run:#?}");

    std::fs::create_dir_all(place.path().join("foreign")).unwrap();
    std::fs::write(place.path().join("newer.json"), r#"{"schema_version": 99, "kind": "disk"}"#).unwrap();
    std::fs::write(place.path().join("cut.json"), r#"{"schema_version": 4, "ki"#).unwrap();
    for (other, code, words) in [
        ("foreign", 2, "keepup did not make it"),
        ("newer.json", 2, "does not know its layout version 99"),
        ("cut.json", 1, "EOF"),
        ("missing", 2, "No such file"),
    ] {
        let run = keepup(place.path(), &["compare", text(&result), other]);
        assert_eq!(run.code(), code, "{other}: {run:#?}");
        assert!(run.stderr.contains(words), "{other}: {run:#?}");
    }
}
