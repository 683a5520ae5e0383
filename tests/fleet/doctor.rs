//! `keepup doctor --fleet`: hosts over loopback, and in namespaces with links of different MTU.
use std::path::Path;
use std::sync::PoisonError;

use keepup_testkit::Program;
use keepup_testkit::root::{self, SmallDisk};
use keepup_testkit::switch::Switch;
use serde_json::Value;

use super::local::{SOURCE_PORTS, launcher, sources_and_recorders};
use crate::common::{directory, json, keepup, squeezed};

/// The finding about `setting`, whose hosts are these.
fn finding<'a>(result: &'a Value, setting: &str, hosts: &[&str]) -> &'a Value {
    let all = result["findings"].as_array().unwrap();
    let is_wanted = |found: &&Value| {
        found["finding"]["setting"] == setting && found["hosts"] == serde_json::to_value(hosts).unwrap()
    };
    let found = all.iter().find(is_wanted);
    &found.unwrap_or_else(|| panic!("no {setting} of {hosts:?} in {result:#}"))["finding"]
}

#[test]
fn all_hosts_of_a_fleet_are_checked() {
    let _ports = SOURCE_PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    let place = directory();
    let here = place.path();
    sources_and_recorders(here, "check");
    let run = keepup(here, &["doctor", "csl", "--fleet", "fleet.toml", "--json"]);
    let found = json(&run);
    let harmful = found["counts"]["harmful"].as_u64().unwrap();
    assert_eq!(run.code(), i32::from(harmful > 0), "{run:#?}");
    let hosts = found["hosts"].as_array().unwrap();
    let names: Vec<_> = hosts.iter().map(|host| host["host"].as_str().unwrap()).collect();
    assert_eq!(names, ["s0", "r0", "s1", "r1", "x"]);
    for host in hosts {
        assert_eq!(host["failure"], Value::Null, "{host:#}");
        let facts = &host["facts"];
        assert_eq!(facts["tool_version"], env!("CARGO_PKG_VERSION"), "{host:#}");
        assert_eq!(facts["interfaces"][0]["name"], "lo", "{host:#}");
        // One clock on one machine: the error of the offset must cover it.
        let offset = host["clock_offset_ns"].as_i64().unwrap();
        assert!(offset.unsigned_abs() <= host["clock_error_ns"].as_u64().unwrap(), "{host:#}");
        let is_source = host["role"] == "source";
        assert_eq!(facts["volumes"].as_array().unwrap().len(), usize::from(!is_source));
        let paths = facts["paths"].as_array().unwrap();
        assert_eq!(paths.len(), if is_source { 0 } else { 2 });
        for path in paths {
            let failed_or_small =
                !path["failure"].is_null() || path["from_source_bytes"].as_u64() < Some(1_500);
            assert!(!failed_or_small && path["to_source_bytes"] == path["from_source_bytes"], "{path:#}");
        }
    }
    for setting in ["connection to s0", "MTU of the path to s1", "MTU towards s0"] {
        assert_eq!(finding(&found, setting, &["r0", "r1", "x"])["severity"], "fine");
    }
    finding(&found, "version of keepup", &["s0", "r0", "s1", "r1", "x"]);
    // The check writes nothing.
    for recorder in ["r0", "r1"] {
        assert_eq!(std::fs::read_dir(here.join(recorder)).unwrap().count(), 0);
    }
}

#[test]
fn a_check_without_a_source_still_judges_the_recorders() {
    let place = directory();
    let here = place.path();
    sources_and_recorders(here, "nosource");
    let file = std::fs::read_to_string(here.join("fleet.toml")).unwrap();
    let lines = "role = \"source\"\nlauncher = [\"sh\", \"-c\", \"exit 7 # {host} {agent}\"]";
    std::fs::write(here.join("fleet.toml"), file.replace("role = \"source\"", lines)).unwrap();
    let run = keepup(here, &["doctor", "--fleet", "fleet.toml", "--json"]);
    assert_eq!(run.code(), 1, "{run:#?}");
    let found = json(&run);
    for host in found["hosts"].as_array().unwrap() {
        assert_eq!(host["facts"].is_null(), host["role"] == "source", "{host:#}");
    }
    let why = finding(&found, "agent", &["s0", "s1"])["why"].as_str().unwrap();
    assert!(why.contains("exit status: 7"), "{why}");
}

