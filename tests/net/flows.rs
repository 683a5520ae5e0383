//! Counts of both ends agree, over loopback and between two namespaces.
use keepup_testkit::Program;
use serde_json::Value;

use crate::common::{directory, keepup, start};
use crate::net::{across, balanced, command, consistent, done, flows, net, number, serve, wired};

#[test]
#[ignore = "system"]
fn flows_run_in_both_directions_over_both_protocols() {
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
        // The ledger includes the warm-up of 200 ms. A busy machine drops late datagrams: never more than are
        // due, never all of them; `measured::links` checks the amount. It also makes the time longer.
        assert!((0.15..1.0).contains(&(due / 8e6 - seconds)), "{run:#}");
        assert!(sent > 0.0 && sent < 1.1 * 8e6 * seconds, "{run:#}");
        assert_eq!(number(run, "/ledger/unexplained"), 0.0, "{run:#}");
        server.signal("TERM");
        let ended = server.wait();
        assert!(ended.code() == 0 && ended.stderr.contains("5 TCP flows"), "{ended:#?}");
    }
}

#[test]
#[ignore = "system"]
fn all_settings_are_measured_and_the_smallest_good_one_is_reported() {
    let place = directory();
    let (_server, address) = serve(place.path(), "127.0.0.1:0");
    let grid = ["--time", "300 ms", "--message", "1 KiB,64 KiB", "--receive-buffer", "64 KiB,1 MiB"];
    let out = ["--out", "results", "--repeats", "2"];
    let found = done(&net(place.path(), "tcp", &[&address], &[&grid[..], &out].concat()));
    let runs = found["runs"].as_array().unwrap();
    let names: Vec<&str> = runs.iter().map(|run| run["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 8);
    assert_eq!(names[..4], names[4..], "repeats alternate");
    let text =
        keepup(place.path(), &[&["net", "tcp", "--token-file", "token", &address], &grid[..]].concat())
            .stdout
            .replace("\n  ", " ");
    let (_, smallest) = text.split_once("Smallest setting that reaches 98 % of it: ").unwrap();
    assert!(names.iter().any(|name| smallest.starts_with(name)), "{text}");
    let kept = std::fs::read_dir(place.path().join("results")).unwrap().next().unwrap().unwrap().path();
    let summary: Value = serde_json::from_slice(&std::fs::read(kept.join("result.json")).unwrap()).unwrap();
    assert_eq!(summary, found);
    let events = std::fs::read_to_string(kept.join("events.jsonl")).unwrap();
    assert_eq!(events.lines().filter(|line| line.contains("\"net_run\"")).count(), 8);
}

#[test]
#[ignore = "system"]
fn one_client_uses_two_servers_and_two_clients_one_server() {
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
#[ignore = "system"]
fn every_send_and_receive_method_counts_the_same() {
    let place = directory();
    let (_server, address) = serve(place.path(), "127.0.0.1:0");
    for send in ["plain", "batch", "segments"] {
        for receive in ["plain", "batch", "joined", "ring"] {
            let flags = ["--send", send, "--receive", receive, "--rate", "5 MB/s", "--time", "500 ms"];
            let found = done(&net(place.path(), "udp", &[&address], &flags));
            let run = &found["runs"][0];
            consistent(run);
            balanced(&run["ledger"]);
            // A busy machine may lose some, and reports where.
            assert_eq!(run["ledger"]["unexplained"], 0, "{send} {receive}: {run:#}");
        }
    }
}

#[test]
#[ignore = "system"]
fn datagrams_lost_in_a_small_socket_buffer_are_attributed_to_it() {
    let place = directory();
    let Some((cable, _server)) = wired("a_small_socket_buffer", &place, "s") else { return };
    for (send, receive) in [("batch", "batch"), ("segments", "batch"), ("segments", "joined")] {
        let flags = ["--send", send, "--receive", receive, "--receive-buffer", "8 KiB", "--time", "1 s"];
        let found = done(&across(&place, &cable, "udp", &flags).wait());
        let ledger = &found["runs"][0]["ledger"];
        balanced(ledger);
        assert!(number(ledger, "/lost") > 1000.0, "{ledger:#}");
        assert_eq!(ledger["unexplained"], 0, "{send} {receive}: {ledger:#}");
        let full = ledger["losses"].as_array().unwrap().iter().find(|loss| loss["layer"] == "socket_buffer");
        assert!(number(full.unwrap(), "/datagrams") > 0.9 * number(ledger, "/lost"), "{ledger:#}");
    }
}

#[test]
fn an_internal_server_needs_no_token_and_ends_with_the_test() {
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
