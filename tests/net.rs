//! `keepup net`: what both ends count fits together, over loopback and between two namespaces.
use std::path::Path;

use keepup_testkit::cable::Cable;
use keepup_testkit::root::{allowed, skip};
use keepup_testkit::{Program, Run};
use serde_json::Value;

use crate::common::{Place, directory, directory_alone, json, keepup, secret_file, start};

pub(crate) const TOKEN: &str = "a-token-for-tests";
const KEEPUP: &str = env!("CARGO_BIN_EXE_keepup");

/// A server on loopback, and where it listens.
pub(crate) fn serve(here: &Path, listen: &str) -> (Program, String) {
    secret_file(here, "token", TOKEN);
    let mut server = start(here, &["net", "serve", "--listen", listen, "--token-file", "token"]);
    let address = server.address().to_string();
    (server, address)
}

/// A test with a server, to its end.
pub(crate) fn net(here: &Path, kind: &str, servers: &[&str], more: &[&str]) -> Run {
    keepup(here, &command(kind, servers, more))
}

pub(crate) fn command<'a>(kind: &'a str, servers: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    let head = ["net", kind, "--token-file", "token", "--json", "--ramp", "200 ms"];
    [&head[..], servers, more].concat()
}

/// Two namespaces with a server in the second, or a visible skip.
pub(crate) fn wired(test: &str, place: &Place, name: &str) -> Option<(Cable, Program)> {
    if !allowed(test) {
        return None;
    }
    let cable = match Cable::lay(&format!("ku{name}{}", std::process::id())) {
        Ok(cable) => cable,
        Err(why) => {
            skip(test, &why);
            return None;
        }
    };
    secret_file(place.path(), "token", TOKEN);
    let arguments = ["net", "serve", "--listen", Cable::address(1), "--token-file", "token"];
    let mut server =
        Program::start("ip", &[&cable.at(1)[1..], &[KEEPUP], &arguments[..]].concat(), place.path());
    server.address();
    Some((cable, server))
}

/// A test from the first namespace to the second, to its end.
pub(crate) fn across(place: &Place, cable: &Cable, kind: &str, more: &[&str]) -> Program {
    let all = [&cable.at(0)[1..], &[KEEPUP], &command(kind, &[Cable::address(1)], more)[..]].concat();
    Program::start("ip", &all, place.path())
}

pub(crate) fn done(run: &Run) -> Value {
    assert_eq!(run.code(), 0, "{run:#?}");
    json(run)
}

