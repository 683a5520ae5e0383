//! CPU bottlenecks. They depend on scheduling, so each is measured several times.
use std::path::Path;
use std::process::Command;

use keepup_testkit::Program;
use keepup_testkit::root::skip;
use keepup_testkit::rule::{TWO_OF_SEVEN, good_if};

use crate::common::{TestDirectory, busy_directory, json, keepup};

/// A profile without a drain, which could be too slow during a stall of the machine.
const PROFILE: &str = "name = \"small\"\ntitle = \"small events\"\n[event]\nsize = \"64 KiB\"\n\
    [source]\nrate = \"100 /s\"\nbuffer = \"4 MiB\"\nstreams = 1\ntransport = \"tcp\"\n\
    [run]\nduration = \"8 h\"\n[record]\nsegment = \"64 MiB\"\n";
const QUALIFY: [&str; 10] = [
    "qualify",
    "./small.toml",
    "--volume",
    "disk",
    "--quick",
    "--soak",
    "3s",
    "--max-write",
    "48 GB",
    "--json",
];

fn prepared(profile: &str) -> TestDirectory {
    let directory = busy_directory();
    std::fs::create_dir(directory.path().join("disk")).unwrap();
    std::fs::write(directory.path().join("small.toml"), profile).unwrap();
    directory
}

/// Keeps the first processor busy with endless loops.
fn hogs(test: &str, here: &Path) -> Option<Vec<Program>> {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        skip(test, "needs two processors");
        return None;
    }
    if Command::new("taskset").arg("--version").output().is_err() {
        skip(test, "needs taskset");
        return None;
    }
    let hog = ["-c", "0", "sh", "-c", "while :; do :; done"];
    Some((0..12).map(|_| Program::start("taskset", &hog, here)).collect())
}

/// Defect: the recorder's processors are not examined, and another component is named.
#[test]
#[ignore = "measured"]
fn a_recorder_without_processor_time_is_named_as_the_limit() {
    let directory = prepared(PROFILE);
    let Some(hogs) = hogs("a_recorder_without_processor_time_is_named_as_the_limit", directory.path()) else {
        return;
    };
    let pinned = ["--pool", "32 MiB", "--cpus", "0", "--source-cpus", "1"];
    TWO_OF_SEVEN.check("the processor is named", || {
        let found = json(&keepup(directory.path(), &[&QUALIFY[..], &pinned].concat()));
        let stage = found["bottleneck"]["stage"].as_str().unwrap_or_default().to_owned();
        good_if(stage.starts_with("processor"), stage)
    });
    drop(hogs);
}

/// Defect: a limit of the source is taken for one of the machine, which yields NOT FIT.
#[test]
#[ignore = "measured"]
fn a_slow_source_is_not_attributed_to_the_machine() {
    let directory = prepared(&PROFILE.replace("100 /s", "60 kHz"));
    let Some(hogs) = hogs("a_source_that_is_too_slow", directory.path()) else { return };
    let pinned = ["--pool", "512 MiB", "--cpus", "1", "--source-cpus", "0"];
    TWO_OF_SEVEN.check("INCONCLUSIVE because of the source", || {
        let run = keepup(directory.path(), &[&QUALIFY[..], &pinned].concat());
        let result = json(&run);
        // If the time limit was reached before a soak, the trials contain the reason.
        let why = if run.code() == 4 { "verdict_reasons" } else { "trials" };
        let is_good = result["verdict"] == "INCONCLUSIVE"
            && [4, 5].contains(&run.code())
            && result[why].to_string().contains("source");
        good_if(is_good, (run.code(), result["verdict"].clone(), result["verdict_reasons"].clone()))
    });
    drop(hogs);
}
