//! Reproduction of papers with a small part of their data; this machine appears in the tables.
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use keepup_testkit::Program;
use serde_json::Value;

use crate::common::{TestDirectory, busy_directory, json, start};

/// Time limit of a reproduction, whose runs take minutes on a slow disk.
const LIMIT: Duration = Duration::from_secs(900);

/// A directory with these volumes.
fn place(volumes: &[&str]) -> TestDirectory {
    let place = busy_directory();
    volumes.iter().for_each(|volume| std::fs::create_dir(place.path().join(volume)).unwrap());
    place
}

/// Reproduces a paper with a small part of its data. All runs must succeed.
fn reproduce(directory: &Path, paper: &str, volumes: &[&str], more: &[&str]) -> Value {
    let volumes: Vec<&str> = volumes.iter().flat_map(|volume| ["--volume", volume]).collect();
    let head = ["reproduce", paper, "--scale", "0.01", "--json"];
    let run = start(directory, &[&head[..], &volumes, more].concat()).wait_for(LIMIT);
    assert_eq!(run.code(), 0, "{run:#?}");
    let found = json(&run);
    assert_eq!((&found["totals"]["failed"], &found["totals"]["left"]), (&0.into(), &0.into()), "{found:#}");
    found["paper"].clone()
}

/// Reproduces a paper once on these volumes of one directory, which must be unchanged afterwards.
fn repeated(paper: &str, volumes: &[&str]) -> Value {
    let place = place(volumes);
    let page = reproduce(place.path(), paper, volumes, &["--repeats", "1"]);
    for volume in volumes {
        let left = std::fs::read_dir(place.path().join(volume)).unwrap().count();
        assert_eq!(left, 0, "no files remain on the volumes");
    }
    page
}

/// Checks that every table but that of the model contains this machine with values.
fn has_this_machine(page: &Value) {
    let tables = page["tables"].as_array().unwrap().iter();
    for table in tables.filter(|table| table["title"] != "Predictions of the model") {
        let rows = table["rows"].as_array().unwrap().iter();
        let here = rows.filter(|row| row["is_here"] == true);
        let cells: Vec<&Value> = here.flat_map(|row| row["cells"].as_array().unwrap()).collect();
        assert!(cells.iter().any(|cell| cell["value"].is_number()), "{table:#}");
    }
    for answer in page["answers"].as_array().unwrap() {
        assert_ne!(answer["here"], "not measured");
    }
}

#[test]
#[ignore = "system"]
fn the_event_logger_paper_is_reproduced() {
    let page = repeated("cdf-csl", &["a", "b"]);
    has_this_machine(&page);
    let stands: Vec<&str> =
        page["curves"].as_array().unwrap().iter().map(|curve| curve["stands"].as_str().unwrap()).collect();
    assert_eq!(stands, ["figure 2", "figure 3", "figure 4"]);
    assert_eq!(statuses(&page), "K1 K2 K3 K4 K5 K6 K7 K8 K9 K10 K11 K12 K13");
}

#[test]
fn every_prediction_of_the_table_of_experiments_runs() {
    let table = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/papers.md");
    let table = std::fs::read_to_string(table).unwrap();
    let place = place(&[]);
    let commands = table.split('`').filter_map(|code| code.strip_prefix("keepup predict "));
    let run = commands.map(|arguments| {
        let words = std::iter::once("predict").chain(arguments.split(' ')).collect::<Vec<_>>();
        let run = start(place.path(), &words).wait_for(LIMIT);
        assert!(run.code() <= 1, "{arguments}: {run:#?}");
        assert!(run.stdout.contains("keepup predict"), "{run:#?}");
    });
    assert!(run.count() > 2);
}

