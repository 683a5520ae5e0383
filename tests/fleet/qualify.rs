//! Qualification of a fleet whose sources have links of a known rate, in network namespaces.
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use keepup_testkit::switch::Switch;
use keepup_testkit::{Program, root};
use serde_json::Value;

use super::Fleet;
use super::local::{SOURCE_PORTS, sources_and_recorders};
use crate::common::{TestDirectory, directory, json, keepup, start, until};

/// Rate of each source's link, Mbit/s: far below what the slowest machine of a test carries.
pub(in crate::fleet) const LINK_MEGABITS: u32 = 100;
/// The detector: 6.6 MB/s on 4 streams.
const DETECTOR: [&str; 5] = ["romanis", "--streams", "4", "--event", "64 KiB"];

/// Two sources and two recorders, connected by a switch.
pub(in crate::fleet) struct Site {
    place: TestDirectory,
    switch: Switch,
    /// Hosts: sources, then recorders.
    pub(in crate::fleet) fleet: Fleet,
}

impl Site {
    /// Writes the fleet file to a directory that `place` makes; none without root.
    pub(in crate::fleet) fn create(test: &str, place: fn() -> TestDirectory) -> Option<Self> {
        if !root::allowed(test) {
            return None;
        }
        let place = place();
        let here = place.path();
        let name = format!("ku{}{test}", std::process::id() % 100_000);
        let switch = Switch::create(&name, 5).unwrap();
        let hosts: Vec<String> = ["s0", "s1", "r0", "r1"].map(|host| format!("{name}-{host}")).into();
        let keepup = env!("CARGO_BIN_EXE_keepup");
        let listen = format!("{}:7650", Switch::address(0));
        let launcher = format!("[launcher]\npreset = \"netns\"\nprogram = \"{keepup}\"");
        let mut text = format!("name = \"{test}\"\nlisten = \"{listen}\"\n{launcher}\n");
        for (number, host) in hosts.iter().enumerate() {
            let (namespace, data) = (switch.host(number + 1), Switch::address(number + 1));
            let more = if number < 2 {
                switch.shape(number + 1, LINK_MEGABITS).unwrap();
                "role = \"source\"".to_owned()
            } else {
                std::fs::create_dir_all(here.join(host)).unwrap();
                format!("role = \"recorder\"\nvolumes = [{:?}]", here.join(host).canonicalize().unwrap())
            };
            text.push_str(&format!(
                "[[host]]\nname = \"{host}\"\naddress = \"{namespace}\"\ndata = \"{data}\"\n{more}\n"
            ));
        }
        std::fs::write(here.join("fleet.toml"), text).unwrap();
        Some(Self { place, switch, fleet: Fleet { hosts } })
    }

    pub(in crate::fleet) fn here(&self) -> &Path {
        self.place.path()
    }

    /// Starts the qualification in the namespace of the controller.
    pub(in crate::fleet) fn start(&self, flags: &[&str]) -> Program {
        let controller = ["netns", "exec", self.switch.host(0), env!("CARGO_BIN_EXE_keepup")];
        let verb = ["qualify", "--fleet", "fleet.toml", "--quick", "--soak", "2s", "--json"];
        Program::start("ip", &[&controller[..], &verb, &DETECTOR, flags].concat(), self.here())
    }
}

/// The number at the start of a text.
fn leading_number(text: &str) -> u32 {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// The only result directory.
pub(in crate::fleet) fn stored(here: &Path) -> PathBuf {
    let results = std::fs::read_dir(here.join("results")).unwrap();
    let results: Vec<PathBuf> = results.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(results.len(), 1, "{results:?}");
    results[0].clone()
}

pub(in crate::fleet) fn summary(directory: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(directory.join("result.json")).unwrap()).unwrap()
}

#[test]
#[ignore = "system"]
fn a_recorder_that_is_killed_is_named_and_the_others_go_on() {
    let Some(site) = Site::create("kill", directory) else { return };
    let mut run = site.start(&["--to-null"]);
    run.line("  trial 2, target: ");
    site.fleet.signal(3, "KILL");
    let killed = &site.fleet.hosts[3];
    run.line(&format!("warning: {killed} takes no further part: no heartbeat until its lease expired"));
    let lost = leading_number(&run.line("the search starts again after trial "));
    let held = |line: &str| {
        let number = line.strip_prefix("  trial ").map(leading_number);
        number.is_some_and(|number| number > lost) && line.contains(", target: ") && line.ends_with(": held")
    };
    run.line_that(held, "the target on the other recorder");
    // The results so far, and no agent, are left.
    let down = keepup(site.here(), &["fleet", "down", "fleet.toml"]);
    assert_eq!(down.code(), 0, "{down:#?}");
    let run = run.wait();
    assert_eq!(run.code(), 130, "{run:#?}");
    let found = json(&run);
    assert_eq!(found["verdict"], "INCONCLUSIVE", "{found:#}");
    assert_eq!(found["lost"][0]["host"].as_str(), Some(&**killed), "{found:#}");
    let trials = found["trials"].as_array().unwrap();
    let failed = format!("{killed}: no heartbeat until its lease expired");
    assert!(trials.iter().any(|trial| trial["failed_condition"] == *failed), "{found:#}");
    assert_eq!(trials[0]["parts"].as_array().unwrap().len(), 2, "{found:#}");
    until("agents are left", || site.fleet.gone());
}

