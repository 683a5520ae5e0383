//! Files that are campaigns, and all kinds that are none.
use keepup_error::Cause;
use proptest::prelude::*;

use super::*;

const TWO_DISKS: &str = r#"
name = "two-disks"
title = "Which disk for the camera"
repetitions = 5

[run]
verb = "disk testdisk"
quick = true
direct = false
sizes = ["64 KiB", "1 MiB"]
depth_of = 4

[axes]
volume = ["/data/b", "/data/a", ["/data/a", "/data/b"]]
load = [{ label = "quiet" }, { label = "with network", load = "net=118MB/s" }]

[baseline]
load = "quiet"

[[skip]]
when = { volume = "/data/b", load = "with network" }
why = "no card there"

[stop]
failures = 3
time = "2 h"
bytes = "1 TB"
half_width = 0.02
"#;

/// The error of a file.
fn refused(text: &str) -> String {
    Cause::of(&parse(text, "some.toml", &[]).unwrap_err()).to_text()
}

/// The example with one piece replaced.
fn with(old: &str, new: &str) -> String {
    assert!(TWO_DISKS.contains(old), "{old}");
    refused(&TWO_DISKS.replace(old, new))
}

#[test]
fn the_example_says_what_it_says() {
    let campaign = parse(TWO_DISKS, "two-disks.toml", &[]).unwrap();
    assert_eq!((campaign.name.as_str(), campaign.repetitions), ("two-disks", 5));
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let run: Settings = [
        ("verb", words(&["disk", "testdisk"])),
        ("quick", vec![]),
        ("sizes", words(&["64 KiB", "1 MiB"])),
        ("depth-of", words(&["4"])),
    ]
    .into_iter()
    .map(|(key, values)| (key.to_owned(), values))
    .collect();
    assert_eq!(campaign.run, run);
    // In the file's order, not the alphabet's.
    let axes: Vec<_> = campaign.axes.iter().map(|axis| axis.name.as_str()).collect();
    assert_eq!(axes, ["volume", "load"]);
    let labels: Vec<_> = campaign.axes[0].values.iter().map(|value| value.label.as_str()).collect();
    assert_eq!(labels, ["/data/b", "/data/a", "/data/a + /data/b"]);
    assert!(campaign.axes[1].values[0].settings.is_empty());
    assert_eq!(campaign.baseline["load"], "quiet");
    let stop =
        Stop { failures: Some(3), seconds: Some(7200.0), bytes: Some(1 << 40), half_width: Some(0.02) };
    assert_eq!(campaign.stop, Stop { bytes: Some(1_000_000_000_000), ..stop });
    // What is written down with the first event reads back.
    let plan = serde_json::to_value(&campaign).unwrap();
    assert_eq!(serde_json::from_value::<Campaign>(plan).unwrap(), campaign);
}

#[test]
fn mistakes_are_told_with_their_line() {
    assert!(with("repetitions = 5", "repetitons = 5").starts_with("some.toml:4: repetitons: unknown field"));
    assert!(with("repetitions = 5", "repetitions = 0").contains("repetitions: must be at least 1"));
    assert!(with("repetitions = 5", "repetitions = -1").contains("some.toml:4: repetitions"));
    assert!(with("repetitions = 5", "order = \"random\"").contains("seed: missing"));
    assert!(with("repetitions = 5", "seed = 7").contains("seed: requires order"));
    assert!(with("repetitions = 5", "order = \"sorted\"").contains("unknown variant `sorted`"));
    assert!(with("\"two-disks\"", "\"<b>two</b>\"").contains("is not valid in a directory name"));
    assert!(with("\"two-disks\"", "\"two\\u0007\"").contains("is not valid in a directory name"));
    assert!(with("\"two-disks\"", "\"../two\"").contains("is not valid in a directory name"));
    assert!(with("\"two-disks\"", "\"\"").contains("is not valid in a directory name"));
    assert!(with("half_width = 0.02", "half_width = nan").contains("stop.half_width: must be a share"));
    assert!(with("time = \"2 h\"", "time = \"2 parsecs\"").contains("some.toml:26: stop.time"));
    assert!(with("time = \"2 h\"", "time = \"0 s\"").contains("stop.time: must be above 0"));
    assert!(with("failures = 3", "failure = 3").contains("unknown field `failure`"));
    assert!(with("verb = \"disk testdisk\"", "").contains("run: verb is missing"));
    assert!(with("verb = \"disk testdisk\"", "verb = \"disk --out\"").contains("the words of a command"));
    assert!(refused("name = ").contains("some.toml:1"));
}

