//! Predictions: a paper's figure, user-defined machines, a calibrated one, invalid input.
use serde_json::Value;

use crate::common::{directory, json, keepup, stored};

#[test]
fn the_predicted_figure_of_the_paper_has_its_knees() {
    let place = directory();
    let sweep = ["predict", "romanis", "--on", "papers/romanis", "--sweep", "disks=1..8"];
    let run =
        keepup(place.path(), &[&sweep[..], &["--json", "--html", "page.html", "--out", "results"]].concat());
    assert_eq!(run.code(), 1, "200 MB/s are too much for one loop: {run:#?}");
    let found = json(&run);
    let points = found["points"].as_array().unwrap();
    let rates: Vec<f64> =
        points.iter().map(|point| point["bytes_per_second"].as_f64().unwrap() / 1e6).collect();
    for (disks, rate) in (1..=5).zip(&rates) {
        assert!((rate - 18.0 * f64::from(disks)).abs() < 1e-6, "{rates:?}");
    }
    assert!(rates[5..].iter().all(|rate| (100.0..104.0).contains(rate)), "{rates:?}");
    assert_eq!(points[4]["parts"][0]["name"], "disks");
    assert_eq!(points[5]["parts"][0]["name"], "loop");
    let page = std::fs::read_to_string(place.path().join("page.html")).unwrap();
    assert!(page.contains("Predicted rate over disks"), "the chart is present");
    // A stored prediction is a result like any other.
    let kept = std::fs::read_dir(place.path().join("results")).unwrap().next().unwrap().unwrap().path();
    let again = keepup(place.path(), &["report", kept.to_str().unwrap()]);
    assert_eq!(again.code(), 0, "{again:#?}");
    let text = again.stdout.replace("\n  ", " ");
    assert!(text.contains("The bottleneck changes from disks to loop between disks 5 and 6"), "{text}");
}

#[test]
fn events_are_counted_in_those_of_the_profile() {
    let place = directory();
    let predicted = |profile: &str, more: &[&str]| {
        keepup(place.path(), &[&["predict", profile, "--on", "today/camera-pc"], more].concat())
    };
    // The path of this machine moves blocks of 1 MiB: 2951 of them a second, whatever the detector.
    for (profile, events_per_second) in [("csl", 305.175_781_25), ("eiger2-16m", 133.0)] {
        let found = json(&predicted(profile, &["--json"]));
        let point = &found["points"][0];
        let events = point["events_per_second"].as_f64().unwrap();
        let required = events / point["headroom"].as_f64().unwrap();
        assert!((required / events_per_second - 1.0).abs() < 1e-3, "{profile}: {required}");
        let run = predicted(profile, &["--html", "page.html"]);
        let text = run.stdout.replace("\n  ", " ");
        assert!(text.contains(" events per second.") && !text.contains("2951"), "{text}");
        let page = std::fs::read_to_string(place.path().join("page.html")).unwrap();
        assert!(page.contains("Utilisation of each stage at the required rate of"), "the chart is present");
    }
}

#[test]
fn a_sweep_over_names_is_drawn_as_bars() {
    let place = directory();
    let sweep = ["predict", "csl", "--on", "today/camera-pc", "--sweep", "net=ethernet-10g,ethernet-25g"];
    let run = keepup(place.path(), &[&sweep[..], &["--html", "page.html"]].concat());
    assert_eq!(run.code(), 0, "{run:#?}");
    let page = std::fs::read_to_string(place.path().join("page.html")).unwrap();
    assert!(page.contains("Predicted rate over net, ") && page.contains("ethernet-25g"), "{run:#?}");
}

