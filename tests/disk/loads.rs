//! Background loads: each reports its work, none outlives its parent, and no files remain.
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use keepup_testkit::{Program, Run};
use serde_json::Value;

use crate::common::{busy_directory, directory, json, keepup, qualified, squeezed, start};

fn list<'a>(of: &'a Value, key: &str) -> &'a Vec<Value> {
    of[key].as_array().unwrap_or_else(|| panic!("no {key} in {of:#}"))
}

fn float(of: &Value, key: &str) -> f64 {
    of[key].as_f64().unwrap_or_else(|| panic!("no {key} in {of:#}"))
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn entries(directory: &Path) -> usize {
    names(directory).len()
}

/// Processes that run a load in `here`, as children of `parent` or, without it, of any process.
fn children(here: &Path, parent: Option<u32>) -> Vec<u32> {
    let here = here.canonicalize().unwrap();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let is_here = std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == here);
        let arguments = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let after_name = stat.rsplit(") ").next().unwrap_or_default().to_owned();
        let mut fields = after_name.split(' ');
        let (state, its_parent) = (fields.next(), fields.next().and_then(|id| id.parse::<u32>().ok()));
        let is_ours = parent.is_none() || its_parent == parent;
        if is_here && is_ours && state != Some("Z") && arguments.contains("\0--child\0") {
            found.push(id);
        }
    }
    found
}

/// Waits for a condition; false after two minutes.
fn eventually(is_so: impl Fn() -> bool) -> bool {
    (0..2400).any(|_| is_so() || (std::thread::sleep(Duration::from_millis(50)), false).1)
}

/// Checks the report of a load.
fn adds_up(load: &Value) {
    let (achieved, seconds) = (float(load, "achieved"), float(load, "seconds"));
    let steps = list(load, "series");
    let sum: f64 = steps.iter().map(|rate| rate.as_f64().unwrap()).sum::<f64>() * float(load, "step_seconds");
    let rest = seconds - steps.len() as f64 * float(load, "step_seconds");
    let most = steps.iter().map(|rate| rate.as_f64().unwrap()).fold(achieved, f64::max);
    let left = achieved * seconds - sum;
    assert!(left >= -1.0 && left <= most * (rest + 0.1) + 1.0, "{left} in {rest} s: {load:#}");
    assert!(float(load, "cpu_seconds") > 0.0 && load["failure"].is_null(), "{load:#}");
    // At most the second that it was behind at the start of this time, and one piece.
    assert!(achieved * seconds <= 1.05 * float(load, "asked") * (seconds + 1.0), "{load:#}");
}

#[test]
#[ignore = "system"]
fn a_disk_test_reports_its_background_loads() {
    let place = directory();
    let here = place.path();
    std::fs::create_dir(here.join("other")).unwrap();
    let test = ["disk", "testdisk", "--quick", "--volume", ".", "--repeats", "2"];
    let loads = ["--load", "net=5MB/s", "--load", "disk=2MB/s@other,size=32 MiB"];
    let run = keepup(here, &[&test[..], &loads, &["--json", "--out", "kept"]].concat());
    assert_eq!(run.code(), 0, "{run:#?}");
    let found = json(&run);
    for run in list(&found, "runs") {
        let specs: Vec<_> = list(run, "loads").iter().map(|load| load["spec"].as_str().unwrap()).collect();
        assert_eq!(specs, ["net=5 MB/s", "disk=2 MB/s@other,read,size=32 MiB"]);
        list(run, "loads").iter().for_each(adds_up);
        let mut before = 0.0;
        for phase in list(run, "phases") {
            assert_eq!(list(phase, "load_rates").len(), 2, "{phase:#}");
            assert!(float(phase, "begin_seconds") >= before, "{phase:#}");
            before = float(phase, "begin_seconds") + float(phase, "seconds");
        }
        assert!(before <= float(&list(run, "loads")[0], "seconds") + 0.2, "{run:#}");
    }
    assert!(found["command"].as_str().unwrap().contains("--load net=5MB/s"), "{found:#}");
    assert_eq!(entries(&here.join("other")), 0);
    let text_run = keepup(here, &[&test[..], &loads].concat());
    for expected in ["Background load", "net=5 MB/s", "5.00 MB/s", "median", "lowest"] {
        assert!(text_run.stdout.contains(expected), "{expected}: {text_run:#?}");
    }
    let (kept, others) = (entries(&here.join("kept")), entries(here));
    assert_eq!((kept, others), (1, 2), "the loads left no files");
}