#[test]
fn options_and_results_of_other_papers_are_refused() {
    let place = place(&["a"]);
    let refused = |arguments: &[&str], code: i32, words: &str| {
        let run = start(place.path(), &[&["reproduce"], arguments, &["--dry-run"]].concat()).wait_for(LIMIT);
        assert!(run.code() == code && run.stderr.contains(words), "{words}: {run:#?}");
    };
    refused(
        &["esrf-2007", "--volume", "a", "--raid", "a"],
        2,
        "cannot use --raid with esrf-2007: it is an option of romanis",
    );
    refused(&["romanis", "--volume", "a", "--host", "h"], 2, "it is an option of esrf-2007, cdf-csl");
    refused(&["cern-vme", "--volume", "a"], 2, "cannot use --volume with cern-vme");
    refused(&["esrf-2007", "--volume", "a", "--with", "nosuch"], 2, "cannot open the result nosuch");
    refused(&["esrf-2007", "--volume", "x=a", "--volume", "x=a"], 2, "cannot use two volumes named x");
    let left: Vec<_> = std::fs::read_dir(place.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing was created: {left:?}");
}

/// Ids of the experiments that were run.
fn statuses(page: &Value) -> String {
    let experiments = page["experiments"].as_array().unwrap().iter();
    let run =
        experiments.filter(|experiment| ["same", "nearest"].map(Value::from).contains(&experiment["status"]));
    run.map(|experiment| experiment["id"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

#[test]
#[ignore = "system"]
fn the_camera_report_is_reproduced_with_named_volumes_and_another_machine() {
    let place = place(&["a", "b"]);
    let named = ["--volume", "raid0=a", "--volume", "raid5=b", "--scale", "0.01", "--json"];
    let token = format!("exec env KEEPUP_NET_TOKEN='{}' \"$@\"", crate::net::TOKEN);
    let program = ["-c", &token, "sh", env!("CARGO_BIN_EXE_keepup"), "reproduce", "esrf-2007"];
    let run = |more: &[&str]| {
        let arguments = [&program[..], &named, more].concat();
        let run = Program::start("sh", &arguments, place.path()).wait_for(LIMIT);
        assert_eq!(run.code(), 0, "{run:#?}");
        json(&run)
    };
    let first = run(&["--repeats", "1", "--out", "first"]);
    let page = &first["paper"];
    assert_eq!(statuses(page), "E1 E2 E3 E4 E5 E6 E7 E8 E10 E11");
    for (n, table) in page["tables"].as_array().unwrap().iter().enumerate() {
        let title = table["title"].as_str().unwrap();
        let here = table["rows"].as_array().unwrap().iter().filter(|row| row["is_here"] == true);
        let cells: Vec<&Value> = here.flat_map(|row| row["cells"].as_array().unwrap()).collect();
        // A virtual disk may have no link.
        let is_filled =
            cells.iter().any(|cell| cell["value"].is_number()) || title.starts_with("PCI Express");
        assert!(is_filled, "{table:#}");
        assert!(n > 1 || cells.len() == 8, "two named volumes: {table:#}");
    }
    let answer = page["answers"][0]["here"].as_str().unwrap();
    let is_answered = answer.contains("raid0: ") && answer.contains("raid5: ");
    assert!(is_answered && answer.ends_with("[scale 0.01]"), "{answer}");
    // One pair cannot tell. The first result stands for that of another machine.
    let stored = std::fs::read_dir(place.path().join("first")).unwrap().next().unwrap().unwrap().path();
    // The network traffic comes from a server, as from another host.
    let (_server, address) = crate::net::serve(place.path(), "127.0.0.1:0");
    let second = run(&["--repeats", "1", "--with", &stored.display().to_string(), "--host", &address]);
    let page = &second["paper"];
    assert!(!page["limits"].to_string().contains("over loopback"), "{page:#}");
    let from = page["tables"][2]["rows"].to_string();
    assert!(from.contains(&format!("from {address}")), "{from}");
    let answer = page["answers"][0]["here"].as_str().unwrap();
    let reasons = ["fewer than 5 pairs", "less than 1 s"];
    assert!(answer.contains("cannot tell") && reasons.iter().any(|why| answer.contains(why)), "{answer}");
    assert!(statuses(page).contains("E9"), "{page:#}");
    let rows = page["tables"][0]["rows"].as_array().unwrap();
    assert_eq!(rows.iter().filter(|row| row["is_here"] == true).count(), 4, "{rows:#?}");
}

#[test]
#[ignore = "system"]
fn the_bus_paper_is_reproduced() {
    let page = repeated("tweakers-pci", &["a"]);
    has_this_machine(&page);
    let series = page["curves"][0]["series"].as_array().unwrap();
    assert_eq!(series.iter().filter(|series| series["is_here"] == false).count(), 3);
}

#[test]
#[ignore = "system"]
fn the_romanis_paper_is_reproduced_on_two_volumes() {
    let page = repeated("romanis", &["a", "b"]);
    let here_rows = |table: usize| {
        let rows = page["tables"][table]["rows"].as_array().unwrap();
        rows.iter().filter(|row| row["is_here"] == true).collect::<Vec<&Value>>()
    };
    // Two engines, with and without a load.
    assert_eq!((here_rows(0).len(), here_rows(1).len()), (8, 4), "one and two volumes, at both rates");
    let camera = page["answers"][1]["here"].as_str().unwrap();
    assert!(camera.starts_with("Cannot tell") || camera.starts_with("No"), "too short to say yes: {camera}");
    for row in here_rows(1) {
        assert!(row["cells"][0]["value"].as_f64().unwrap() > 0.0, "{row}");
        assert_eq!(row["cells"][1]["value"], 0.0, "nothing is lost: {row}");
        assert!(row["cells"][4]["value"].as_f64().unwrap() > 0.0, "everything was read back: {row}");
    }
    // Both directories are on one disk, which must be reported.
    let limits = page["limits"].to_string();
    assert!(limits.contains("share its rate") || limits.contains("in memory"), "{limits}");
}

#[test]
#[ignore = "system"]
fn the_cern_vme_note_is_reproduced_with_a_simulated_target() {
    let place = place(&[]);
    let page = reproduce(place.path(), "cern-vme", &[], &[]);
    let series = page["curves"][0]["series"].as_array().unwrap();
    let us = |name: &str| -> BTreeMap<u64, f64> {
        let is_it = |series: &&Value| series["name"] == name;
        let series = series.iter().find(is_it).unwrap_or_else(|| panic!("no {name}: {page:#}"));
        let point = |point: &Value| (point[0].as_f64().unwrap() as u64, point[1].as_f64().unwrap());
        series["points"].as_array().unwrap().iter().map(point).collect()
    };
    let (block, single) = (us("ipbus:self (simulated), block"), us("ipbus:self (simulated), single"));
    // One packet per register, and one for all. A busy machine leaves out the depths that take it too long.
    let (depth, each) = single.last_key_value().unwrap();
    assert!(*depth > 1 && block[depth] < *each, "{page:#}");
    assert!(page["limits"].to_string().contains("no hardware"), "{page:#}");
}
