//! Each bottleneck is forced for real and must be named.
use std::path::Path;
use std::process::Command;

use keepup_testkit::root::{ShapedNamespace, ThrottledWrites, allowed, skip};
use keepup_testkit::{Program, Run};

use crate::common::{Place, directory_alone, json, keepup, start};

/// What is not drained cannot be drained too slowly when the machine stands still for a moment.
const PROFILE: &str = "name = \"small\"\ntitle = \"small events\"\n[event]\nsize = \"64 KiB\"\n\
    [source]\nrate = \"100 /s\"\nbuffer = \"4 MiB\"\nstreams = 1\ntransport = \"tcp\"\n\
    [run]\nduration = \"8 h\"\n[record]\nsegment = \"64 MiB\"\n";

fn prepared(profile: &str) -> Place {
    let directory = directory_alone();
    std::fs::create_dir(directory.path().join("disk")).unwrap();
    std::fs::write(directory.path().join("small.toml"), profile).unwrap();
    directory
}

const QUALIFY: [&str; 12] = [
    "qualify",
    "./small.toml",
    "--volume",
    "disk",
    "--quick",
    "--soak",
    "3s",
    "--pool",
    "32 MiB",
    "--max-write",
    "48 GB",
    "--json",
];

/// The first of two qualifications that names `stage`: a disk that stalls meanwhile is rightly named, and the
/// machine is shared.
fn names(stage: &str, qualify: impl Fn() -> Run) -> Run {
    let mut runs: Vec<Run> = Vec::new();
    while runs.len() < 2 {
        let run = qualify();
        let found = json(&run)["bottleneck"]["stage"].as_str().map(str::to_owned);
        if found.is_some_and(|found| found.starts_with(stage)) {
            return run;
        }
        runs.push(run);
    }
    panic!("{stage} is not named: {runs:#?}");
}

fn shell(here: &Path, script: &str) -> Run {
    Program::start("sh", &["-c", script], here).wait()
}

#[test]
fn a_throttled_volume() {
    const TEST: &str = "a_throttled_volume";
    if !allowed(TEST) {
        return;
    }
    let directory = prepared(PROFILE);
    let here = directory.path();
    let name = format!("keepup-test-{}", std::process::id());
    let throttled = match ThrottledWrites::create(&name, here, 60_000_000) {
        Ok(throttled) => throttled,
        Err(why) => return skip(TEST, &why),
    };
    let script = format!(
        "echo $$ > {}; exec {} {}",
        throttled.entry().display(),
        env!("CARGO_BIN_EXE_keepup"),
        quoted()
    );
    let run = names("volume", || shell(here, &script));
    let result = json(&run);
    let alone = result["ceilings"]["volumes"][0]["bytes_per_second"].as_f64().unwrap();
    assert!(alone < 90e6, "the throttle holds: {alone}");
    assert!(
        result["bottleneck"]["next"]["bytes_per_second"].as_f64().unwrap() > alone,
        "relieved it is faster"
    );
}

fn quoted() -> String {
    QUALIFY.iter().map(|a| format!("'{a}'")).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_shaped_link() {
    const TEST: &str = "a_shaped_link";
    if !allowed(TEST) {
        return;
    }
    let directory = prepared(PROFILE);
    let name = format!("keepup-{}", std::process::id());
    let namespace = match ShapedNamespace::create(&name, 100) {
        Ok(namespace) => namespace,
        Err(why) => return skip(TEST, &why),
    };
    let script =
        format!("exec ip netns exec {} {} {}", namespace.name(), env!("CARGO_BIN_EXE_keepup"), quoted());
    let run = names("network", || shell(directory.path(), &script));
    let knee = json(&run)["knee_bytes_per_second"].as_f64().unwrap();
    assert!(knee < 13e6, "100 Mbit/s carry at most 12.5 MB/s of payload, found {knee}");
}

#[test]
fn a_slow_drain() {
    let directory = prepared(&PROFILE.replace("[record]", "[drain]\nrate = \"50 MB/s\"\n[record]"));
    let here = directory.path();
    let sink = ["sink", "--listen", "127.0.0.1:0", "--to-null", "--rate", "2 MB/s", "--stay"];
    let mut sink = start(here, &sink);
    let to = format!("tcp://{}", sink.address());
    // Only a trial of some length can tell that a drain is too slow.
    let arguments: Vec<&str> = QUALIFY.iter().copied().chain(["--drain-to", &to]).collect();
    let run = names("drain", || keepup(here, &arguments));
    assert_ne!(run.code(), 0);
}

/// Keeps the first processor busy with as many endless loops.
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

#[test]
fn a_recorder_without_a_processor() {
    let directory = prepared(PROFILE);
    let Some(hogs) = hogs("a_recorder_without_a_processor", directory.path()) else { return };
    let pinned: Vec<&str> = QUALIFY.iter().copied().chain(["--cpus", "0", "--source-cpus", "1"]).collect();
    names("processor", || keepup(directory.path(), &pinned));
    drop(hogs);
}

#[test]
fn a_source_that_is_too_slow_is_not_blamed_on_the_machine() {
    let directory = prepared(&PROFILE.replace("100 /s", "60 kHz"));
    let Some(hogs) = hogs("a_source_that_is_too_slow", directory.path()) else { return };
    let pinned: Vec<&str> = QUALIFY.iter().copied().chain(["--cpus", "1", "--source-cpus", "0"]).collect();
    let pinned = pinned.into_iter().map(|of| if of == "32 MiB" { "512 MiB" } else { of }).collect::<Vec<_>>();
    // A disk that stalls is rightly blamed; the machine is shared.
    let mut tries = (0..3).map(|_| keepup(directory.path(), &pinned));
    let run = tries.find(|run| json(run)["verdict"] == "INCONCLUSIVE").expect("an INCONCLUSIVE verdict");
    drop(hogs);
    let result = json(&run);
    // On a bad day time runs out before a rate was soaked, and the trials say why.
    let (code, why) = (run.code(), if run.code() == 4 { "verdict_reasons" } else { "trials" });
    assert!([4, 5].contains(&code), "{run:#?}");
    assert!(result[why].to_string().contains("source"), "{run:#?}");
}