#[test]
#[ignore = "system"]
fn the_cpu_time_of_a_disk_load_is_not_part_of_the_sweep() {
    let place = busy_directory();
    let here = place.path();
    let sweep = ["disk", "sweep", "--sizes", "256 KiB", "--depths", "4", "--file", "64 MiB", "--time", "1 s"];
    let beside = ["--load", "cpu=0.5", "--load", "disk=10MB/s@.,size=64 MiB", "--json"];
    let run = keepup(here, &[&sweep[..], &beside].concat());
    assert_eq!(run.code(), 0, "{run:#?}");
    let found = json(&run);
    let one = &list(&found, "runs")[0];
    let loads = list(one, "loads");
    loads.iter().for_each(adds_up);
    assert!(float(&loads[0], "achieved") > 0.05, "{loads:#?}");
    assert_eq!((&loads[0]["unit"], &loads[1]["unit"]), (&"cores".into(), &"bytes_per_second".into()));
    // The CPU time of the measurement excludes that of its loads.
    let phases = list(one, "phases");
    let own: f64 = phases.iter().map(|phase| float(phase, "cpu_seconds")).sum();
    let machine: f64 = phases.iter().map(|phase| float(phase, "machine_cpu_seconds")).sum();
    let time: f64 = phases.iter().map(|phase| float(phase, "seconds")).sum();
    let burnt = float(&loads[0], "achieved") * time;
    assert!(own + 0.5 * burnt < machine + 0.1, "{own} own, {burnt} burnt, {machine} in all");
    assert_eq!(entries(&here.join("keepup-data")), 0);
}

#[test]
#[ignore = "system"]
fn a_load_below_its_rate_is_reported() {
    let place = directory();
    let here = place.path();
    let test = ["disk", "testdisk", "--quick", "--load", "memory=10TB/s"];
    let run = keepup(here, &[&test[..], &["--json"]].concat());
    assert_eq!(run.code(), 0, "{run:#?}");
    let load = &json(&run)["runs"][0]["loads"][0];
    assert!(load["fell_short"] == true && float(load, "achieved") > 0.0, "{load:#}");
    let text_run = keepup(here, &test);
    assert!(text_run.stdout.contains("load memory=10 TB/s fell short: "), "{text_run:#?}");
}

#[test]
#[ignore = "system"]
fn a_killed_load_ends_the_test_and_keeps_its_results() {
    let place = directory();
    let here = place.path();
    for signal in ["KILL", "TERM"] {
        let arguments = [
            "disk",
            "testdisk",
            "--quick",
            "--repeats",
            "1000",
            "--load",
            "disk=1MB/s@.,size=16 MiB",
            "--json",
        ];
        let run = start(here, &arguments);
        let second_run = || names(&here.join("keepup-data")).iter().any(|name| name.ends_with("-002"));
        assert!(eventually(second_run), "only one run of {}", run.id());
        let id = children(here, Some(run.id()))[0];
        Command::new("kill").args(["-s", signal, &id.to_string()]).status().unwrap();
        let run = run.wait();
        assert_eq!(run.code(), 4, "{run:#?}");
        let found = json(&run);
        let why = found["failure"].as_str().unwrap();
        assert!(why.contains("disk=1 MB/s@.") && found["interrupted"] == false, "{found:#}");
        assert!(!list(&list(&found, "runs")[0], "phases").is_empty(), "{found:#}");
        let last = list(&found, "runs").last().unwrap();
        assert!(last["loads"][0]["failure"].is_string(), "{last:#}");
        assert!(run.stderr.contains("error: cannot run load disk=1 MB/s@."), "{run:#?}");
        assert_eq!(
            (entries(here), entries(&here.join("keepup-data"))),
            (1, 0),
            "{signal}: something is left"
        );
    }
}

