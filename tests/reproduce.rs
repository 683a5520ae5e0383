//! The papers, repeated by the real program with little data.
use serde_json::Value;

use crate::common::{directory_alone, json, keepup};

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
