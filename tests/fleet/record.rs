//! `record --fleet`: recorders in network namespaces of their own, which are killed, paused or cut off.
use std::path::Path;

use keepup_testkit::disk::FaultyDisk;
use keepup_testkit::switch::Switch;
use keepup_testkit::{Program, Run, root};
use serde_json::Value;

use super::Fleet;
use crate::common::{FILE_SERVER, TestDirectory, directory, json, keepup, start, until};

/// Hosts of a site: two recorders and a spare. The controller is host 0, the source host 4 of the switch.
const HOSTS: [(&str, &str); 3] = [("r0", "recorder"), ("r1", "recorder"), ("x", "spare")];
const SOURCE: usize = 4;

/// A recording on two recorders and a spare, and a source that sends to it.
struct Site {
    switch: Switch,
    place: TestDirectory,
    fleet: Fleet,
    record: Program,
    source: Program,
}

/// Text of a host of the fleet file, with a volume of its own.
pub(super) fn host(here: &Path, name: &str, role: &str, more: &str) -> String {
    let volume = here.join(format!("volume-{name}"));
    std::fs::create_dir_all(&volume).unwrap();
    format!("[[host]]\nname = \"{name}\"\nrole = \"{role}\"\nvolumes = [{volume:?}]\n{more}\n")
}

/// A site whose source has begun to send; none without root.
fn site(test: &str, seconds: u32, patience: &str) -> Option<Site> {
    root::allowed(test).then(|| site_in(directory(), (test, ""), seconds, patience))
}

/// A machine of tests may stall for longer than the default lease.
pub(super) const LEASE: &str = "[timing]\nlease = \"2 s\"\n";
/// Where no host is lost.
const LONG_LEASE: &str = "[timing]\nlease = \"20 s\"\norphan = \"30 s\"\n";

/// A site in `place` with more `timing`; volumes that exist there are used.
fn site_in(place: TestDirectory, (test, timing): (&str, &str), seconds: u32, patience: &str) -> Site {
    let here = place.path().canonicalize().unwrap();
    let switch = Switch::create(&format!("ku{}{test}", std::process::id() % 100_000), 5).unwrap();
    let keepup = env!("CARGO_BIN_EXE_keepup");
    let mut text = format!(
        "name = \"{test}\"\nlisten = \"{}:7650\"\n{LEASE}{timing}[launcher]\npreset = \"netns\"\n",
        Switch::address(0)
    );
    text.push_str(&format!("program = \"{keepup}\"\n"));
    let names = HOSTS.map(|(name, _)| format!("{test}-{}-{name}", std::process::id()));
    for (number, (name, (_, role))) in names.iter().zip(HOSTS).enumerate() {
        let address = Switch::address(number + 1);
        let more = format!("address = \"{}\"\ndata = \"{address}\"", switch.host(number + 1));
        text.push_str(&host(&here, name, role, &more));
    }
    std::fs::write(here.join("fleet.toml"), text).unwrap();
    let fleet = Fleet { hosts: names.to_vec() };
    let arguments = ["netns", "exec", switch.host(0), keepup, "record", "--fleet", "fleet.toml"];
    let flags = ["--fleet-output", "runs", "--segment", "64 MB", "--json"];
    let mut record = Program::start("ip", &[&arguments[..], &flags].concat(), &here);
    record.line(&format!("recording {test}-run-1 on 2 recorders with 1 spare in reserve"));
    let [a, b] = [1, 2].map(|host| format!("{}:7611", Switch::address(host)));
    let time = format!("{seconds}s");
    let arguments =
        ["netns", "exec", switch.host(SOURCE), keepup, "source", "romanis", "--to", &a, "--to", &b];
    let flags = ["--streams", "16", "--event", "20 kB", "--rate", "8 MB/s", "--time", &time, "--json"];
    let flags = [&flags[..], &["--recorder-timeout", patience]].concat();
    let source = Program::start("ip", &[&arguments[..], &flags].concat(), &here);
    let counted = |host: usize| events(&here, host);
    until("no events arrive", || counted(0) > 0 && counted(1) > 0);
    Site { switch, place, fleet, record, source }
}