#[test]
fn loads_end_with_a_killed_parent() {
    let place = directory();
    let here = place.path();
    std::fs::create_dir(here.join("a")).unwrap();
    let arguments = ["load", "net=1MB/s", "memory=1MB/s", "cpu=0.01", "disk=1MB/s@a,write,size=16 MiB"];
    let mut run = start(here, &arguments);
    run.line("net=1 MB/s: over loopback");
    assert_eq!(children(here, Some(run.id())).len(), 4);
    run.signal("KILL");
    let run = run.wait();
    assert_eq!(run.code(), -1, "{run:#?}");
    assert!(eventually(|| children(here, None).is_empty()), "{:?}", children(here, None));
    assert!(eventually(|| entries(&here.join("a")) == 0), "the file of the disk load is removed");
}

#[test]
fn standalone_loads_run_until_stopped() {
    let place = directory();
    let here = place.path();
    let timed = keepup(here, &["load", "net=2MB/s", "disk=2MB/s@.,size=16 MiB", "--time", "2s", "--json"]);
    assert_eq!(timed.code(), 0, "{timed:#?}");
    let lines: Vec<Value> = timed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let over: Vec<_> = lines.iter().map(|line| line["over"].as_str().unwrap()).collect();
    // On a busy machine the last second may pass before it is sampled.
    assert!(over.len() > 1 && over.len() < 4 && over.ends_with(&["whole"]), "{over:?}");
    assert!(over[..over.len() - 1].iter().all(|part| *part == "second"), "{over:?}");
    lines.iter().flat_map(|line| list(line, "loads")).for_each(adds_up);
    let mut stopped = start(here, &["load", "net=2MB/s"]);
    stopped.line("net=2 MB/s: over loopback");
    stopped.signal("INT");
    let stopped = stopped.wait();
    assert!(
        stopped.code() == 0 && squeezed(&stopped.stdout).contains("net=2 MB/s 2.00 MB/s "),
        "{stopped:#?}"
    );
    assert_eq!(entries(here), 0);
}

#[test]
fn a_dry_run_reports_the_writes_of_loads_and_invalid_loads_are_refused() {
    let place = directory();
    let here = place.path();
    std::fs::create_dir(here.join("a")).unwrap();
    for verb in [&["disk", "testdisk", "--quick"][..], &["qualify", "csl"], &["soak", "--quick"]] {
        let with =
            |load: &str| keepup(here, &[verb, &["--volume", "a", "--load", load, "--dry-run"]].concat());
        let dry = with("disk=25MB/s@a,write,size=1 GiB");
        assert_eq!(dry.code(), 0, "{dry:#?}");
        assert!(dry.stdout.contains("beside it: disk=25 MB/s@a,write; they hold 1.1 GB"), "{dry:#?}");
        let refused = |run: Run, code: i32, why: &str| {
            assert!(run.code() == code && run.stderr.contains(why), "{code} {why}: {run:#?}");
        };
        refused(with("net=1"), 2, "the unit is missing");
        refused(with("disk=1MB/s@nowhere"), 2, "cannot use volume nowhere");
        refused(with("disk=1MB/s@/etc"), 3, "is a system directory");
        refused(with("disk=1MB/s@a,size=9000 TB"), 4, "MB are needed");
    }
    assert_eq!((entries(here), entries(&here.join("a"))), (1, 0));
    let fio = keepup(here, &["disk", "export-fio", "testdisk", "--load", "cpu=1"]);
    assert!(fio.stdout.contains("; background loads are not included"), "{fio:#?}");
}

#[test]
fn a_soak_reports_its_background_loads() {
    let place = directory();
    let here = place.path();
    let arguments = ["soak", "--size", "1 MiB", "--time", "1 s", "--load", "net=2MB/s", "--json"];
    let run = keepup(here, &arguments);
    assert_eq!(run.code(), 0, "{run:#?}");
    list(&json(&run), "loads").iter().for_each(adds_up);
    let text_run = keepup(here, &arguments[..arguments.len() - 1]);
    assert!(text_run.stdout.contains("net=2 MB/s") && text_run.stdout.contains("median"), "{text_run:#?}");
}