#[test]
fn axes_that_cannot_be() {
    assert!(
        with("load = \"quiet\"", "loud = \"quiet\"").contains("unknown axis\nhint: did you mean \"load\"?")
    );
    assert!(
        with("load = \"quiet\"", "load = \"quite\"")
            .contains("no value \"quite\"\nhint: did you mean \"quiet\"?")
    );
    assert!(with("when = { volume", "when = { volum").contains("skip.when.volum: unknown axis"));
    assert!(with("{ volume = \"/data/b\", load = \"with network\" }", "{}").contains("when is empty"));
    assert!(with("quick = true", "volume = \"/data/a\"").contains("axes.volume: sets volume, which [run]"));
    assert!(with("[\"/data/b\", \"/data/a\", [\"/data/a\", \"/data/b\"]]", "[]").contains("no values"));
    assert!(
        with("[\"/data/b\", \"/data/a\",", "[\"/data/a\", \"/data/a\",")
            .contains("duplicate value \"/data/a\"")
    );
    assert!(with("label = \"with network\"", "label = \"quiet\"").contains("duplicate value \"quiet\""));
    assert!(with("{ label = \"quiet\" }", "{ volume = \"x\" }").contains("requires a label"));
    assert!(
        with("label = \"with network\", load", "label = \"x\", volume")
            .contains("which axis volume also sets")
    );
    assert!(with("quick = true", "host = \"\"").contains("run.host: must be the name of one host"));
    assert!(with("quick = true", "host = [\"a\", \"b\"]").contains("run.host: must be the name of one"));
    assert!(with("quick = true", "json = true").contains("run.json: --json cannot be set"));
    assert!(with("quick = true", "out = \"elsewhere\"").contains("--out cannot be set"));
    assert!(with("quick = true", "dry_run = true").contains("--dry-run cannot be set"));
    assert!(with("quick = true", "token = \"ab\"").contains("a token must not be stored"));
    assert!(with("quick = true", "quick = { a = 1 }").contains("must not be a table"));
    assert!(with("quick = true", "quick = 1979-05-27").contains("must not be a datetime"));
    assert!(with("quick = true", "quick = []").contains("must not be empty"));
    assert!(with("volume = [\"/data/b\"", "\"my volume\" = [\"/data/b\"").contains("is not a valid flag"));
    let nothing = refused("name = \"a\"\n[run]\nverb = \"disk sweep\"\n");
    assert!(nothing.contains("axes: no axes"), "{nothing}");
}

fn matrix(sizes: &[usize], repetitions: u32) -> String {
    let axis = |(n, size): (usize, &usize)| {
        let values: Vec<String> = (0..*size).map(|value| value.to_string()).collect();
        format!("a{n} = [{}]\n", values.join(", "))
    };
    let axes: String = sizes.iter().enumerate().map(axis).collect();
    format!("name = \"m\"\nrepetitions = {repetitions}\n[run]\nverb = \"disk sweep\"\n[axes]\n{axes}")
}

#[test]
fn ten_thousand_runs_are_the_most() {
    let most = parse(&matrix(&[100, 100], 1), "m", &[]).unwrap();
    assert_eq!(most.cells().len(), 10_000);
    let one_more = refused(&matrix(&[100, 10, 2], 6));
    assert!(
        one_more.contains("100 x 10 x 2 cells x 6 repetitions = 12000 runs; the maximum is 10000"),
        "{one_more}"
    );
    let far_more = refused(&matrix(&[1000; 16], 1000));
    assert!(far_more.contains("more than 10^19"), "{far_more}");
    assert!(refused(&matrix(&[1; 17], 1)).contains("17 axes"));
}

#[test]
fn labels_may_be_anything() {
    let text = "name = \"a\"\n[run]\nverb = \"disk sweep\"\n[axes]\n\
                x = [{ label = \"<script>alert(1)</script>\" }, { label = \"line\\nbreak\" }]";
    let campaign = parse(text, "a", &[]).unwrap();
    assert_eq!(campaign.axes[0].values[0].label, "<script>alert(1)</script>");
}

#[test]
fn a_paper_is_one_of_those_handed_in() {
    let text = format!("{TWO_DISKS}\n[paper]\nname = \"esrf-2007\"\nscale = 0.5\n");
    let campaign = parse(&text, "some.toml", &["cdf-csl", "esrf-2007"]).unwrap();
    let paper = campaign.paper.unwrap();
    assert_eq!((paper.name.as_str(), paper.scale, paper.with.len()), ("esrf-2007", 0.5, 0));
    let error = Cause::of(&parse(&text, "some.toml", &["esrf-2006"]).unwrap_err()).to_text();
    assert!(error.contains("paper.name: unknown paper") && error.contains("esrf-2006"), "{error}");
    let error = parse(&text.replace("0.5", "1.5"), "some.toml", &["esrf-2007"]).unwrap_err().to_string();
    assert!(error.contains("paper.scale"), "{error}");
}

#[test]
fn a_file_that_is_too_long_or_not_there_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("long.toml");
    assert!(load(&path, &[]).unwrap_err().to_string().contains("read the campaign"));
    std::fs::write(&path, "#".repeat(1 << 21)).unwrap();
    assert!(load(&path, &[]).unwrap_err().to_string().contains("more than 1048576 bytes"));
}

proptest! {
    #[test]
    fn any_text_is_refused_or_a_campaign_that_reads_back(text in "[\\[\\]a-z_=\"0-9 ,{}\n]{0,200}") {
        if let Ok(campaign) = parse(&text, "any", &[]) {
            prop_assert!(!campaign.cells().is_empty());
        }
    }
}
