//! Papers repeated by the real program: a tiny part of each paper's bytes, and this machine in its tables.
use serde_json::Value;

use crate::common::{directory_alone, json, keepup};

/// A paper repeated on two volumes of one directory, with all its runs well.
fn repeated(paper: &str, more: &[&str]) -> Value {
    let place = directory_alone();
    for volume in ["a", "b"] {
        std::fs::create_dir(place.path().join(volume)).unwrap();
    }
    let head = ["reproduce", paper, "--volume", "a", "--volume", "b", "--repeats", "1", "--json"];
    let run = keepup(place.path(), &[&head[..], more].concat());
    assert_eq!(run.code(), 0, "{run:#?}");
    let found = json(&run);
    assert_eq!((&found["totals"]["failed"], &found["totals"]["left"]), (&0.into(), &0.into()), "{found:#}");
    for volume in ["a", "b"] {
        let left = std::fs::read_dir(place.path().join(volume)).unwrap().count();
        assert_eq!(left, 0, "nothing stays on the volumes");
    }
    found["paper"].clone()
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
fn the_event_logger() {
    let page = repeated("cdf-csl", &["--scale", "0.01"]);
    has_this_machine(&page);
    let stands: Vec<&str> =
        page["curves"].as_array().unwrap().iter().map(|curve| curve["stands"].as_str().unwrap()).collect();
    assert_eq!(stands, ["figure 2", "figure 3"]);
}

#[test]
fn the_bus_under_the_disks() {
    let page = repeated("tweakers-pci", &["--scale", "0.01"]);
    has_this_machine(&page);
    let series = page["curves"][0]["series"].as_array().unwrap();
    assert_eq!(series.iter().filter(|series| series["is_here"] == false).count(), 3);
}

#[test]
fn romanis_on_two_volumes() {
    let place = directory_alone();
    let here = place.path();
    for volume in ["a", "b"] {
        std::fs::create_dir(here.join(volume)).unwrap();
    }
    let arguments = ["reproduce", "romanis", "--volume", "a", "--volume", "b", "--scale", "0.01"];
    let run = keepup(here, &[&arguments[..], &["--repeats", "1", "--json"]].concat());
    assert_eq!(run.code(), 0, "{run:#?}");
    let found = json(&run);
    assert_eq!(found["totals"]["failed"], 0, "{found:#}");
    let page = &found["paper"];
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
    assert!(std::fs::read_dir(here.join("a")).unwrap().next().is_none(), "the volume is as it was");
}

#[test]
fn cern_vme_with_its_own_target_of_ipbus() {
    let place = directory_alone();
    let here = place.path();
    let run = keepup(here, &["reproduce", "cern-vme", "--scale", "0.01", "--json"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    let page = &json(&run)["paper"];
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