#[test]
#[ignore = "system"]
fn qualify_reports_load_and_verdict_together() {
    let place = busy_directory();
    let here = place.path();
    let arguments = ["qualify", "csl-old", "--quick", "--soak", "2s", "--max-write", "48 GB"];
    let loads = ["--load", "net=5MB/s", "--load", "memory=10TB/s", "--json"];
    let run = keepup(here, &[&arguments[..], &loads].concat());
    let found = qualified(&run);
    let loads = list(&found, "loads");
    assert_eq!(loads.len(), 2, "{loads:#?}");
    for load in loads {
        adds_up(&load["session"]);
        adds_up(&load["shown"]);
        assert!(float(&load["session"], "seconds") > float(&load["shown"], "seconds"), "{load:#}");
    }
    let reasons = found["verdict_reasons"].to_string();
    assert!(reasons.contains("background load `memory=10 TB/s` reached only"), "{reasons}");
    assert!(list(&found, "trials").iter().all(|trial| list(trial, "load_rates").len() == 2), "{found:#}");
    assert_eq!(entries(&here.join("keepup-data")), 0);
}

#[test]
#[ignore = "system"]
fn a_killed_load_ends_a_qualification_without_a_verdict() {
    let place = busy_directory();
    let here = place.path();
    let arguments =
        ["qualify", "csl-old", "--quick", "--max-write", "48 GB", "--load", "net=1MB/s", "--json"];
    let mut run = start(here, &arguments);
    run.line("search for");
    let id = children(here, Some(run.id()))[0];
    Command::new("kill").args(["-s", "KILL", &id.to_string()]).status().unwrap();
    let run = run.wait();
    assert_eq!(run.code(), 4, "{run:#?}");
    let found = json(&run);
    assert_eq!(found["verdict"], "INCONCLUSIVE", "{found:#}");
    assert!(found["verdict_reasons"][0].as_str().unwrap().contains("killed by signal 9"), "{found:#}");
    assert!(!list(&found, "trials").is_empty() && run.stderr.contains("error: "), "{run:#?}");
    assert_eq!(entries(&here.join("keepup-data")), 0);
}

/// Starts a load of 8 MB/s from a server at `address`.
pub(crate) fn traffic(here: &Path, address: &str, more: &[&str]) -> Program {
    let spec = format!("net=8MB/s@{address}");
    let token = format!("exec env KEEPUP_NET_TOKEN='{}' \"$@\"", crate::net::TOKEN);
    let all = [&["-c", &token, "sh", env!("CARGO_BIN_EXE_keepup"), "load", &spec], more].concat();
    Program::start("sh", &all, here)
}

/// Rate of the only load, in bytes per second, after its end.
pub(crate) fn achieved(load: Program) -> f64 {
    let found = load.wait();
    assert_eq!(found.code(), 0, "{found:#?}");
    let last: Value = serde_json::from_str(found.stdout.lines().last().unwrap()).unwrap();
    let load = &list(&last, "loads")[0];
    adds_up(load);
    float(load, "achieved")
}

#[test]
#[ignore = "system"]
fn network_traffic_to_a_server_is_a_load() {
    let place = busy_directory();
    let here = place.path();
    let (server, address) = crate::net::serve(here, "127.0.0.1:0");
    let run = |more: &[&str]| traffic(here, &address, more);
    // The amount depends on the machine: see `measured::loads`.
    assert!(achieved(run(&["--time", "1s", "--json"])) > 0.0);
    let left = run(&["--time", "60s"]);
    std::thread::sleep(Duration::from_secs(2));
    server.signal("KILL");
    let ended = left.wait();
    assert!(ended.code() == 4 && ended.stderr.contains("it disconnected"), "{ended:#?}");
    let refused = keepup(here, &["load", &format!("net=8MB/s@{address}"), "--time", "1s"]);
    assert!(refused.code() == 4 && refused.stderr.contains("hint: set KEEPUP_NET_TOKEN"), "{refused:#?}");
}
