//! `keepup net` beside iperf3: where the rate is given, by a shaped cable or by the sender, both say the
//! same.
use std::path::Path;
use std::time::{Duration, Instant};

use keepup_testkit::Program;
use keepup_testkit::cable::Cable;
use keepup_testkit::root::{allowed, skip};
use keepup_testkit::rule::{FOUR_OF_FOURTEEN, good_if};
use serde_json::Value;

use crate::common::{directory_alone, json};
use crate::net::{across, done, net, number, serve, wired};

/// How far the two may be apart. Defect: keepup's figure is a tenth off, because it counts headers, leaves
/// out a part of the time, or gives up a part of what is due.
const AGREEMENT: f64 = 0.04;
const PORT: &str = "5213";

/// Whether iperf3 is there, or a visible skip.
fn has_iperf3(test: &str) -> bool {
    let there = std::process::Command::new("iperf3").arg("--version").output().is_ok();
    if !there {
        skip(test, "needs iperf3");
    }
    there
}

/// Bytes per second that iperf3's receiver had: `servers` and `clients` are what their commands begin with.
fn iperf3(here: &Path, servers: &[&str], clients: &[&str], address: &str, flags: &[&str]) -> f64 {
    let start = |at: &[&str], arguments: &[&str]| {
        let all = [at, &["iperf3"], arguments].concat();
        Program::start(all[0], &all[1..], here)
    };
    let server = start(servers, &["-s", "-1", "-p", PORT, "-B", address]);
    let client = [&["-c", address, "-p", PORT, "-J", "-t", "2"], flags].concat();
    // It does not say when it listens.
    let begin = Instant::now();
    let report = loop {
        let report: Value = json(&start(clients, &client).wait());
        if report["error"].is_null() {
            break report;
        }
        assert!(begin.elapsed() < Duration::from_secs(10), "{report:#}");
        std::thread::sleep(Duration::from_millis(100));
    };
    assert_eq!(server.wait().code(), 0);
    match report.pointer("/end/sum/lost_packets") {
        Some(_) => {
            let sum = &report["end"]["sum"];
            let arrived = 1.0 - number(sum, "/lost_packets") / number(sum, "/packets");
            number(sum, "/bytes") / number(sum, "/seconds") * arrived
        }
        None => number(&report, "/end/sum_received/bytes") / number(&report, "/end/sum_received/seconds"),
    }
}

/// Bytes per second that keepup's receivers had, all flows.
fn goodput(found: &Value) -> f64 {
    let flows = found["runs"][0]["flows"].as_array().unwrap();
    flows.iter().map(|f| number(f, "/received/bytes") / number(f, "/received/seconds")).sum()
}

/// Measures pairs, one after the other.
fn agree(what: &str, ours: impl Fn() -> f64, theirs: impl Fn() -> f64) {
    FOUR_OF_FOURTEEN.check(&format!("{what}, bytes per second by keepup and by iperf3"), || {
        let (kept, reached) = (ours(), theirs());
        good_if((kept / reached - 1.0).abs() < AGREEMENT, (kept, reached))
    });
}

#[test]
#[ignore = "measured"]
fn over_a_shaped_cable_both_say_the_same() {
    let test = "over_a_shaped_cable_both_say_the_same";
    let place = directory_alone();
    if !(allowed(test) && has_iperf3(test)) {
        return;
    }
    let Some((cable, _server)) = wired(test, &place, "p") else { return };
    cable.shape(0, 200).unwrap();
    let peer = |flags: &[&str]| iperf3(place.path(), &cable.at(1), &cable.at(0), Cable::address(1), flags);
    let ours = |kind: &str, more: &[&str]| {
        let more = [&["--time", "2 s", "--ramp", "1 s"], more].concat();
        done(&across(&place, &cable, kind, &more).wait())
    };
    // Not with what probes the path now and then, as bbr does.
    let reno = ["--congestion", "reno"];
    agree("TCP, 1 flow", || goodput(&ours("tcp", &reno)), || peer(&["-C", "reno"]));
    agree(
        "TCP, 4 flows",
        || goodput(&ours("tcp", &[&reno[..], &["--flows", "4"]].concat())),
        || peer(&["-C", "reno", "-P", "4"]),
    );
    agree(
        "UDP below the link's rate",
        || goodput(&ours("udp", &["--rate", "20 MB/s"])),
        || peer(&["-u", "-l", "1400", "-b", "160M"]),
    );
    agree(
        "UDP above it",
        || goodput(&ours("udp", &["--rate", "30 MB/s"])),
        || peer(&["-u", "-l", "1400", "-b", "240M"]),
    );
}

#[test]
#[ignore = "measured"]
fn over_loopback_both_keep_the_rate_that_is_asked_for() {
    let test = "over_loopback_both_keep_the_rate";
    if !has_iperf3(test) {
        return;
    }
    let place = directory_alone();
    let (_server, address) = serve(place.path(), "127.0.0.1:0");
    let ours = |kind: &str, more: &[&str]| {
        let more = [&["--time", "2 s"], more].concat();
        done(&net(place.path(), kind, &[&address], &more))
    };
    let peer = |flags: &[&str]| iperf3(place.path(), &[], &[], "127.0.0.1", flags);
    agree("TCP", || goodput(&ours("tcp", &["--rate", "100 MB/s"])), || peer(&["-b", "800M"]));
    agree(
        "UDP",
        || goodput(&ours("udp", &["--rate", "20 MB/s"])),
        || peer(&["-u", "-l", "1400", "-b", "160M"]),
    );
}