#[test]
fn a_fleet_that_cannot_be_qualified_is_refused() {
    let place = directory();
    let here = place.path();
    Fleet::write(here, "few", 2, "127.0.0.1:1", "[launcher]\npreset = \"local\"");
    let run = keepup(here, &["qualify", "--fleet", "fleet.toml", "romanis"]);
    assert!(run.code() == 2 && run.stderr.contains("at least one recorder and one source"), "{run:#?}");
    let run = keepup(here, &["qualify", "--fleet", "fleet.toml", "romanis", "--volume", "."]);
    assert!(run.code() == 2 && run.stderr.contains("cannot be used with"), "{run:#?}");
    let run = keepup(here, &["qualify", "romanis", "--each"]);
    assert_eq!(run.code(), 2, "{run:#?}");
}

#[test]
fn an_interrupted_qualification_of_one_recorder_is_stored() {
    let _ports = SOURCE_PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    let place = directory();
    let here = place.path();
    sources_and_recorders(here, "stored");
    let verb = ["qualify", "--fleet", "fleet.toml", "--recorders", "1", "--quick", "--to-null"];
    let mut run = start(here, &[&verb[..], &DETECTOR].concat());
    run.line("  trial 2, ");
    run.signal("INT");
    let run = run.wait();
    assert_eq!(run.code(), 130, "{run:#?}");
    assert!(run.stdout.contains("INCONCLUSIVE"), "{run:#?}");
    let directory = stored(here);
    let found = summary(&directory);
    assert_eq!((&found["kind"], &found["workload"]), (&"qualify_fleet".into(), &"romanis".into()));
    assert_eq!((&found["interrupted"], &found["verdict"]), (&true.into(), &"INCONCLUSIVE".into()));
    assert_eq!(found["plan"]["recorders"], 1, "{found:#}");
    let trials = found["trials"].as_array().unwrap();
    assert!(trials.len() >= 2 && trials.iter().all(|trial| trial["parts"][0]["host"] == "r0"), "{found:#}");
    let limits = found["limits"].as_array().unwrap();
    assert!(limits.iter().any(|limit| limit == "not tested, because of --recorders: r1"), "{found:#}");
    let events = std::fs::read_to_string(directory.join("events.jsonl")).unwrap();
    assert_eq!(events.matches("\"event\":\"fleet_trial\"").count(), trials.len());
    assert!(std::fs::read_to_string(directory.join("report.html")).unwrap().contains("INCONCLUSIVE"));
    let report = keepup(here, &["report", directory.to_str().unwrap()]);
    assert!(report.code() == 0 && report.stdout.contains("[ INCONCLUSIVE ]"), "{report:#?}");
}

/// A campaign over the number of recorders.
fn campaign(here: &Path, recorders: &str) -> keepup_testkit::Run {
    let text = format!(
        "name = \"hosts\"\n[run]\nverb = \"qualify\"\nargs = \"csl\"\nfleet = \"fleet.toml\"\nstreams = 2\n\
         [axes]\nrecorders = {recorders}\n[baseline]\nrecorders = 1\n"
    );
    std::fs::write(here.join("campaign.toml"), text).unwrap();
    keepup(here, &["campaign", "run", "campaign.toml", "--dry-run", "--json"])
}

#[test]
fn the_number_of_recorders_is_an_axis() {
    let place = directory();
    let here = place.path();
    sources_and_recorders(here, "axis");
    let run = campaign(here, "[1, 2]");
    let plan = json(&run);
    // 400 GB for each cell, of which each recorder takes its part.
    assert_eq!(plan["bytes_written"], 800_000_000_000_u64, "{plan:#}");
    let volumes = plan["volume_bytes_written"].as_object().unwrap();
    assert_eq!(volumes.keys().filter(|volume| volume.starts_with("r1:")).count(), 1, "{plan:#}");
    let refused = campaign(here, "[1, 3]");
    assert_eq!(refused.code(), 2, "{refused:#?}");
    assert!(refused.stderr.contains("cannot run cell 2 (3)"), "{refused:#?}");
    assert!(refused.stderr.contains("3 recorders were requested, fleet axis has 2"), "{refused:#?}");
    assert!(!here.join("results").exists());
}

#[test]
fn a_reproduction_measures_every_number_of_recorders() {
    let place = directory();
    let here = place.path();
    sources_and_recorders(here, "hosts");
    let reproduce = |flags: &[&str]| keepup(here, &[&["reproduce"], flags].concat());
    for (paper, streams) in [("romanis", "streams = 508"), ("cdf-csl", "streams = 2")] {
        let run = reproduce(&[paper, "--fleet", "fleet.toml", "--each", "--scale", "0.01", "--print"]);
        assert_eq!(run.code(), 0, "{run:#?}");
        assert!(run.stdout.contains(streams) && run.stdout.contains("recorders = 2"), "{run:#?}");
        assert_eq!(run.stdout.matches("each = true").count(), 1, "only for all recorders: {run:#?}");
        let plan = reproduce(&[paper, "--fleet", "fleet.toml", "--scale", "0.01", "--dry-run"]);
        assert!(plan.code() == 0 && plan.stdout.contains("2 cells"), "{plan:#?}");
    }
    let run = reproduce(&["esrf-2007", "--fleet", "fleet.toml"]);
    assert!(run.code() == 2 && run.stderr.contains("cannot use --fleet with esrf-2007"), "{run:#?}");
    let run = reproduce(&["romanis", "--fleet", "fleet.toml", "--volume", "."]);
    assert_eq!(run.code(), 2, "{run:#?}");
}