/// Events that a recorder has counted, from the controller's status.
fn events(here: &Path, host: usize) -> u64 {
    let run = keepup(here, &["fleet", "status", "fleet.toml", "--json"]);
    json(&run)["hosts"][host]["report"]["counters"]["events"].as_u64().unwrap_or(0)
}

/// What is left of a site at the end.
struct Ended {
    place: TestDirectory,
    record: Run,
    /// Report of the source.
    sent: Value,
}

impl Site {
    /// Waits for the source and for the recording, which ends by itself.
    fn end(self) -> Ended {
        let Self { switch, place, fleet, record, source } = self;
        let source = source.wait();
        assert_eq!(source.code(), 0, "{source:#?}");
        let record = record.wait();
        until("agents are left", || fleet.gone());
        drop(switch);
        Ended { place, sent: json(&source), record }
    }
}

impl Ended {
    /// Recovers what is not sealed, and compares the recordings with what the source has sent.
    fn check(&self) -> Value {
        let here = self.place.path();
        let recovered = keepup(here, &["recover", "runs/run-1", "--json"]);
        assert_eq!(recovered.code(), 0, "{recovered:#?}");
        let verified = keepup(here, &["verify", "runs/run-1", "--json"]);
        let found = json(&verified);
        assert!(verified.code() == 0 && found["whole"] == true, "{verified:#?}");
        let sum = |key: &str| {
            let streams = found["account"]["streams"].as_object().unwrap().values();
            streams.map(|stream| stream[key].as_u64().unwrap_or(0)).sum::<u64>()
        };
        let sent: u64 = self.sent["sent"]["events"].as_u64().unwrap();
        assert_eq!((sum("events"), sum("different"), sum("unexplained")), (sent, 0, 0), "{found:#}");
        assert_eq!(found["account"]["streams"].as_object().unwrap().len(), 16);
        found
    }

    fn moves(&self) -> Vec<(String, Option<String>)> {
        let report = json(&self.record);
        let moves = report["moves"].as_array().unwrap().iter();
        let name = |value: &Value| value.as_str().map(str::to_owned);
        moves.map(|moved| (name(&moved["from"]).unwrap(), name(&moved["to"]))).collect()
    }
}

/// Writes a fleet file for these hosts on this machine.
pub(super) fn write_local(here: &Path, name: &str, launcher: &str, hosts: &[(impl AsRef<str>, &str)]) {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let program = env!("CARGO_BIN_EXE_keepup");
    let mut text = format!("name = \"{name}\"\nlisten = \"{free}\"\n{launcher}\nprogram = \"{program}\"\n");
    for (name, role) in hosts {
        text.push_str(&host(here, name.as_ref(), role, "data = \"127.0.0.1\""));
    }
    std::fs::write(here.join("fleet.toml"), text).unwrap();
}

/// Name of a fleet that no other process has: agents claim their hosts by the name of the fleet.
pub(super) fn unique(test: &str) -> String {
    format!("{test}{}", std::process::id())
}

/// The first of three ports that other tests do not use.
fn free_port(test: u32) -> String {
    (20_000 + (std::process::id() * 8 + test * 4) % 10_000).to_string()
}

#[test]
fn streams_are_distributed_over_the_recorders() {
    let place = directory();
    let here = place.path().canonicalize().unwrap();
    let name = unique("dealt");
    write_local(&here, &name, &format!("{LONG_LEASE}[launcher]\npreset = \"local\""), &HOSTS);
    let port = free_port(0);
    let flags = ["--fleet-output", "runs", "--fleet-port", &port, "--meta", "sample=quartz", "--json"];
    let mut record = start(&here, &[&["record", "--fleet", "fleet.toml"], &flags[..]].concat());
    record.line(&format!("recording {name}-run-1 on 2 recorders with 1 spare in reserve"));
    let to = format!("127.0.0.1:{port}");
    let source = ["source", "romanis", "--to", &to, "--to", &to, "--streams", "16", "--event", "20 kB"];
    let sent = keepup(&here, &[&source[..], &["--rate", "8 MB/s", "--time", "1s", "--json"]].concat());
    assert_eq!(sent.code(), 0, "{sent:#?}");
    let record = record.wait();
    assert_eq!(record.code(), 0, "{record:#?}");
    let streams: Vec<u64> = json(&record)["recorders"].as_array().unwrap()[..2]
        .iter()
        .map(|recorder| recorder["outcome"]["streams"].as_u64().unwrap())
        .collect();
    assert!(streams.iter().sum::<u64>() == 16 && streams.iter().all(|&streams| streams > 0), "{streams:?}");
    let ended = Ended { place, sent: json(&sent), record };
    let found = ended.check();
    let duplicates = |stream: &Value| stream["duplicates"].as_u64().unwrap();
    assert!(found["account"]["streams"].as_object().unwrap().values().all(|stream| duplicates(stream) == 0));
    let info = keepup(&here, &["info", "runs/run-1", "--json"]);
    assert!(info.code() == 0 && info.stdout.matches("\"quartz\"").count() == 2, "{info:#?}");
}

