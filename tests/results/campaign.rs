//! Campaigns: a separate result per cell, also after interruptions; refusal before the first write.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::common::{TestDirectory, directory, json, keepup, recorder, squeezed, start};

/// Two volumes with two orders, compared with the first of each; 0.2 s per run.
const FOUR_CELLS: &str = r#"
name = "four-cells"
title = "Two <b>volumes</b>"
repetitions = 2
[run]
verb = "disk sweep"
sizes = "1 MiB"
depths = "2"
time = "100 ms"
file = "16 MiB"
[axes]
volume = ["a", "b"]
way = [{ label = "as it is" }, { label = "through the cache & <i>back</i>", access = "buffered" }]
[baseline]
volume = "a"
way = "as it is"
"#;

/// A directory with volumes and a campaign file.
fn place(text: &str) -> TestDirectory {
    let place = directory();
    for volume in ["a", "b"] {
        std::fs::create_dir(place.path().join(volume)).unwrap();
    }
    std::fs::write(place.path().join("c.toml"), text).unwrap();
    place
}

/// The only directory of a campaign.
fn campaign_in(here: &Path) -> PathBuf {
    let mut all = std::fs::read_dir(here.join("results")).unwrap();
    let path = all.next().unwrap().unwrap().path();
    assert!(all.next().is_none());
    path
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a Vec<Value> {
    value[key].as_array().unwrap_or_else(|| panic!("no {key} in {value:#}"))
}

/// All runs of a summary with their cell numbers.
fn runs(summary: &Value) -> Vec<(u64, &Value)> {
    let of = |cell: &'static str| move |value: &Value| value[cell].as_u64().unwrap();
    let cells = list(summary, "cells").iter();
    cells.flat_map(|cell| list(cell, "runs").iter().map(move |run| (of("number")(cell), run))).collect()
}

fn leftovers(here: &Path) -> usize {
    ["a", "b"].iter().map(|volume| std::fs::read_dir(here.join(volume)).unwrap().count()).sum()
}

#[test]
#[ignore = "system"]
fn every_cell_is_a_result_compared_with_its_baseline() {
    let place = place(FOUR_CELLS);
    let here = place.path();
    let run = keepup(here, &["campaign", "run", "c.toml", "--json"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    let found = json(&run);
    let campaign = campaign_in(here);
    assert_eq!(read(&campaign.join("result.json")), found);
    assert_eq!(std::fs::read_to_string(campaign.join("campaign.toml")).unwrap(), FOUR_CELLS);
    let cells = list(&found, "cells");
    assert_eq!((cells.len(), runs(&found).len()), (4, 8));
    for (cell, run) in runs(&found) {
        let result = read(&campaign.join(run["directory"].as_str().unwrap()).join("result.json"));
        assert_eq!(result["kind"], "disk");
        // The result's identifier is the one in the cell.
        let command = cells[cell as usize - 1]["command"].as_str().unwrap();
        assert!(result["command"].as_str().unwrap().starts_with(command), "{command}: {result:#}");
        assert_eq!((&run["exit_code"], &run["why"]), (&0.into(), &Value::Null));
    }
    for cell in cells {
        // Rate, CPU and times of writing and reading, once per repetition.
        assert!(list(cell, "figures").len() >= 4, "{cell:#}");
        // Busy cores are reported only for runs long enough to measure them.
        for figure in list(cell, "figures").iter().filter(|figure| figure["quantity"] != "cores_busy") {
            assert_eq!(list(figure, "values").len(), 2, "{figure:#}");
        }
    }
    let found: Vec<_> = cells.iter().map(|cell| (&cell["baseline"], cell["confounded"] == true)).collect();
    assert_eq!(found, [(&Value::Null, false), (&1.into(), false), (&1.into(), false), (&1.into(), true)]);
    assert_eq!(cells[3]["alone"], serde_json::json!([3, 2]));
    for cell in &cells[1..] {
        for ratio in list(cell, "ratios").iter().filter(|ratio| ratio["quantity"] != "cores_busy") {
            let number = |key: &str| ratio[key].as_f64().unwrap();
            assert!(number("lower") <= number("ratio") && number("ratio") <= number("upper"), "{ratio:#}");
            assert_eq!((&ratio["pairs"], &ratio["flagged"]), (&2.into(), &false.into()));
        }
        // Only figures that were measured for long enough to be evidence have one.
        let is_evidence = |figure: &&Value| figure["is_too_short"].is_null();
        let evidence = list(cell, "figures").iter().filter(is_evidence).count();
        assert!(list(cell, "ratios").len() <= evidence && evidence < list(cell, "figures").len(), "{cell:#}");
    }
    // Order in time: all cells, then all again.
    let log = std::fs::read_to_string(campaign.join("events.jsonl")).unwrap();
    let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let order: Vec<_> =
        events[1..].iter().map(|run| (run["cell"].as_u64(), run["repetition"].as_u64())).collect();
    let wanted: Vec<_> = (1..=2).flat_map(|n| (1..=4).map(move |cell| (Some(cell), Some(n)))).collect();
    assert_eq!(order, wanted);
    assert_eq!(leftovers(here), 0);
    let text = keepup(here, &["campaign", "resume", campaign.to_str().unwrap()]);
    assert_eq!(text.code(), 0, "nothing is left: {text:#?}");
    let confounded = "cell 4: volume and way change together; one at a time in cells 3, 2";
    assert!(text.stdout.replace("\n    ", " ").contains(confounded), "{text:#?}");
    assert!(text.stdout.contains("8 of 8 runs"), "{text:#?}");
}

#[test]
fn a_dry_run_of_a_campaign_adds_up_and_writes_nothing() {
    let place = place(FOUR_CELLS);
    let here = place.path();
    let run = keepup(here, &["campaign", "run", "c.toml", "--dry-run", "--json"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    let whole = json(&run);
    let (mut bytes, mut seconds) = (0, 0.0);
    for volume in ["a", "b"] {
        for way in [&[][..], &["--access", "buffered"]] {
            let cell = ["disk", "sweep", "--sizes", "1 MiB", "--depths", "2", "--time", "100 ms"];
            let more = ["--file", "16 MiB", "--volume", volume, "--dry-run", "--json"];
            let found = json(&keepup(here, &[&cell[..], &more, way].concat()));
            bytes += 2 * found["bytes_written"].as_u64().unwrap();
            seconds += 2.0 * found["seconds"].as_f64().unwrap();
            assert_eq!(found["volume_bytes_written"][volume], found["bytes_written"]);
            assert!(whole["space_bytes"][volume].as_u64() >= found["space_bytes"][volume].as_u64());
        }
    }
    assert_eq!(whole["bytes_written"].as_u64(), Some(bytes));
    assert!((whole["seconds"].as_f64().unwrap() - seconds).abs() < 1e-6, "{whole:#}");
    let wear = |volume: &str| whole["volume_bytes_written"][volume].as_u64().unwrap();
    assert_eq!((wear("a"), wear("a") + wear("b")), (bytes / 2, bytes));
    let text = keepup(here, &["campaign", "run", "c.toml", "--dry-run"]);
    for line in ["4 cells, 2 runs per cell, 8 runs in total", "  3  b, as it is: ", "--volume b"] {
        assert!(text.stdout.contains(line), "{line}: {text:#?}");
    }
    assert!(!here.join("results").exists());
    assert_eq!(leftovers(here), 0);
}

#[test]
fn every_dry_run_prints_one_json_object() {
    let place = place("");
    let here = place.path();
    let commands: [&[&str]; 8] = [
        &["disk", "testdisk", "--volume", "a", "--load", "disk=1MB/s@b,write,size=16 MiB"],
        &["net", "tcp", "self"],
        &["register", "read", "ram"],
        &["soak", "--volume", "a", "--quick"],
        &["qualify", "csl", "--volume", "a", "--volume", "b", "--quick"],
        &["load", "disk=1MB/s@a,write,size=16 MiB", "--time", "10 s"],
        &["load", "cpu=0.1"],
        &["trial", "csl", "--volume", "a", "--time", "1 s", "--repeats", "3"],
    ];
    let forecasts = commands.map(|command| {
        let run = keepup(here, &[command, &["--dry-run", "--json"]].concat());
        assert_eq!(run.code(), 0, "{run:#?}");
        let found = json(&run);
        let volumes = found["volume_bytes_written"].as_object().unwrap();
        let sum: u64 = volumes.values().map(|bytes| bytes.as_u64().unwrap()).sum();
        assert_eq!(found["bytes_written"].as_u64(), Some(sum), "{found:#}");
        // The text output contains the same.
        let text = keepup(here, &[command, &["--dry-run"]].concat());
        assert_eq!(text.stdout.trim_end(), found["text"].as_str().unwrap());
        found
    });
    let [disk, net, register, soak, qualify, load, cpu, trial] = forecasts;
    let of = |found: &Value, volume: &str| found["volume_bytes_written"][volume].as_u64();
    assert!(of(&disk, "a") > of(&disk, "b") && of(&disk, "b") > Some(16 << 20), "{disk:#}");
    assert_eq!((&net["bytes_written"], &register["bytes_written"]), (&0.into(), &0.into()));
    assert!(net["seconds"].as_f64() > Some(0.0) && register["seconds"].as_f64() > Some(0.0));
    assert!(
        soak["bytes_written"].as_u64() > Some(0) && of(&qualify, "a") == of(&qualify, "b"),
        "{qualify:#}"
    );
    assert_eq!((of(&load, "a"), &load["seconds"]), (Some((16 << 20) + 10_000_000), &10.0.into()));
    let once =
        json(&keepup(here, &["trial", "csl", "--volume", "a", "--time", "1 s", "--dry-run", "--json"]));
    assert_eq!(of(&trial, "a"), of(&once, "a").map(|bytes| 3 * bytes));
    assert_eq!(trial["space_bytes"], once["space_bytes"]);
    assert_eq!((&cpu["bytes_written"], &cpu["seconds"]), (&0.into(), &Value::Null));
    assert_eq!(leftovers(here), 0);
}

#[test]
#[ignore = "system"]
fn a_killed_campaign_resumes_at_the_interrupted_cell() {
    // Long enough to be interrupted.
    let place = place(&FOUR_CELLS.replace("100 ms", "700 ms"));
    let here = place.path();
    let mut first = start(here, &["campaign", "run", "c.toml"]);
    first.line("run 3/8");
    let campaign = campaign_in(here);
    let path = campaign.to_str().unwrap();
    let status = json(&keepup(here, &["campaign", "status", path, "--json"]));
    assert_eq!(status["is_running"], true, "{status:#}");
    let other = keepup(here, &["campaign", "resume", path]);
    assert_eq!(other.code(), 3, "{other:#?}");
    assert!(other.stderr.contains("is running it"), "{other:#?}");
    // Within the next run.
    std::thread::sleep(Duration::from_millis(100));
    first.signal("KILL");
    drop(first.wait());
    assert!(!campaign.join("result.json").exists());
    let status = json(&keepup(here, &["campaign", "status", path, "--json"]));
    let (done, left) = (status["done"].as_u64().unwrap(), status["left"].as_u64().unwrap());
    assert!(done >= 3 && done + left == 8 && status["is_running"] == false, "{status:#}");
    let finished = |campaign: &Path| -> BTreeSet<PathBuf> {
        let cells = std::fs::read_dir(campaign.join("cells")).unwrap();
        let directories =
            cells.map(|cell| cell.unwrap().path()).filter(|path| !path.to_str().unwrap().contains("-cut"));
        directories
            .flat_map(|directory| std::fs::read_dir(directory).unwrap())
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir())
            .collect()
    };
    let before = finished(&campaign);
    let rest = keepup(here, &["campaign", "resume", path, "--json"]);
    assert_eq!(rest.code(), 0, "{rest:#?}");
    let found = json(&rest);
    assert_eq!((runs(&found).len(), &found["totals"]["left"]), (8, &0.into()));
    // Finished runs were not repeated, and the interrupted one was kept.
    let after = finished(&campaign);
    assert_eq!(after.len(), 8);
    assert!(before.intersection(&after).count() as u64 >= done, "{before:#?} {after:#?}");
    let cut = std::fs::read_dir(campaign.join("cells")).unwrap();
    let cut = cut.filter(|cell| cell.as_ref().unwrap().path().to_str().unwrap().ends_with("-cut")).count();
    assert!(cut <= 1, "at most one run was in progress");
    let log = std::fs::read_to_string(campaign.join("events.jsonl")).unwrap();
    assert_eq!(log.lines().filter(|line| line.contains("cell_run")).count(), 8);
}

#[test]
#[ignore = "system"]
fn an_interrupted_campaign_keeps_its_results_and_prints_how_to_resume() {
    let place = place(FOUR_CELLS);
    let here = place.path();
    let mut first = start(here, &["campaign", "run", "c.toml", "--json"]);
    first.line("run 2/8");
    std::thread::sleep(Duration::from_millis(100));
    first.signal("INT");
    let run = first.wait();
    assert_eq!(run.code(), 130, "{run:#?}");
    assert!(run.stderr.contains("hint: keepup campaign resume results/four-cells-"), "{run:#?}");
    let found = json(&run);
    let done = runs(&found).len();
    assert!((2..8).contains(&done) && found["interrupted"] == true, "{found:#}");
    assert_eq!(leftovers(here), 0, "the cell cleaned up after itself");
    let campaign = campaign_in(here);
    let path = campaign.to_str().unwrap();
    // A repetition may be added before resuming.
    let plan = std::fs::read_to_string(campaign.join("campaign.toml")).unwrap();
    std::fs::write(campaign.join("campaign.toml"), plan.replace("repetitions = 2", "repetitions = 3"))
        .unwrap();
    let rest = keepup(here, &["campaign", "resume", path, "--json"]);
    assert_eq!(rest.code(), 0, "{rest:#?}");
    assert_eq!((runs(&json(&rest)).len(), &json(&rest)["interrupted"]), (12, &false.into()));
    std::fs::write(campaign.join("campaign.toml"), plan.replace("100 ms", "50 ms")).unwrap();
    let other = keepup(here, &["campaign", "resume", path, "--anyway"]);
    assert_eq!(other.code(), 2, "{other:#?}");
    assert!(other.stderr.contains("was changed since its run"), "{other:#?}");
}

/// One cell that works, and one with an unreachable board.
const HALF: &str = r#"
name = "half"
repetitions = 2
[run]
verb = "register read"
trials = 5
depth = 1
[axes]
target = [{ label = "memory", args = "ram" }, { label = "board", args = "ipbus://127.0.0.1:9" }]
[baseline]
target = "memory"
"#;

#[test]
fn a_failed_cell_is_reported_and_the_others_run() {
    let place = place(HALF);
    let here = place.path();
    let run = keepup(here, &["campaign", "run", "c.toml", "--json"]);
    assert_eq!(run.code(), 4, "{run:#?}");
    let found = json(&run);
    let codes: Vec<_> = runs(&found).iter().map(|(cell, run)| (*cell, run["exit_code"].as_i64())).collect();
    assert_eq!(codes, [(1, Some(0)), (1, Some(0)), (2, Some(4)), (2, Some(4))]);
    assert!(runs(&found)[2].1["why"].as_str().unwrap().contains("127.0.0.1:9"), "{found:#}");
    assert_eq!((&found["totals"]["failed"], &found["totals"]["left"]), (&2.into(), &0.into()));
    assert!(list(&list(&found, "cells")[1], "ratios").is_empty());
    let made = std::fs::read_dir(here.join("results")).unwrap().next().unwrap().unwrap().path();
    let runs_made = || {
        let log = std::fs::read_to_string(made.join("events.jsonl")).unwrap();
        log.lines().filter(|line| line.contains("cell_run")).count()
    };
    let again = keepup(here, &["campaign", "resume", made.to_str().unwrap(), "--json"]);
    assert_eq!((again.code(), runs_made()), (4, 4), "nothing is left: {again:#?}");
    let again = keepup(here, &["campaign", "resume", made.to_str().unwrap(), "--failed", "--json"]);
    assert_eq!((again.code(), runs_made()), (4, 6), "failed cells were run again: {again:#?}");
    assert_eq!(json(&again)["totals"]["failed"], 2, "and failed again: {again:#?}");
    assert_eq!(runs(&json(&again)).len(), 4);
    std::fs::write(here.join("d.toml"), format!("{HALF}[stop]\nfailures = 1\n")).unwrap();
    let run = keepup(here, &["campaign", "run", "d.toml", "--out", "other"]);
    assert_eq!(run.code(), 4, "{run:#?}");
    assert!(run.stdout.contains("Stopped early: 1 runs failed"), "{run:#?}");
    assert!(run.stdout.contains("2 of 4 runs"), "{run:#?}");
    std::fs::write(here.join("e.toml"), format!("{HALF}[stop]\nbytes = \"0 B\"\ntime = \"1 ms\"\n")).unwrap();
    let run = keepup(here, &["campaign", "run", "e.toml", "--out", "third", "--json"]);
    assert_eq!((run.code(), runs(&json(&run)).len()), (5, 1), "{run:#?}");
}

#[test]
fn an_impossible_campaign_is_refused_before_the_first_write() {
    let place = place("");
    let here = place.path();
    let head = "name = \"c\"\n[run]\n";
    let wrong = [
        (
            "verb = \"disk sweep\"\nquik = true\n[axes]\nvolume = [\"a\"]",
            2,
            "cannot run cell 1 (a) as `keepup disk",
        ),
        ("verb = \"disk sweep\"\n[axes]\nsizes = [\"1 MiB\", \"much\"]", 2, "cannot run cell 2 (much)"),
        ("verb = \"record\"\nvolume = \"a\"\n[axes]\ndepth = [1, 2]", 2, "the command stores no result"),
        (
            "verb = \"campaign run\"\nargs = \"c.toml\"\n[axes]\nx = [{ label = \"1\" }]",
            2,
            "the command stores no result",
        ),
        ("verb = \"net serve\"\n[axes]\nx = [{ label = \"1\" }]", 2, "the command stores no result"),
        ("verb = \"disk sweep\"\n[axes]\nvolume = [\"a\", \"gone\"]", 2, "cannot run cell 2 (gone)"),
        ("verb = \"disk sweep\"\n[axes]\nvolume = [\"a\", \"/proc\"]", 2, "cannot run cell 2 (/proc)"),
        ("verb = \"disk sweep\"\n[axes]\nvolume = []", 2, "axes.volume: no values"),
        (
            "verb = \"disk sweep\"\n[axes]\nvolume = [\"a\"]\n[[skip]]\nwhen.volume = \"a\"\nwhy = \"no\"",
            2,
            "every cell",
        ),
        (
            "verb = \"disk sweep\"\n[axes]\nvolume = [\"a\"]\n[baseline]\nvolum = \"a\"",
            2,
            "hint: did you mean \"volume\"",
        ),
    ];
    for (text, code, says) in wrong {
        std::fs::write(here.join("c.toml"), format!("{head}{text}\n")).unwrap();
        let run = keepup(here, &["campaign", "run", "c.toml"]);
        assert_eq!(run.code(), code, "{text}: {run:#?}");
        assert!(run.stderr.contains(says), "{text}: {run:#?}");
        assert!(!here.join("results").exists(), "{text}");
    }
    assert_eq!(keepup(here, &["campaign", "run", "nowhere.toml"]).code(), 2);
    let foreign = keepup(here, &["campaign", "status", "a"]);
    assert_eq!(foreign.code(), 2, "{foreign:#?}");
    assert_eq!(leftovers(here), 0);
}

#[test]
fn a_campaign_has_at_most_ten_thousand_cells() {
    let labels = |count: u32| {
        let all: Vec<String> = (0..count).map(|n| format!("{{ label = \"{n}\" }}")).collect();
        all.join(", ")
    };
    let text = |last: u32| {
        let axes = format!("x = [{}]\ny = [{}]", labels(100), labels(last));
        format!("name = \"many\"\n[run]\nverb = \"register read\"\nargs = \"ram\"\n[axes]\n{axes}\n")
    };
    let place = place(&text(100));
    let here = place.path();
    let run = keepup(here, &["campaign", "run", "c.toml", "--dry-run"]);
    assert_eq!(run.code(), 0, "{:?}", run.stderr);
    assert!(run.stdout.contains("10000 cells") && run.stdout.contains("\n  10000  99, 99"));
    std::fs::write(here.join("c.toml"), text(101)).unwrap();
    let run = keepup(here, &["campaign", "run", "c.toml", "--dry-run"]);
    assert_eq!(run.code(), 2);
    assert!(run.stderr.contains("100 x 101 cells x 1 repetitions = 10100 runs"), "{:?}", run.stderr);
}

/// `doctor` decides whether the volumes share a disk here: a directory may be on none.
#[test]
fn volumes_of_one_disk_are_named_wherever_they_are_compared() {
    let place = place(FOUR_CELLS);
    let here = place.path();
    let both = ["--volume", "a", "--volume", "b"];
    let says = |text: &str| squeezed(text).contains("b are on the same disk (");
    let doctor = keepup(here, &[&["doctor"][..], &both].concat());
    let is_shared = says(&doctor.stdout);
    for command in [
        &["qualify", "csl-old", "--dry-run"][..],
        &["trial", "csl-old", "--dry-run"],
        &["disk", "sweep", "--dry-run"],
        &["reproduce", "esrf-2007", "--scale", "0.01", "--dry-run"],
    ] {
        let run = keepup(here, &[command, &both].concat());
        assert_eq!((run.code(), says(&run.stderr)), (0, is_shared), "{command:?}: {run:#?}");
        let alone = keepup(here, &[command, &both[..2]].concat());
        assert!(!says(&alone.stderr), "{command:?}: {alone:#?}");
    }
    let run = keepup(here, &["campaign", "run", "c.toml", "--dry-run"]);
    assert_eq!((run.code(), says(&run.stderr)), (0, is_shared), "{run:#?}");
    let mut record = recorder(here, &["a", "b"], &[]);
    record.address();
    record.signal("INT");
    let run = record.wait();
    assert_eq!(says(&run.stderr), is_shared, "{run:#?}");
}