#[test]
fn published_figures_are_compared_with_the_model() {
    let place = directory();
    let run = keepup(place.path(), &["predict", "papers", "--json"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    let papers = &json(&run)["papers"];
    assert!(papers["cells"].as_array().unwrap().len() > 80);
    let loaded = |quantity: &str| {
        let cells = papers["cells"].as_array().unwrap();
        let is_it = |cell: &&Value| {
            cell["id"] == "E2"
                && cell["quantity"] == quantity
                && cell["condition"] == "gigabit Ethernet incoming"
        };
        cells.iter().find(is_it).unwrap()["error"].as_f64().unwrap()
    };
    assert!(loaded("block write").abs() < 0.1 && loaded("block read").abs() < 0.1, "{papers:#}");
    let one = keepup(place.path(), &["predict", "papers", "cern-vme"]);
    assert!(one.stdout.contains("= 966 words, not"), "{one:#?}");
    assert!(!one.stdout.contains("esrf-2007\n"), "{one:#?}");
}

const OWN: &str = "name = \"own\"\ntitle = \"two disks\"\nmain = \"record\"\n\
    [resource.disks]\nformula = \"rate\"\ncount = 2\n\
    set = { rate = { value = \"50 MB/s\", source = \"measured\", from = \"a test\" } }\n\
    [path.record]\nabout = \"to disk\"\ndirection = \"write\"\n\
    [[path.record.stage]]\non = \"disks\"\n";

#[test]
fn a_user_defined_machine_is_predicted_and_sized() {
    let place = directory();
    let here = place.path();
    std::fs::write(here.join("own.toml"), OWN).unwrap();
    // csl requires 80 MB/s with 1.3x headroom.
    let run = keepup(here, &["predict", "csl", "--on", "own.toml", "--stall", "2s", "--json"]);
    assert_eq!(run.code(), 1, "{run:#?}");
    let point = &json(&run)["points"][0];
    assert_eq!(point["bytes_per_second"], 1e8);
    assert_eq!(point["enough"]["hosts"], 2);
    assert_eq!(point["enough"]["more"][0]["needed"], 3);
    assert_eq!(point["buffers"][0]["bytes"], 160e6);
    let again = ["--stall", "2s", "--stall-every", "30s", "--buffer", "80 MB", "--with", "disks=4", "--json"];
    let run = keepup(here, &[&["predict", "csl", "--on", "own.toml"], &again[..]].concat());
    let buffer = &json(&run)["points"][0]["buffers"][0];
    // 2 s of 80 MB/s every 32 s, half of which the buffer holds.
    let lost = buffer["lost_share"].as_f64().unwrap();
    assert!((lost - 80.0 / (32.0 * 80.0)).abs() < 0.003, "{buffer:#}");
    assert!((buffer["repeated_bytes"].as_f64().unwrap() / 160e6 - 1.0).abs() < 0.02, "{buffer:#}");
    let few = keepup(here, &["predict", "csl", "--on", "own.toml", "--outstanding", "1", "--json"]);
    assert_eq!(json(&few)["points"][0]["bytes_per_second"], 5e7, "one disk at a time");
    let more = keepup(here, &["predict", "csl", "--on", "own.toml", "--with", "disks=3"]);
    assert_eq!(more.code(), 0, "{more:#?}");
    assert!(more.stdout.starts_with("[ SUFFICIENT ]"), "{more:#?}");
    let two = keepup(here, &["predict", "csl", "--on", "own.toml", "--hosts", "2", "--json"]);
    assert_eq!(json(&two)["points"][0]["bytes_per_second"], 2e8);
}

#[test]
fn an_unreachable_goal_names_the_nearest_configuration() {
    let place = directory();
    let profile = "name = \"huge\"\nextends = \"csl\"\n[source]\nrate = \"10 MHz\"\n";
    std::fs::write(place.path().join("huge.toml"), profile).unwrap();
    let run = keepup(place.path(), &["predict", "./huge.toml"]);
    assert_eq!(run.code(), 1, "{run:#?}");
    assert!(run.stdout.replace("\n  ", " ").contains("comes closest"), "{run:#?}");
}

#[test]
fn only_a_qualification_calibrates_a_machine() {
    let place = directory();
    let here = place.path();
    let calibrate = |sample: &str| {
        let result = stored(here, sample, sample);
        (keepup(here, &["predict", "calibrate", result.to_str().unwrap(), "--name", "mine"]), result)
    };
    let (run, result) = calibrate("qualify-v2.json");
    assert_eq!(run.code(), 0, "{run:#?}");
    std::fs::write(here.join("mine.toml"), &run.stdout).unwrap();
    let run = keepup(here, &["predict", "csl", "--on", "mine.toml", "--json"]);
    let found = json(&run);
    assert_eq!(run.code(), 0, "{found:#}");
    let measured: Value =
        serde_json::from_slice(&std::fs::read(result.join("result.json")).unwrap()).unwrap();
    let volumes = measured["ceilings"]["volumes"].as_array().unwrap().iter();
    let slowest = volumes.map(|volume| volume["bytes_per_second"].as_f64().unwrap()).fold(f64::MAX, f64::min);
    let count = measured["ceilings"]["volumes"].as_array().unwrap().len() as f64;
    let parts = found["points"][0]["parts"].as_array().unwrap();
    let limit = parts.iter().find(|part| part["name"] == "volumes").unwrap();
    let ratio = limit["bytes_per_second"].as_f64().unwrap() / (slowest * count);
    assert!((ratio - 1.0).abs() < 1e-9, "{ratio}: {found:#}");
    // Other results do not measure a machine.
    let (run, _) = calibrate("disk-v4.json");
    assert_eq!(run.code(), 2, "{run:#?}");
    assert!(run.stderr.contains("hint: use a result of `keepup qualify`"), "{run:#?}");
}

#[test]
fn invalid_predictions_are_refused_with_hints() {
    let place = directory();
    let here = place.path();
    let refused = |arguments: &[&str], wanted: &str| {
        let run = keepup(here, &[&["predict"], arguments].concat());
        assert_eq!(run.code(), 2, "{arguments:?}: {run:#?}");
        assert!(run.stderr.contains(wanted) && run.stdout.is_empty(), "{arguments:?}: {run:#?}");
    };
    refused(&[], "no profile given");
    refused(&["csl", "--on", "today/camera-pd"], "today/camera-pc");
    refused(&["csl", "--on", "today/camera-pc", "--with", "dsks=4"], "hint: use one of disks");
    refused(&["csl", "--on", "today/camera-pc", "--with", "net=pcie3x8=2"], "cannot set");
    refused(&["csl", "--on", "today/camera-pc", "--path", "recrd"], "record");
    refused(&["csl", "--on", "today/camera-pc", "--sweep", "disks=8..1"], "its end is before its start");
    refused(&["parts", "pcie9x9"], "cannot find part");
    refused(&["papers", "romans"], "romanis");
    let bad = [
        (
            "upside",
            OWN.replace("value = \"50 MB/s\",", "value = \"50 MB/s\", range = [\"60 MB/s\", \"40 MB/s\"],"),
            "reversed",
        ),
        ("units", OWN.replace("50 MB/s", "50 us"), "rate"),
        (
            "circle",
            OWN.replace("[[path.record.stage]]", "includes = [\"record\"]\n[[path.record.stage]]"),
            "record",
        ),
        ("missing", OWN.replace("on = \"disks\"", "on = \"disk\""), "disk"),
        ("no-part", OWN.replace("formula = \"rate\"\n", "part = \"nothing\"\n"), "nothing"),
        ("no-toml", "what = [".to_owned(), "no-toml.toml"),
    ];
    for (name, text, wanted) in bad {
        std::fs::write(here.join(format!("{name}.toml")), text).unwrap();
        refused(&["csl", "--on", &format!("{name}.toml")], wanted);
    }
    let lists = keepup(here, &["predict", "machines"]);
    assert!(lists.stdout.contains("papers/romanis") && lists.stdout.contains("today/laptop"), "{lists:#?}");
    let one = keepup(here, &["predict", "machines", "papers/romanis"]);
    std::fs::write(here.join("copy.toml"), &one.stdout).unwrap();
    let copied = keepup(here, &["predict", "romanis", "--on", "copy.toml", "--json"]);
    let built_in = keepup(here, &["predict", "romanis", "--on", "papers/romanis", "--json"]);
    assert_eq!(json(&copied)["points"], json(&built_in)["points"]);
}