/// A FIFO with a writer. Reading it blocks until the writer is dropped.
fn gate(path: &Path) -> std::fs::File {
    let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
    // Opened for writing alone, it would wait for a reader.
    std::fs::File::options().read(true).write(true).open(path).unwrap()
}

/// The agents do not notice that their controller is gone, as if its machine had failed. The second
/// controller has another address.
#[test]
fn a_recording_that_is_started_again_waits_for_the_agents_of_the_first() {
    let place = directory();
    let here = place.path().canonicalize().unwrap();
    let name = unique("again");
    let path = here.join("gate");
    let gate = gate(&path);
    let open = format!("exec 3<{}; (head -n 1; cat <&3) | {{agent}} # {{host}}", path.display());
    let timing = "[timing]\nlease = \"20 s\"\norphan = \"1 h\"\n[launcher]\njoin_time = \"300 s\"\n";
    write_local(&here, &name, &format!("{timing}command = [\"sh\", \"-c\", \"{open}\"]"), &HOSTS);
    let port = free_port(1);
    let command = ["record", "--fleet", "fleet.toml", "--fleet-output", "runs", "--fleet-port", &port];
    let mut first = start(&here, &command);
    first.line(&format!("recording {name}-run-1 on 2 recorders with 1 spare in reserve"));
    first.signal("KILL");
    first.wait();
    write_local(&here, &name, &format!("{timing}preset = \"local\""), &HOSTS);
    let mut second = start(&here, &command);
    second.line("r0: waiting until the agent of an earlier controller has ended");
    drop(gate);
    second.line(&format!("recording {name}-run-2 on 2 recorders with 1 spare in reserve"));
    assert_eq!(keepup(&here, &["fleet", "down", "fleet.toml"]).code(), 0);
    let second = second.wait();
    assert_eq!(second.code(), 0, "{second:#?}");
}

#[test]
#[ignore = "system"]
fn a_killed_recorder_loses_nothing_that_was_acknowledged() {
    let Some(site) = site("reckill", 6, "30 s") else { return };
    site.fleet.signal(0, "KILL");
    let [killed, spare] = [0, 2].map(|host| site.fleet.hosts[host].clone());
    let ended = site.end();
    assert_eq!(ended.record.code(), 1, "{:#?}", ended.record);
    assert_eq!(ended.moves(), [(killed, Some(spare))]);
    ended.check();
}

#[test]
#[ignore = "system"]
fn the_streams_of_a_paused_recorder_move_to_the_spare() {
    let Some(site) = site("recpause", 6, "30 s") else { return };
    site.fleet.signal(1, "STOP");
    let [paused, spare] = [1, 2].map(|host| site.fleet.hosts[host].clone());
    until("the spare gets no events", || events(site.place.path(), 2) > 0);
    site.fleet.signal(1, "CONT");
    let ended = site.end();
    assert_eq!((ended.record.code(), ended.moves()), (1, vec![(paused, Some(spare))]));
    ended.check();
}

