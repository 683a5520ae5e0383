//! CPU bottlenecks. They depend on scheduling, so each is measured several times.
use std::path::Path;
use std::process::Command;

use keepup_testkit::Program;
use keepup_testkit::root::skip;
use keepup_testkit::rule::{TWO_OF_SEVEN, good_if};

use crate::common::{busy_directory, json, keepup};
use crate::recorder::verdicts::{QUALIFY, is_named, profile, with_profile};

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

/// Defect: the recorder's processors are not examined, and another component is named or none is confirmed.
#[test]
#[ignore = "measured"]
fn a_recorder_without_processor_time_is_named_as_the_limit() {
    // Without a drain, which could be too slow during a stall of the machine.
    let directory = with_profile(busy_directory(), &profile(100, "4 MiB", "", ""));
    let Some(hogs) = hogs("a_recorder_without_processor_time_is_named_as_the_limit", directory.path()) else {
        return;
    };
    let pinned = ["--pool", "32 MiB", "--cpus", "0", "--source-cpus", "1"];
    TWO_OF_SEVEN.check("the processor is named and confirmed", || {
        let found = json(&keepup(directory.path(), &[&QUALIFY[..], &pinned].concat()));
        good_if(is_named(&found, "processor"), found["bottleneck"].clone())
    });
    drop(hogs);
}

/// Defect: a limit of the source is taken for one of the machine, which yields NOT FIT, names a stage of the
/// machine, or leaves the bottleneck not resolved.
#[test]
#[ignore = "measured"]
fn a_slow_source_is_not_attributed_to_the_machine() {
    let directory = with_profile(busy_directory(), &profile(60_000, "4 MiB", "", ""));
    let Some(hogs) = hogs("a_source_that_is_too_slow", directory.path()) else { return };
    let pinned = ["--pool", "512 MiB", "--cpus", "1", "--source-cpus", "0"];
    TWO_OF_SEVEN.check("INCONCLUSIVE because of the source, which is named and confirmed", || {
        let run = keepup(directory.path(), &[&QUALIFY[..], &pinned].concat());
        let result = json(&run);
        // If the time limit was reached before a soak, the trials contain the reason.
        let why = if run.code() == 4 { "verdict_reasons" } else { "trials" };
        let is_good = result["verdict"] == "INCONCLUSIVE"
            && [4, 5].contains(&run.code())
            && result[why].to_string().contains("source")
            && is_named(&result, "source");
        let [verdict, reasons, bottleneck] =
            ["verdict", "verdict_reasons", "bottleneck"].map(|key| result[key].clone());
        good_if(is_good, (run.code(), verdict, reasons, bottleneck))
    });
    drop(hogs);
}
