//! Drain hosts of `record --fleet`.
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use keepup_testkit::{Program, Run};
use serde_json::Value;

use super::local::{SOURCE_PORTS, free, launcher};
use super::record::{LEASE, host, unique, write_local};
use super::{Fleet, status};
use crate::common::{TestDirectory, directory, json, keepup, recorded, start, until};

const HOSTS: [(&str, &str); 4] = [("a", "recorder"), ("b", "recorder"), ("c", "spare"), ("tape", "drain")];

/// A recording on two recorders with a drain host, and a source that sends to it.
struct Site {
    place: TestDirectory,
    here: PathBuf,
    name: String,
    fleet: Fleet,
    record: Program,
    source: Program,
}

impl Site {
    fn start(test: &str, number: u32, time: &str) -> Self {
        let place = directory();
        let here = place.path().canonicalize().unwrap();
        let name = unique(test);
        let hosts = HOSTS.map(|(host, role)| (format!("{name}{host}"), role));
        let launcher = format!("{LEASE}[launcher]\npreset = \"local\"");
        write_local(&here, &name, &launcher, &hosts);
        // Three recorders and their copies, below the ports that the kernel chooses.
        let port = (10_000 + (std::process::id() * 16 + number * 8) % 10_000).to_string();
        let flags = ["--fleet-output", "runs", "--fleet-port", &port, "--segment", "64 MB", "--json"];
        let flags = [&flags[..], &["--pool", "64 MiB"]].concat();
        let mut record = start(&here, &[&["record", "--fleet", "fleet.toml"], &flags[..]].concat());
        record.line(&format!("recording {name}-run-1 on 2 recorders with 1 spare in reserve"));
        let to = format!("127.0.0.1:{port}");
        let source = ["source", "romanis", "--to", &to, "--to", &to, "--streams", "16", "--event", "20 kB"];
        let source = start(&here, &[&source[..], &["--rate", "8 MB/s", "--time", time, "--json"]].concat());
        let fleet = Fleet { hosts: hosts.into_iter().map(|(host, _)| host).collect() };
        Self { place, here, name, fleet, record, source }
    }

    /// Waits until both recorders have sent parts of what they record, while they can record more.
    fn wait_for_copy(&self) {
        until("nothing is copied during the recording", || {
            let found = status(&self.here);
            (0..2).all(|host| {
                let report = &found["hosts"][host]["report"];
                let drained = report["counters"]["drained_bytes"].as_u64().unwrap_or(0);
                drained > 0 && report["state"]["is"] == "running"
            })
        });
    }

    /// Directory of a recorder's copy.
    fn copy(&self, recorder: usize) -> PathBuf {
        let (drain, recorder) = (&self.fleet.hosts[3], &self.fleet.hosts[recorder]);
        self.here.join(format!("volume-{drain}")).join(format!("{}-run-1-{recorder}", self.name))
    }
}

fn drain(report: &Value, recorder: usize) -> &Value {
    &report["recorders"][recorder]["outcome"]["drain"]
}