#[test]
#[ignore = "system"]
fn the_streams_of_a_recorder_that_is_cut_off_move_to_the_spare() {
    let Some(site) = site("reccut", 6, "30 s") else { return };
    site.switch.unplug(1).unwrap();
    until("the spare gets no events", || events(site.place.path(), 2) > 0);
    site.switch.plug(1).unwrap();
    let [cut, spare] = [0, 2].map(|host| site.fleet.hosts[host].clone());
    let ended = site.end();
    assert_eq!(ended.moves(), [(cut, Some(spare))]);
    ended.check();
}

/// TCP continues up to twice the time of the cut later.
#[test]
#[ignore = "system"]
fn a_controller_that_is_cut_off_and_returns_continues_the_recording() {
    if !root::allowed("reclead") {
        return;
    }
    let mut site = site_in(directory(), ("reclead", "orphan = \"60 s\"\n"), 8, "60 s");
    site.switch.unplug(0).unwrap();
    site.record.line("warning: no heartbeat from any host for");
    site.switch.plug(0).unwrap();
    let ended = site.end();
    assert_eq!((ended.record.code(), ended.moves()), (0, Vec::new()), "{:#?}", ended.record);
    ended.check();
}

#[test]
#[ignore = "system"]
fn the_streams_of_a_recorder_whose_volume_fails_move_with_all_their_events() {
    if !root::allowed("recdisk") {
        return;
    }
    let place = directory();
    let here = place.path().canonicalize().unwrap();
    let name = format!("volume-recdisk-{}-r0", std::process::id());
    let mut disk = FaultyDisk::mount(&here.join(name), FILE_SERVER).unwrap();
    let site = site_in(place, ("recdisk", ""), 6, "30 s");
    disk.break_down().unwrap();
    let [failed, spare] = [0, 2].map(|host| site.fleet.hosts[host].clone());
    let ended = site.end();
    assert_eq!(ended.record.code(), 1, "{:#?}", ended.record);
    assert_eq!(ended.moves(), [(failed, Some(spare))]);
    // The failed volume takes no journal either: its recording cannot be recovered, but read.
    let verified = keepup(ended.place.path(), &["verify", "runs/run-1", "--json"]);
    let found = json(&verified);
    let streams = found["account"]["streams"].as_object().unwrap().values();
    let events: u64 = streams.map(|stream| stream["events"].as_u64().unwrap()).sum();
    assert_eq!(Some(events), ended.sent["sent"]["events"].as_u64(), "{found:#}");
    assert_eq!(ended.sent["fleet"]["lost_at_recorders"], 0, "{:#}", ended.sent);
    drop(disk);
}

#[test]
#[ignore = "system"]
fn a_run_whose_agents_all_end_is_not_whole() {
    let Some(site) = site("recterm", 60, "2 s") else { return };
    let Site { switch, place, fleet, record, source } = site;
    (0..3).for_each(|host| fleet.signal(host, "TERM"));
    let record = record.wait();
    assert_eq!(record.code(), 1, "{record:#?}");
    assert_eq!(json(&record)["ended_early"], "no recorder is left", "{record:#?}");
    source.signal("INT");
    source.wait();
    drop((switch, place));
}

#[test]
#[ignore = "system"]
fn what_was_received_before_the_controller_was_killed_is_durable() {
    let Some(site) = site("recboss", 60, "2 s") else { return };
    let Site { switch, place, fleet, record, source } = site;
    // The kernel hangs up a stopped agent whose controller has ended.
    fleet.signal(0, "STOP");
    record.signal("KILL");
    until("agents are left", || fleet.gone());
    source.signal("INT");
    let source = source.wait();
    drop(switch);
    let here = place.path();
    // The agents ended their recordings in order; the set says that nobody reported the end.
    let verified = keepup(here, &["verify", "runs/run-1", "--json"]);
    let found = json(&verified);
    assert_eq!(found["whole"], true, "{verified:#?}");
    let durable: u64 = found["account"]["streams"]
        .as_object()
        .unwrap()
        .values()
        .map(|stream| stream["events"].as_u64().unwrap())
        .sum();
    let acknowledged = json(&source)["durable"]["events"].as_u64().unwrap();
    assert!(durable >= acknowledged && acknowledged > 0, "{durable} {acknowledged} {source:#?}");
    assert_eq!(record.wait().code(), -1);
}
