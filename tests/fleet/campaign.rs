//! `keepup campaign --fleet`: cells on two hosts, and hosts that refuse, fail or are killed.
use std::path::{Path, PathBuf};

use keepup_testkit::{Program, Run};
use serde_json::Value;

use super::Fleet;
use super::local::{free, launcher};
use crate::common::{busy_directory, directory, json, keepup, until};

/// Two recorders with a directory each, `r0` and `r1`, and a source without one.
fn three_hosts(here: &Path, test: &str) -> Fleet {
    let hosts: Vec<String> = (0..3).map(|host| format!("{test}-{}-{host}", std::process::id())).collect();
    let mut text = format!("name = \"{test}\"\nlisten = \"{}\"\n{}\n", free(), launcher());
    for (n, host) in hosts.iter().enumerate() {
        let role = if n < 2 { "recorder" } else { "source" };
        text.push_str(&format!("[[host]]\nname = \"{host}\"\nrole = \"{role}\"\n"));
        if n < 2 {
            let volume = here.join(format!("r{n}"));
            std::fs::create_dir_all(&volume).unwrap();
            text.push_str(&format!("volumes = [{:?}]\n", volume.canonicalize().unwrap()));
        }
    }
    std::fs::write(here.join("fleet.toml"), text).unwrap();
    std::fs::create_dir_all(here.join("tmp")).unwrap();
    Fleet { hosts }
}

/// A campaign with a tiny test on host 0, and the settings `other` on another host.
fn write_campaign(here: &Path, fleet: &Fleet, other: &str) {
    let volume = here.join("r0").canonicalize().unwrap();
    let text = format!(
        "name = \"two\"\nrepetitions = 2\n[run]\n[axes]\nplace = [\n\
         {{ label = \"first\", host = \"{}\", verb = \"disk concurrent\", files = 1, size = \"1 MiB\", \
         kind = \"write\", volume = {volume:?} }},\n{{ label = \"second\", {other} }},\n]\n\
         [baseline]\nplace = \"first\"\n",
        fleet.hosts[0]
    );
    std::fs::write(here.join("c.toml"), text).unwrap();
}

/// The tiny test on a host with this volume.
fn tiny(host: &str, volume: &Path) -> String {
    format!(
        "host = \"{host}\", verb = \"disk concurrent\", files = 1, size = \"1 MiB\", kind = \"write\", \
         volume = {volume:?}"
    )
}

/// A trial of `seconds` on host 1.
fn trial(here: &Path, fleet: &Fleet, seconds: u32) -> String {
    let volume = here.join("r1").canonicalize().unwrap();
    format!(
        "host = \"{}\", verb = \"trial\", args = \"csl\", rate = \"1 MB/s\", time = \"{seconds} s\", \
         volume = {volume:?}",
        fleet.hosts[1]
    )
}

/// Starts keepup with the temporary directory `tmp`, in which hosts keep results until they are sent.
fn begin(here: &Path, arguments: &[&str]) -> Program {
    let temporary = format!("TMPDIR={}", here.join("tmp").display());
    let start = [temporary.as_str(), env!("CARGO_BIN_EXE_keepup")];
    Program::start("env", &[&start[..], arguments].concat(), here)
}

fn run(here: &Path, more: &[&str]) -> Run {
    begin(here, &[&["campaign", "run", "c.toml", "--fleet", "fleet.toml"], more].concat()).wait()
}

/// The only campaign.
fn result_of(here: &Path) -> PathBuf {
    let mut all = std::fs::read_dir(here.join("results")).unwrap();
    all.next().unwrap().unwrap().path()
}