/// Events in a recording, which is verified.
fn verified(here: &Path, recording: &Path) -> u64 {
    let run = keepup(here, &["verify", &recording.display().to_string(), "--json"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    recorded(&json(&run)).0
}

fn sent(source: Program) -> u64 {
    let run: Run = source.wait();
    assert_eq!(run.code(), 0, "{run:#?}");
    json(&run)["sent"]["events"].as_u64().unwrap()
}

#[test]
fn each_recorder_is_copied_while_it_records() {
    let site = Site::start("copied", 0, "3s");
    site.wait_for_copy();
    let (copies, fleet) = ([0, 1].map(|recorder| site.copy(recorder)), site.fleet);
    let sent = sent(site.source);
    let run = site.record.wait();
    assert_eq!(run.code(), 0, "{run:#?}");
    let report = json(&run);
    assert!((0..2).all(|recorder| drain(&report, recorder)["end"] == "complete"), "{report:#}");
    let events = copies.map(|copy| verified(&site.here, &copy));
    for (recorder, events) in events.iter().enumerate() {
        assert_eq!(report["recorders"][recorder]["outcome"]["durable_events"], *events, "{report:#}");
    }
    assert_eq!(events.iter().sum::<u64>(), sent);
    let copied = report["drains"][0]["copies"].as_array().unwrap().iter();
    assert_eq!(copied.map(|copy| copy["durable_events"].as_u64().unwrap()).sum::<u64>(), sent, "{report:#}");
    until("agents are left", || fleet.gone());
    drop(site.place);
}

/// The recorders go on, and do not wait for a copy that is not wanted any more.
#[test]
fn without_its_drain_host_a_run_is_recorded_and_ends_on_request() {
    let mut site = Site::start("uncopied", 1, "2s");
    site.wait_for_copy();
    site.fleet.signal(3, "KILL");
    let sent = sent(site.source);
    site.record.line("ending the recording");
    let down = keepup(&site.here, &["fleet", "down", "fleet.toml"]);
    assert_eq!(down.code(), 0, "{down:#?}");
    let run = site.record.wait();
    assert_eq!(run.code(), 1, "{run:#?}");
    let report = json(&run);
    assert!((0..2).all(|recorder| drain(&report, recorder)["end"] == "stopped"), "{report:#}");
    assert_eq!(report["drains"][0]["failure"], "no heartbeat until its lease expired");
    let whole = keepup(&site.here, &["verify", "runs/run-1", "--json"]);
    assert_eq!(whole.code(), 0, "{whole:#?}");
    let events = report["recorders"].as_array().unwrap().iter();
    let events = events.filter_map(|recorder| recorder["outcome"]["durable_events"].as_u64());
    assert_eq!(events.sum::<u64>(), sent, "{report:#}");
    until("agents are left", || site.fleet.gone());
}

/// The copies of a trial are received and written by the drain host, and removed like the recordings.
#[test]
fn a_trial_drains_to_the_drain_host() {
    let _ports = SOURCE_PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    let place = directory();
    let here = place.path().canonicalize().unwrap();
    // The ports of sinks are fixed, too.
    let id = std::process::id();
    let address = format!("127.78.{}.{}", id / 250 % 250, id % 250 + 1);
    let launcher = launcher();
    let mut text = format!("name = \"drained{id}\"\nlisten = \"{}\"\n{launcher}\n", free());
    text.push_str("[[host]]\nname = \"s\"\nrole = \"source\"\ndata = \"127.0.0.1\"\n");
    for (name, role) in [("a", "recorder"), ("tape", "drain")] {
        text.push_str(&host(&here, name, role, &format!("data = \"{address}\"")));
    }
    std::fs::write(here.join("fleet.toml"), text).unwrap();
    let profile =
        "name = \"slow\"\nextends = \"csl\"\n[source]\nrate = \"40 /s\"\n[drain]\nrate = \"5 MB/s\"\n";
    std::fs::write(here.join("slow.toml"), profile).unwrap();
    let trial =
        ["fleet", "trial", "fleet.toml", "./slow.toml", "--event", "200 kB", "--time", "4s", "--json"];
    let run = keepup(&here, &trial);
    assert_eq!(run.code(), 0, "{run:#?}");
    let outcome = &json(&run)["hosts"][0]["outcome"];
    let rate = outcome["drain_bytes_per_second"].as_f64().unwrap_or_default();
    // The profile limits it, and a drain catches up after a pause of the machine.
    assert!(rate > 0.0 && rate < 1.5 * 5e6, "{run:#?}");
    for volume in ["volume-a", "volume-tape"] {
        let left: Vec<_> = std::fs::read_dir(here.join(volume)).unwrap().flatten().collect();
        assert!(left.is_empty(), "{volume}: {left:?}");
    }
}
