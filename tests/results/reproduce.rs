//! Reproduction of papers with a small part of their data; this machine appears in the tables.
use std::path::Path;
use std::time::Duration;

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

/// Checks that every table contains this machine with values.
fn has_this_machine(page: &Value) {
    for table in page["tables"].as_array().unwrap() {
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
    assert_eq!(stands, ["figure 2", "figure 3"]);
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
    assert_eq!((here_rows(0).len(), here_rows(1).len()), (2, 4), "one and two volumes, at both rates");
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
    let rows = page["tables"][1]["rows"].as_array().unwrap();
    let us = |name: &str| {
        let row =
            rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name}: {page:#}"));
        row["cells"][0]["value"].as_f64().unwrap()
    };
    // One packet per register, and one for all 0x100.
    assert!(us("ipbus:self (simulated), block") < us("ipbus:self (simulated), single"), "{page:#}");
    assert!(page["limits"].to_string().contains("no hardware"), "{page:#}");
}
