//! Reduction from the command line: output, counts, refusals.
use serde_json::Value;

use crate::common::{
    busy_directory, count, directory, intake_threads, json, keepup, recorder, squeezed, verified,
};

const SONAR: &str = r#"
name = "sonar"
title = "sonar"
[event]
element = "i16"
shape = [1024]
[source]
rate = "20 kHz"
streams = 20
connections = 2
buffer = "64 MiB"
[run]
duration = "1 h"
[[reduce]]
streams = "0-9"
steps = ["spectrum window=hann", "lz4"]
keep = "both"
[[reduce]]
streams = "10-14"
steps = ["decimate by=8"]
[[reference]]
what = "all"
value = "made up"
from = "this test"
verified = false
"#;

fn source(here: &std::path::Path, to: &str) -> Value {
    let events = ["--events", "8000", "--rate", "max", "--json"];
    let run = keepup(here, &[&["source", "sonar.toml", "--to", to][..], &events].concat());
    assert_eq!(run.code(), 0, "{run:#?}");
    json(&run)
}

#[test]
fn a_reduced_recording_has_consistent_counts() {
    let directory = directory();
    let here = directory.path();
    std::fs::write(here.join("sonar.toml"), SONAR).unwrap();
    let mut record = recorder(here, &["a", "b"], &["--profile", "sonar.toml", "--reduce-threads", "2"]);
    let to = record.address().to_string();
    let sent = count(&source(here, &to)["sent"]);
    let run = record.wait();
    assert_eq!(run.code(), 0, "{run:#?}");
    let account = json(&run);
    assert_eq!((count(&account["received"]), count(&account["durable"])), (sent, sent));
    assert_eq!(account["reducers_cpu"].as_array().unwrap().len(), intake_threads().max(2));
    let stored = verified(here, "a/run");
    assert_eq!(count(&account["stored"]), stored);
    assert_eq!(stored.0, sent.0 + 4000, "ten of twenty streams are stored twice");
    let of = |id: u32| &account["ledger"]["streams"][id.to_string()];
    let (received, decimated) = (count(&of(12)["received"]), count(&of(12)["reduced"]["durable"]));
    assert_eq!(decimated, (received.0, received.1 / 8));
    assert!(of(17).get("reduced").is_none() && of(3)["reduced"]["raw_kept"] == true);
    let info = json(&keepup(here, &["info", "b/run", "--json"]));
    assert_eq!(info["streams"].as_object().unwrap().len(), 30);
    assert_eq!(info["streams"]["12"]["shape"], serde_json::json!([128]));
    assert_eq!(info["streams"]["32768"]["compression"], "bslz4");
    assert_eq!(info["reductions"][1], "streams=10-14 keep=reduced: decimate by=8");
    let page = keepup(here, &["info", "a/run"]).stdout;
    assert!(squeezed(&page).contains("reduced streams=0-9 keep=both: spectrum window=hann | lz4"), "{page}");
}

#[test]
fn flags_override_the_profile_and_invalid_reductions_are_refused() {
    let directory = directory();
    let here = directory.path();
    std::fs::write(here.join("sonar.toml"), SONAR).unwrap();
    let mut record = recorder(here, &["a"], &["--profile", "sonar.toml", "--reduce", "streams=3: bin by=2"]);
    let to = record.address().to_string();
    let sent = count(&source(here, &to)["sent"]);
    let account = json(&record.wait());
    assert_eq!(count(&account["stored"]), sent, "two samples of two bytes become one of four");
    for (reduce, why) in [
        (&["--reduce", "fft"][..], "is no step"),
        (&["--reduce", "lz4", "--reduce", "streams=2: lz4"], "cannot reduce stream 2: it has two reductions"),
        (&["--reduce", "lz4", "--reduce-threads", "0"], "0 reducer threads"),
    ] {
        let arguments = ["record", "--listen", "127.0.0.1:0", "--to-null"];
        let run = keepup(here, &[&arguments[..], reduce].concat());
        assert!(run.code() == 2 && run.stderr.contains(why), "{run:#?}");
    }
    let run = keepup(here, &["trial", "sonar.toml", "--to-null", "--reduce", "bin by=3", "--dry-run"]);
    assert!(run.code() == 2 && run.stderr.contains("3 does not divide 1024"), "{run:#?}");
}

#[test]
#[ignore = "system"]
fn a_trial_reports_both_sizes_and_the_cost_of_reduction() {
    let directory = busy_directory();
    let here = directory.path();
    std::fs::write(here.join("sonar.toml"), SONAR).unwrap();
    std::fs::create_dir(here.join("disk")).unwrap();
    let trial = ["trial", "sonar.toml", "--volume", "disk", "--time", "1 s", "--rate", "5 MB/s", "--json"];
    let run = keepup(here, &trial);
    assert_eq!(run.code(), 0, "{run:#?}");
    let result = json(&run);
    let one = &result["runs"][0];
    let (durable, stored) = (count(&one["ledger"]["durable"]), count(&one["ledger"]["stored"]));
    assert_eq!(count(&one["ledger"]["sent"]), durable);
    assert_eq!(count(&one["ledger"]["verified"]), stored);
    assert!(stored.0 > durable.0, "both forms of some streams: {one}");
    let threads = one["cpu"]["recorder_threads"].as_array().unwrap();
    assert!(threads.iter().any(|t| t["name"] == "ku-reduce-0" && t["seconds"].as_f64().unwrap() > 0.0));
}
