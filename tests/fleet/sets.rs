//! `info`, `verify` and `recover` of a recording set with `--fleet`: the agents of its hosts read and repair
//! the recordings of a run in which a recorder was killed.
use std::fs;
use std::path::Path;

use keepup_testkit::Run;
use serde_json::Value;

use super::Fleet;
use super::local::launcher;
use super::record::LEASE;
use crate::common::{directory, json, keepup, start, until};

const ROLES: [&str; 3] = ["recorder", "recorder", "spare"];

/// Two recorders and a spare on this machine, each with a volume of its own.
fn fleet(here: &Path, test: &str) -> Fleet {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut text = format!("name = \"{test}\"\nlisten = \"{free}\"\n{LEASE}{}\n", launcher());
    let hosts: Vec<String> = (0..3).map(|host| format!("{test}-{}-{host}", std::process::id())).collect();
    for (host, (name, role)) in hosts.iter().zip(ROLES).enumerate() {
        let volume = here.join(format!("volume-{host}"));
        fs::create_dir_all(&volume).unwrap();
        let fields = format!("name = \"{name}\"\nrole = \"{role}\"\nvolumes = [{volume:?}]");
        text.push_str(&format!("[[host]]\n{fields}\ndata = \"127.0.0.1\"\n"));
    }
    fs::write(here.join("fleet.toml"), text).unwrap();
    Fleet { hosts }
}

/// Records a run, and kills a recorder; returns how many events were sent.
fn record(here: &Path, fleet: &Fleet) -> u64 {
    // Ports that other tests do not use.
    let first = 10_000 + std::process::id() % 10_000;
    let port = first.to_string();
    let flags = ["--fleet-output", "runs", "--fleet-port", &port, "--segment", "64 MB", "--json"];
    let mut record = start(here, &[&["record", "--fleet", "fleet.toml"], &flags[..]].concat());
    record.line("recording sets-run-1 on 2 recorders with 1 spare in reserve");
    let [killed, other] = [first, first + 1].map(|port| format!("127.0.0.1:{port}"));
    let source =
        ["source", "romanis", "--to", &killed, "--to", &other, "--streams", "16", "--event", "20 kB"];
    let flags = ["--rate", "8 MB/s", "--time", "5s", "--recorder-timeout", "30 s", "--json"];
    let source = start(here, &[&source[..], &flags].concat());
    let counted = |host: usize| {
        let run = keepup(here, &["fleet", "status", "fleet.toml", "--json"]);
        json(&run)["hosts"][host]["report"]["counters"]["events"].as_u64().unwrap_or(0)
    };
    until("no events arrive", || counted(0) > 0 && counted(1) > 0);
    fleet.signal(0, "KILL");
    let source = source.wait();
    assert_eq!(source.code(), 0, "{source:#?}");
    let record = record.wait();
    assert_eq!(record.code(), 1, "{record:#?}");
    json(&source)["sent"]["events"].as_u64().unwrap()
}

/// A result without durations.
fn timeless(run: &Run) -> Value {
    let mut found = json(run);
    for recording in found["recordings"].as_array_mut().unwrap() {
        recording.as_object_mut().unwrap().remove("seconds");
    }
    found
}

/// Runs a command on the set with agents and with local paths; both must give the same. Returns the exit code
/// and the result.
fn compared(here: &Path, command: &str) -> (i32, Value) {
    let agents = keepup(here, &[command, "runs/run-1", "--fleet", "fleet.toml", "--json"]);
    let local = keepup(here, &[command, "runs/run-1", "--json"]);
    assert_eq!(agents.code(), local.code(), "{agents:#?} {local:#?}");
    let found = timeless(&agents);
    assert_eq!(found, timeless(&local), "{command}");
    (agents.code(), found)
}