pub(crate) fn number(value: &Value, pointer: &str) -> f64 {
    value.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {pointer} in {value:#}"))
}

fn flows(run: &Value) -> &Vec<Value> {
    run["flows"].as_array().unwrap()
}

/// What holds of every run that came to its end: parts make up wholes, and nothing arrives that was not sent.
fn consistent(run: &Value) {
    for flow in flows(run) {
        for side in ["sent", "received"] {
            let tenths = flow[side]["tenths"].as_array().unwrap().iter().map(|t| t.as_f64().unwrap());
            assert_eq!(tenths.sum::<f64>(), number(flow, &format!("/{side}/bytes")), "{flow:#}");
        }
        let (sent, received) = (number(flow, "/sent/bytes"), number(flow, "/received/bytes"));
        // The windows are not the same to the microsecond, and buffers lie between.
        assert!(received > 0.0 && received < sent * 1.5 + 80e6, "{flow:#}");
    }
    for end in run["ends"].as_array().unwrap() {
        assert!(number(end, "/cpu_seconds") > 0.0 && number(end, "/seconds") > 0.2, "{end:#}");
        assert!(number(end, "/softirq_seconds") <= number(end, "/machine_cpu_seconds"), "{end:#}");
    }
}

/// What holds of every ledger.
fn balanced(ledger: &Value) {
    let of = |key: &str| ledger[key].as_u64().unwrap();
    assert_eq!(of("due"), of("sent") + of("unsent"), "{ledger:#}");
    assert_eq!(of("sent"), of("received") + of("lost"), "{ledger:#}");
    let losses = ledger["losses"].as_array().unwrap();
    let explained: u64 = losses.iter().map(|loss| loss["datagrams"].as_u64().unwrap()).sum();
    assert_eq!(of("lost"), explained + of("unexplained"), "{ledger:#}");
    assert_eq!((of("duplicates"), of("foreign")), (0, 0), "{ledger:#}");
}

#[test]
fn flows_of_both_directions_over_both_protocols() {
    let place = directory();
    let here = place.path();
    for listen in ["127.0.0.1:0", "[::1]:0"] {
        let (server, address) = serve(here, listen);
        let both = ["--time", "1 s", "--direction", "both", "--flows", "2", "--probe", "50"];
        let found = done(&net(here, "tcp", &[&address], &both));
        let run = &found["runs"][0];
        consistent(run);
        let directions: Vec<bool> = flows(run).iter().map(|f| f["from_client"].as_bool().unwrap()).collect();
        assert_eq!(directions, [true, true, false, false]);
        assert!(number(run, "/latency/answered") > 20.0 && run["ledger"].is_null(), "{run:#}");
        assert_eq!(run["ends"].as_array().unwrap().len(), 2);
        let paced = ["--time", "1 s", "--direction", "receive", "--rate", "8 MB/s", "--load", "cpu=0.1"];
        let found = done(&net(here, "udp", &[&address], &paced));
        let run = &found["runs"][0];
        consistent(run);
        balanced(&run["ledger"]);
        let seconds = number(run, "/flows/0/sent/seconds");
        let (due, sent) = (number(run, "/ledger/due") * 1400.0, number(run, "/flows/0/sent/bytes"));
        assert!(run["loads"][0]["spec"] == "cpu=0.1" && number(run, "/loads/0/achieved") > 0.0, "{run:#}");
        // What came late on a busy machine was given up, and is in the ledger.
        assert!(due > 0.9 * 8e6 * seconds && sent < 1.1 * 8e6 * seconds, "{run:#}");
        assert_eq!(number(run, "/ledger/lost"), 0.0, "{run:#}");
        server.signal("TERM");
        let ended = server.wait();
        assert!(ended.code() == 0 && ended.stderr.contains("5 flows over TCP"), "{ended:#?}");
    }
}

#[test]
fn all_settings_are_measured_and_the_smallest_good_one_is_named() {
    let place = directory();
    let (_server, address) = serve(place.path(), "127.0.0.1:0");
    let grid = ["--time", "300 ms", "--message", "1 KiB,64 KiB", "--receive-buffer", "64 KiB,1 MiB"];
    let out = ["--out", "results", "--repeats", "2"];
    let found = done(&net(place.path(), "tcp", &[&address], &[&grid[..], &out].concat()));
    let runs = found["runs"].as_array().unwrap();
    let names: Vec<&str> = runs.iter().map(|run| run["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 8);
    assert_eq!(names[..4], names[4..], "the repeats are made in turns");
    let text =
        keepup(place.path(), &[&["net", "tcp", "--token-file", "token", &address], &grid[..]].concat())
            .stdout;
    let smallest = text.lines().find(|line| line.starts_with("smallest that reaches 98 %")).unwrap();
    assert!(names.iter().any(|name| smallest.contains(name)), "{text}");
    let kept = std::fs::read_dir(place.path().join("results")).unwrap().next().unwrap().unwrap().path();
    let summary: Value = serde_json::from_slice(&std::fs::read(kept.join("result.json")).unwrap()).unwrap();
    assert_eq!(summary, found);
    let events = std::fs::read_to_string(kept.join("events.jsonl")).unwrap();
    assert_eq!(events.lines().filter(|line| line.contains("\"net_run\"")).count(), 8);
}

#[test]
fn one_client_with_two_servers_and_two_clients_with_one() {
    let place = directory();
    let here = place.path();
    let (_first, one) = serve(here, "127.0.0.1:0");
    let (_second, two) = serve(here, "127.0.0.1:0");
    let found = done(&net(here, "udp", &[&one, &two], &["--time", "500 ms", "--rate", "2 MB/s"]));
    let run = &found["runs"][0];
    consistent(run);
    balanced(&run["ledger"]);
    let servers: Vec<&Value> = flows(run).iter().map(|flow| &flow["server"]).collect();
    assert_eq!(servers, [&Value::from(one.as_str()), &Value::from(two.as_str())]);
    assert_eq!(run["ends"].as_array().unwrap().len(), 3);
    let arguments = command("tcp", &[&one], &["--time", "4 s", "--rate", "5 MB/s"]);
    let clients = [start(here, &arguments), start(here, &arguments)];
    for run in clients.map(Program::wait) {
        let found = done(&run);
        consistent(&found["runs"][0]);
        assert_eq!(found["runs"][0]["ends"][1]["sessions"], 2, "{found:#}");
    }
}

#[test]
fn every_way_to_send_and_receive_counts_the_same() {
    let place = directory();
    let (_server, address) = serve(place.path(), "127.0.0.1:0");
    for send in ["plain", "batch", "segments"] {
        for receive in ["plain", "batch", "joined", "ring"] {
            let ways = ["--send", send, "--receive", receive, "--rate", "5 MB/s", "--time", "500 ms"];
            let found = done(&net(place.path(), "udp", &[&address], &ways));
            let run = &found["runs"][0];
            consistent(run);
            balanced(&run["ledger"]);
            assert_eq!(run["ledger"]["lost"], 0, "{send} {receive}: {run:#}");
        }
    }
}

#[test]
fn a_small_socket_buffer_explains_every_lost_datagram() {
    let place = directory_alone();
    let Some((cable, _server)) = wired("a_small_socket_buffer", &place, "s") else { return };
    for (send, receive) in [("batch", "batch"), ("segments", "batch"), ("segments", "joined")] {
        let ways = ["--send", send, "--receive", receive, "--receive-buffer", "8 KiB", "--time", "1 s"];
        let found = done(&across(&place, &cable, "udp", &ways).wait());
        let ledger = &found["runs"][0]["ledger"];
        balanced(ledger);
        assert!(number(ledger, "/lost") > 1000.0, "{ledger:#}");
        assert_eq!(ledger["unexplained"], 0, "{send} {receive}: {ledger:#}");
        let full = ledger["losses"].as_array().unwrap().iter().find(|loss| loss["layer"] == "socket_buffer");
        assert!(number(full.unwrap(), "/datagrams") > 0.9 * number(ledger, "/lost"), "{ledger:#}");
    }
}

#[test]
fn a_shaped_link_carries_what_it_is_shaped_to() {
    let place = directory_alone();
    let Some((cable, _server)) = wired("a_shaped_link", &place, "r") else { return };
    cable.shape(0, 200).unwrap();
    // 1448 bytes of payload in 1514 of a frame (MTU 1500, time stamps): what tbf counts.
    let payload = 200e6 / 8.0 * 1448.0 / 1514.0;
    let rate = |found: &Value| {
        let received = found.pointer("/runs/0/flows/0/received").unwrap();
        number(received, "/bytes") / number(received, "/seconds")
    };
    // A link that stands still for a moment does not make up for it, and the machine is shared.
    let time = ["--time", "3 s", "--congestion", "reno"];
    let mut tries = (0..5).map(|_| done(&across(&place, &cable, "tcp", &time).wait()));
    let found = tries.find(|found| (rate(found) / payload - 1.0).abs() < 0.02).expect("the rate of the link");
    let run = &found["runs"][0];
    assert_eq!(number(run, "/flows/0/sender/path_mtu_bytes"), 1500.0);
    // The receiver's machine has its own kernel counters, but shares the processors.
    assert_eq!(run["ends"][0]["host"], run["ends"][1]["host"]);
    for end in run["ends"].as_array().unwrap() {
        let interface = &end["interfaces"][0];
        assert_eq!(
            (&interface["name"], number(interface, "/mtu_bytes")),
            (&"cable".into(), 1500.0),
            "{end:#}"
        );
        assert!(interface["tso"].is_boolean() && interface["gro"].is_boolean(), "{end:#}");
    }
}

#[test]
fn the_highest_rate_without_loss_is_that_of_a_shaped_link() {
    let place = directory_alone();
    let Some((cable, _server)) = wired("the_highest_rate_without_loss", &place, "k") else { return };
    cable.shape(0, 200).unwrap();
    let search = ["--search", "--quick", "--soak", "3 s", "--max-rate", "32 MB/s"];
    // 1400 bytes of payload in 1442 of a frame; what the shaper lets through at once weighs in short trials.
    let payload = 200e6 / 8.0 * 1400.0 / 1442.0;
    // In parts of what the link carries: the knee from and to, and what is safe. Where the sender itself had
    // no time there is none, and losses of a machine that stood still lower it: then it is made anew.
    let told = |found: &Value| {
        for run in found["runs"].as_array().unwrap() {
            balanced(&run["ledger"]);
        }
        ["knee_lower", "knee_upper", "safe"].map(|key| {
            let rate = found["finding"][format!("{key}_bytes_per_second")].as_f64();
            rate.unwrap_or(f64::NAN) / payload
        })
    };
    let is_right = |[lower, upper, safe]: &[f64; 3]| {
        (0.94..1.03).contains(lower) && upper > lower && *upper < 1.06 && safe <= lower && *safe > 0.8
    };
    let mut seen = Vec::new();
    for _ in 0..4 {
        let found = told(&done(&across(&place, &cable, "udp", &search).wait()));
        seen.push(found);
        if is_right(&found) {
            return;
        }
    }
    panic!("of what the link carries: {seen:?}");
}

#[test]
fn a_server_of_its_own_needs_no_token_and_ends_with_the_test() {
    let place = directory();
    let quick = ["--time", "300 ms", "--ramp", "100 ms", "--json"];
    for kind in ["tcp", "udp", "latency"] {
        let rate: &[&str] = if kind == "udp" { &["--rate", "4 MB/s"] } else { &[] };
        let found = done(&keepup(place.path(), &[&["net", kind, "self"], &quick[..], rate].concat()));
        let ends = found["runs"][0]["ends"].as_array().unwrap();
        let names: Vec<&str> = ends.iter().map(|end| end["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["client", "self"]);
        assert!(number(&ends[1], "/cpu_seconds") > 0.0, "{found:#}");
    }
    let dry = keepup(place.path(), &["net", "tcp", "self", "--dry-run"]);
    assert!(dry.code() == 0 && format!("{dry:?}").contains("with self"), "{dry:#?}");
    let twice = keepup(place.path(), &["net", "tcp", "self", "self"]);
    assert!(twice.code() == 2 && twice.stderr.contains("hint: --flows"), "{twice:#?}");
}