fn entries(directory: &Path) -> Vec<String> {
    let all = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = all.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Whether a command on `volume` runs that is no agent and no dry run.
fn is_running(volume: &Path) -> bool {
    let volume = volume.canonicalize().unwrap();
    let volume = volume.to_str().unwrap().as_bytes();
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let lines = processes.map(|process| std::fs::read(process.join("cmdline")).unwrap_or_default());
    let mut commands = lines.filter(|line| {
        let mut words = line.split(|byte| *byte == 0);
        words.clone().any(|word| word == volume) && words.any(|word| word == b"--out")
    });
    commands.next().is_some()
}

/// Runs of a cell: exit code and reason.
fn runs(found: &Value, cell: usize) -> Vec<(i64, String)> {
    let runs = found["cells"][cell]["runs"].as_array().unwrap();
    let text = |run: &Value| run["why"].as_str().unwrap_or_default().to_owned();
    runs.iter().map(|run| (run["exit_code"].as_i64().unwrap(), text(run))).collect()
}

#[test]
#[ignore = "system"]
fn cells_run_on_their_hosts_and_the_result_is_that_of_a_local_campaign() {
    let place = busy_directory();
    let here = place.path();
    let fleet = three_hosts(here, "cells");
    write_campaign(here, &fleet, &tiny(&fleet.hosts[1], &here.join("r1").canonicalize().unwrap()));
    let plan = run(here, &["--dry-run", "--json"]);
    assert_eq!(plan.code(), 0, "{plan:#?}");
    let volumes = json(&plan)["volume_bytes_written"].as_object().unwrap().clone();
    let volume = |n: usize| here.join(format!("r{n}")).canonicalize().unwrap();
    let named = |n: usize| format!("{}:{}", fleet.hosts[n], volume(n).display());
    assert_eq!(volumes.keys().cloned().collect::<Vec<_>>(), [named(0), named(1)]);
    let run = run(here, &["--json"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    assert!(!run.stderr.contains(&format!("{} has joined", fleet.hosts[2])), "it has no cell: {run:#?}");
    let found = json(&run);
    let campaign = result_of(here);
    for cell in 1..=2 {
        assert_eq!(runs(&found, cell - 1), [(0, String::new()), (0, String::new())], "{found:#}");
        for repetition in 1..=2 {
            let directory = campaign.join(format!("cells/{cell}-r{repetition}"));
            let names = entries(&directory);
            assert_eq!(names[1..], ["stderr.txt", "stdout.txt"], "{names:?}");
            let files = entries(&directory.join(&names[0]));
            assert!(files.contains(&"events.jsonl".into()) && files.contains(&"result.json".into()));
        }
    }
    let command = found["cells"][1]["command"].as_str().unwrap();
    assert!(command.starts_with(&format!("{}: keepup disk concurrent", fleet.hosts[1])), "{command}");
    let ratios = found["cells"][1]["ratios"].as_array().unwrap();
    assert!(ratios.iter().all(|ratio| ratio["pairs"] == 2), "{ratios:#?}");
    let figures = found["cells"][1]["figures"].as_array().unwrap();
    let has_evidence = figures.iter().any(|figure| figure["is_too_short"].is_null());
    assert_eq!(ratios.is_empty(), !has_evidence, "{figures:#?}");
    for left in ["r0", "r1", "tmp"] {
        assert_eq!(entries(&here.join(left)), [""; 0], "{left}");
    }
    until("agents are left", || fleet.gone());
}

#[test]
#[ignore = "system"]
fn a_cell_that_its_host_cannot_run_is_named_before_the_first_run() {
    let place = directory();
    let here = place.path();
    let fleet = three_hosts(here, "refused");
    let inside = here.join("r1").canonicalize().unwrap();
    let at = |volume: &Path| tiny(&fleet.hosts[1], volume);
    let no_host = at(&inside).replace(&format!("host = \"{}\", ", fleet.hosts[1]), "");
    let no_volume = at(&inside).replace(&format!(", volume = {inside:?}"), "");
    for (other, why) in [
        (at(Path::new("/etc")), "it leads to /etc, outside the volumes of this host"),
        (at(&inside.join("missing")), "missing"),
        (at(Path::new("r1")), "cannot use r1: it is not an absolute path"),
        (format!("{}, load = \"disk=1MB/s@/etc\"", at(&inside)), "it leads to /etc"),
        (no_volume, "it would write to ./keepup-data"),
        (no_host, "the cell has no host"),
        (tiny("nobody", &inside), "the fleet refused has no host nobody"),
        (tiny(&fleet.hosts[2], &inside), "outside the volumes of this host"),
    ] {
        write_campaign(here, &fleet, &other);
        let run = run(here, &[]);
        assert_eq!(run.code(), 2, "{other}: {run:#?}");
        assert!(run.stderr.contains("cannot run cell 2 (second) as `"), "{other}: {run:#?}");
        assert!(run.stderr.contains(why), "{other}: {run:#?}");
        let has_hint = run.stderr.contains("\nhint: ");
        assert!(
            has_hint || ["missing", "it is not an absolute"].iter().any(|no| why.contains(no)),
            "{run:#?}"
        );
    }
    write_campaign(here, &fleet, &at(&inside));
    let local = keepup(here, &["campaign", "run", "c.toml"]);
    assert_eq!(local.code(), 2, "{local:#?}");
    let why = format!("host {} is a host of a fleet, and no fleet file is given", fleet.hosts[0]);
    assert!(local.stderr.contains(&why) && local.stderr.contains("hint: --fleet FILE"), "{local:#?}");
    assert!(!here.join("results").exists());
    assert_eq!([entries(&here.join("r0")), entries(&here.join("r1"))], [Vec::<String>::new(), Vec::new()]);
}

#[test]
#[ignore = "system"]
fn a_host_that_is_killed_in_a_cell_fails_its_runs_and_the_others_go_on() {
    let place = busy_directory();
    let here = place.path();
    let fleet = three_hosts(here, "killed");
    write_campaign(here, &fleet, &trial(here, &fleet, 300));
    let campaign = begin(here, &["campaign", "run", "c.toml", "--fleet", "fleet.toml", "--json"]);
    let volume = here.join("r1");
    until("the trial runs", || is_running(&volume));
    fleet.signal(1, "KILL");
    until("the command outlives its agent", || !is_running(&volume));
    let run = campaign.wait();
    assert_eq!(run.code(), 4, "{run:#?}");
    let found = json(&run);
    assert_eq!(runs(&found, 0), [(0, String::new()), (0, String::new())], "{found:#}");
    for ((code, why), wanted) in runs(&found, 1).into_iter().zip(["the host was lost", "not in the fleet"]) {
        let is_named = why.starts_with(&format!("{}: ", fleet.hosts[1]));
        assert!(code == 4 && is_named && why.contains(wanted) && why.contains("signal: 9"), "{why}");
    }
    assert_eq!(found["totals"]["failed"], 2, "{found:#}");
}

#[test]
#[ignore = "system"]
fn ctrl_c_ends_the_command_on_its_host_and_the_campaign_resumes() {
    let place = busy_directory();
    let here = place.path();
    let fleet = three_hosts(here, "resumed");
    write_campaign(here, &fleet, &trial(here, &fleet, 4));
    let campaign = begin(here, &["campaign", "run", "c.toml", "--fleet", "fleet.toml"]);
    let volume = here.join("r1");
    until("the trial runs", || is_running(&volume));
    campaign.signal("INT");
    let run = campaign.wait();
    assert_eq!(run.code(), 130, "{run:#?}");
    assert!(run.stderr.contains("--fleet fleet.toml"), "{run:#?}");
    for left in ["r1", "tmp"] {
        assert_eq!(entries(&here.join(left)), [""; 0], "{left}");
    }
    until("agents are left", || fleet.gone());
    let campaign = result_of(here);
    let path = campaign.to_str().unwrap();
    let rest = begin(here, &["campaign", "resume", path, "--fleet", "fleet.toml", "--json"]).wait();
    assert_eq!(rest.code(), 0, "{rest:#?}");
    let found = json(&rest);
    assert_eq!((&found["totals"]["runs"], &found["totals"]["left"]), (&4.into(), &0.into()), "{found:#}");
    assert!(entries(&campaign.join("cells")).contains(&"2-r1-cut".to_owned()));
    let without = keepup(here, &["campaign", "resume", path]);
    assert!(without.code() == 2 && without.stderr.contains("hint: --fleet FILE"), "{without:#?}");
}

#[test]
#[ignore = "system"]
fn ctrl_c_before_the_hosts_have_joined_is_an_interruption() {
    let place = directory();
    let here = place.path();
    let fleet = three_hosts(here, "waiting");
    write_campaign(here, &fleet, &tiny(&fleet.hosts[1], &here.join("r1").canonicalize().unwrap()));
    let file = std::fs::read_to_string(here.join("fleet.toml")).unwrap();
    let never = "[launcher]\ncommand = [\"sh\", \"-c\", \"echo {host} waits >&2; cat >/dev/null # {agent}\"]";
    // Recorders of `record` need an address for their clients.
    let file = file.replace("role = \"recorder\"", "role = \"recorder\"\ndata = \"127.0.0.1\"");
    std::fs::write(here.join("fleet.toml"), file.replace(&launcher(), never)).unwrap();
    for command in [
        &["campaign", "run", "c.toml", "--fleet", "fleet.toml"][..],
        &["doctor", "--fleet", "fleet.toml"],
        &["fleet", "trial", "fleet.toml", "romanis", "--streams", "2"],
        &["record", "--fleet", "fleet.toml"],
        &["qualify", "romanis", "--fleet", "fleet.toml", "--quick", "--streams", "2"],
    ] {
        let mut program = begin(here, command);
        program.line(&format!("{0}: {0} waits", fleet.hosts[0]));
        program.signal("INT");
        let run = program.wait();
        assert_eq!(run.code(), 130, "{command:?}: {run:#?}");
        assert!(run.stderr.contains("stopped before all hosts had joined"), "{command:?}: {run:#?}");
    }
}