#[test]
#[ignore = "system"]
fn agents_give_the_result_of_local_paths() {
    let place = directory();
    let here = place.path().canonicalize().unwrap();
    let fleet = fleet(&here, "sets");
    let sent = record(&here, &fleet);
    let (_, info) = compared(&here, "info");
    assert_eq!(info["recordings"][0]["info"]["state"]["state"], "cut_off", "{info:#}");
    compared(&here, "verify");
    let agents = |command: &str, more: &[&str]| {
        keepup(&here, &[&[command, "runs/run-1", "--fleet", "fleet.toml"], more].concat())
    };
    let verified = agents("verify", &[]).stdout;
    assert!(verified.contains(" keepup recover runs/run-1 --fleet fleet.toml\n"), "{verified}");
    let recovered = agents("recover", &["--json"]);
    assert_eq!(recovered.code(), 0, "{recovered:#?}");
    let changed: Vec<bool> = json(&recovered)["recordings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|recording| recording["report"]["changed"] == true)
        .collect();
    assert_eq!(changed, [true, false, false], "only the recording of the killed recorder: {recovered:#?}");
    let (code, again) = compared(&here, "recover");
    assert_eq!(code, 0, "{again:#}");
    let is_done = |recording: &Value| recording["report"].is_null() && recording["is_here"] == true;
    assert!(again["recordings"].as_array().unwrap().iter().all(is_done), "{again:#}");
    let (code, verified) = compared(&here, "verify");
    assert_eq!(code, 0, "{verified:#}");
    let streams = verified["account"]["streams"].as_object().unwrap();
    let events: u64 = streams.values().map(|stream| stream["events"].as_u64().unwrap()).sum();
    assert_eq!((verified["whole"].as_bool(), events, streams.len()), (Some(true), sent, 16));
    assert_eq!(compared(&here, "info").0, 0);

    let exported = agents("export", &["--to", "mcap", "--out", "all.mcap"]);
    assert!(exported.code() == 2 && exported.stderr.contains("hint: copy or mount"), "{exported:#?}");

    // The set names a directory outside the volumes of the second host.
    let set = here.join("runs/run-1/keepup-set.json");
    let text = fs::read_to_string(&set).unwrap();
    let [own, other] = [1, 0].map(|host| here.join(format!("volume-{host}/")).display().to_string());
    let mut foreign: Value = serde_json::from_str(&text.replace(&own, &other)).unwrap();
    foreign.as_object_mut().unwrap().remove("checksum").unwrap();
    fs::write(&set, foreign.to_string()).unwrap();
    let refused = agents("recover", &[]);
    assert_eq!(refused.code(), 1, "{refused:#?}");
    assert!(refused.stdout.contains("outside the volumes of this host"), "{refused:#?}");
    fs::write(&set, text).unwrap();

    // Its disk is gone, and its agent cannot start.
    fs::rename(here.join("volume-1"), here.join("gone")).unwrap();
    let verified = agents("verify", &["--json"]);
    let found = json(&verified);
    assert_eq!((verified.code(), &found["whole"]), (1, &Value::Bool(false)), "{verified:#?}");
    assert_eq!(found["account"]["incomplete_hosts"], serde_json::json!([fleet.hosts[1]]), "{found:#}");
    assert_eq!(found["account"]["faults"], serde_json::json!([]), "{found:#}");
    let shown = agents("info", &[]);
    assert!(shown.code() == 1 && shown.stdout.contains("NOT HERE"), "{shown:#?}");
    until("agents are left", || fleet.gone());
}

#[test]
fn a_fleet_without_hosts_of_the_set_is_refused() {
    let place = directory();
    let here = place.path().canonicalize().unwrap();
    fleet(&here, "other");
    let set = r#"{"format": "keepup-set", "version": 1, "name": "run-1", "run": 1,
        "id": "0123456789abcdef0123456789abcdef", "created_unix_ns": 1, "fleet": "hall",
        "recordings": [{"host": "daq1", "id": null, "directories": ["/data/run-1"], "end": "finished",
        "why": null}], "moves": []}"#;
    fs::write(here.join("keepup-set.json"), set).unwrap();
    let run = keepup(&here, &["verify", "keepup-set.json", "--fleet", "fleet.toml"]);
    assert!(run.code() == 2 && run.stderr.contains("it has no host of the recording set"), "{run:#?}");
    assert!(run.stderr.contains("hint: hosts of the set: daq1"), "{run:#?}");
    let run = keepup(&here, &["verify", "volume-0", "--fleet", "fleet.toml"]);
    assert!(run.code() == 2 && run.stderr.contains("this is not a recording set"), "{run:#?}");
    let at = ["--at", "daq1=/mnt"];
    let run = keepup(&here, &[&["info", "keepup-set.json", "--fleet", "fleet.toml"], &at[..]].concat());
    assert!(run.code() == 2 && run.stderr.contains("cannot be used with"), "{run:#?}");
}
