//! Papers repeated by the real program: a tiny part of each paper's bytes, and this machine in its tables.
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::common::{Place, directory_alone, json, start};

/// A paper is many runs, of this build and beside nothing: minutes, on a slow disk.
const LIMIT: Duration = Duration::from_secs(900);

/// A directory with these volumes.
fn place(volumes: &[&str]) -> Place {
    let place = directory_alone();
    volumes.iter().for_each(|volume| std::fs::create_dir(place.path().join(volume)).unwrap());
    place
}

/// What a paper repeated with a tiny part of its bytes has found, all of its runs well.
fn reproduce(directory: &Path, paper: &str, volumes: &[&str], more: &[&str]) -> Value {
    let volumes: Vec<&str> = volumes.iter().flat_map(|volume| ["--volume", volume]).collect();
    let head = ["reproduce", paper, "--scale", "0.01", "--json"];
    let run = start(directory, &[&head[..], &volumes, more].concat()).wait_for(LIMIT);
    assert_eq!(run.code(), 0, "{run:#?}");
    let found = json(&run);
    assert_eq!((&found["totals"]["failed"], &found["totals"]["left"]), (&0.into(), &0.into()), "{found:#}");
    found["paper"].clone()
}

/// A paper repeated once on these volumes of one directory, which it leaves as they were.
fn repeated(paper: &str, volumes: &[&str]) -> Value {
    let place = place(volumes);
    let page = reproduce(place.path(), paper, volumes, &["--repeats", "1"]);
    for volume in volumes {
        let left = std::fs::read_dir(place.path().join(volume)).unwrap().count();
        assert_eq!(left, 0, "nothing stays on the volumes");
    }
    page
}

/// Every table has this machine in it, with figures.
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
fn the_event_logger() {
    let page = repeated("cdf-csl", &["a", "b"]);
    has_this_machine(&page);
    let stands: Vec<&str> =
        page["curves"].as_array().unwrap().iter().map(|curve| curve["stands"].as_str().unwrap()).collect();
    assert_eq!(stands, ["figure 2", "figure 3"]);
}

#[test]
#[ignore = "system"]
fn the_bus_under_the_disks() {
    let page = repeated("tweakers-pci", &["a"]);
    has_this_machine(&page);
    let series = page["curves"][0]["series"].as_array().unwrap();
    assert_eq!(series.iter().filter(|series| series["is_here"] == false).count(), 3);
}

#[test]
#[ignore = "system"]
fn romanis_on_two_volumes() {
    let page = repeated("romanis", &["a", "b"]);
    let here_rows = |table: usize| {
        let rows = page["tables"][table]["rows"].as_array().unwrap();
        rows.iter().filter(|row| row["is_here"] == true).collect::<Vec<&Value>>()
    };
    assert_eq!((here_rows(0).len(), here_rows(1).len()), (2, 4), "one and two volumes, at both rates");
    for row in here_rows(1) {
        assert!(row["cells"][0]["value"].as_f64().unwrap() > 0.0, "{row}");
        assert_eq!(row["cells"][1]["value"], 0.0, "nothing is lost: {row}");
        assert!(row["cells"][4]["value"].as_f64().unwrap() > 0.0, "it was read back: {row}");
    }
    // Both directories are on one disk, which must be said.
    let limits = page["limits"].to_string();
    assert!(limits.contains("share its rate") || limits.contains("in memory"), "{limits}");
}

#[test]
#[ignore = "system"]
fn cern_vme_with_its_own_target_of_ipbus() {
    let place = place(&[]);
    let page = reproduce(place.path(), "cern-vme", &[], &[]);
    let rows = page["tables"][1]["rows"].as_array().unwrap();
    let us = |name: &str| {
        let row =
            rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name}: {page:#}"));
        row["cells"][0]["value"].as_f64().unwrap()
    };
    // A packet for each register, and one for all 0x100.
    assert!(us("ipbus:self (simulated), block") < us("ipbus:self (simulated), single"), "{page:#}");
    assert!(page["limits"].to_string().contains("no hardware"), "{page:#}");
}