/// Hosts on a switch: a source and a recorder with an MTU of 9000, a recorder with 1500 and a full volume,
/// and a host whose agent cannot start.
fn site(here: &Path, name: &str, small: &SmallDisk) -> Switch {
    let switch = Switch::create(name, 4).unwrap();
    for host in [1, 2] {
        switch.set_mtu(host, 9_000).unwrap();
    }
    std::fs::create_dir_all(here.join("data")).unwrap();
    let netns = |host: usize, role: &str, more: String| {
        format!("address = \"{}\"\nrole = \"{role}\"\n{more}\n", switch.host(host))
    };
    let data = |host: usize| format!("data = \"{}\"", Switch::address(host));
    let volumes = |path: &Path| format!("volumes = [{path:?}]");
    let broken = "launcher = [\"sh\", \"-c\", \"echo no route to {host} >&2; exit 255 # {agent}\"]";
    let hosts = [
        ("cam", netns(1, "source", data(1))),
        ("jumbo", netns(2, "recorder", volumes(&here.join("data")))),
        ("plain", netns(3, "recorder", volumes(small.path()))),
        ("gone", format!("role = \"spare\"\n{}\n{broken}\n", volumes(&here.join("data")))),
    ];
    let hosts: String = hosts.map(|(name, text)| format!("[[host]]\nname = \"{name}\"\n{text}")).concat();
    let listen = format!("{}:7650", Switch::address(0));
    let launcher = launcher().replace("local", "netns");
    let text = format!("name = \"site\"\nlisten = \"{listen}\"\n{launcher}\n{hosts}");
    std::fs::write(here.join("fleet.toml"), text).unwrap();
    switch
}

#[test]
#[ignore = "system"]
fn small_packets_a_full_volume_and_a_host_without_agent_are_found() {
    if !root::allowed("small_packets_a_full_volume_and_a_host_without_agent_are_found") {
        return;
    }
    let place = directory();
    let here = place.path();
    let small = SmallDisk::mount(&here.join("small"), 16).unwrap();
    let switch = site(here, &format!("ku{}mtu", std::process::id() % 100_000), &small);
    let doctor = |more: &[&str]| {
        let start = [
            "netns",
            "exec",
            switch.host(0),
            env!("CARGO_BIN_EXE_keepup"),
            "doctor",
            "--fleet",
            "fleet.toml",
        ];
        Program::start("ip", &[&start[..], more].concat(), here).wait()
    };
    let run = doctor(&["--json"]);
    assert_eq!(run.code(), 1, "{run:#?}");
    let found = json(&run);
    let path = |host: usize| &found["hosts"][host]["facts"]["paths"][0];
    for (host, mtu) in [(1, 9_000), (2, 1_500)] {
        assert_eq!(path(host)["failure"], Value::Null, "{found:#}");
        let numbers = ["mtu", "source_mtu", "to_source_bytes", "from_source_bytes"];
        let numbers = numbers.map(|key| path(host)[key].as_u64());
        assert_eq!(numbers, [mtu, 9_000, 1_500, 1_500].map(Some), "{found:#}");
    }
    // The switch carries 1500 bytes.
    let switch_mtu = finding(&found, "MTU of the path to cam", &["jumbo"]);
    assert_eq!((&switch_mtu["severity"], &switch_mtu["value"]), (&"harmful".into(), &"1500 bytes".into()));
    assert_eq!(finding(&found, "MTU of the path to cam", &["plain"])["severity"], "fine");
    let own = finding(&found, "MTU towards cam", &["plain"]);
    assert_eq!(own["command"], "ip link set dev eth mtu 9000   # on plain");
    let space = finding(&found, &format!("{}: free space", small.path().display()), &["plain"]);
    assert_eq!(space["severity"], "worth_a_look");
    let absent = finding(&found, "agent", &["gone"]);
    assert!(absent["why"].as_str().unwrap().ends_with("its agent said: no route to gone"), "{absent}");

    // The page names the same hosts and fits a terminal.
    let run = doctor(&[]);
    let page = squeezed(&run.stdout);
    assert!(page.contains("HARMFUL MTU of the path to cam host jumbo is 1500 bytes"), "{run:#?}");
    assert!(page.contains("HARMFUL agent host gone"), "{run:#?}");
    let is_command = |line: &str| line.trim_start().starts_with("command");
    let wide: Vec<_> =
        run.stdout.lines().filter(|line| line.chars().count() > 80 && !is_command(line)).collect();
    assert!(wide.is_empty(), "{wide:#?}");
}

#[test]
#[ignore = "system"]
fn a_source_behind_a_firewall_is_found() {
    if !root::allowed("a_source_behind_a_firewall_is_found") {
        return;
    }
    let place = directory();
    let here = place.path();
    let small = SmallDisk::mount(&here.join("small"), 16).unwrap();
    let switch = site(here, &format!("ku{}fw", std::process::id() % 100_000), &small);
    switch.prohibit(3, 7_614).unwrap();
    let arguments = [
        "netns",
        "exec",
        switch.host(0),
        env!("CARGO_BIN_EXE_keepup"),
        "doctor",
        "--fleet",
        "fleet.toml",
        "--json",
    ];
    let run = Program::start("ip", &arguments, here).wait();
    let found = json(&run);
    assert_eq!(run.code(), 1, "{run:#?}");
    let refused = finding(&found, "connection to cam", &["plain"]);
    assert_eq!((&refused["severity"], &refused["wanted"]), (&"harmful".into(), &"10.214.0.2:7614".into()));
    assert_eq!(finding(&found, "connection to cam", &["jumbo"])["severity"], "fine");
}
