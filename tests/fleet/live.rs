//! The live page of a recording on several hosts, served by the controller.
use keepup_testkit::Program;
use serde_json::Value;

use super::Fleet;
use super::record::host;
use crate::common::{directory, get, keepup, secret_file, start, until};

const TOKEN: &str = "0123456789abcdef";
/// Two recorders and a spare.
const HOSTS: [(&str, &str); 3] = [("l0", "recorder"), ("l1", "recorder"), ("lx", "spare")];

fn parsed(page: &str, path: &str) -> (u16, Value) {
    let (status, body) = get(page, path, "");
    (status, serde_json::from_str(&body).unwrap())
}

/// Value of a metric of a host.
fn metric(page: &str, name: &str, host: &str) -> Option<f64> {
    let (_, text) = get(page, "/metrics", "");
    let start = format!("{name}{{host=\"{host}\"}} ");
    text.lines().find_map(|line| line.strip_prefix(&start)?.parse().ok())
}

/// A source that sends until it is killed.
fn source(here: &std::path::Path, port: u32) -> Program {
    let to = [port, port + 1].map(|port| format!("127.0.0.1:{port}"));
    let flags = ["--streams", "16", "--event", "20 kB", "--rate", "8 MB/s", "--time", "600s"];
    start(here, &[&["source", "romanis", "--to", &to[0], "--to", &to[1]], &flags[..]].concat())
}

#[test]
fn the_page_of_a_fleet_shows_its_hosts_a_lost_one_and_stops_the_run() {
    let place = directory();
    let here = place.path().canonicalize().unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut text = format!(
        "name = \"shown\"\nlisten = \"{free}\"\n[timing]\nlease = \"3 s\"\n{}\n",
        super::local::launcher()
    );
    let names = HOSTS.map(|(name, _)| format!("{name}-{}", std::process::id()));
    for (name, (_, role)) in names.iter().zip(HOSTS) {
        text.push_str(&host(&here, name, role, "data = \"127.0.0.1\""));
    }
    std::fs::write(here.join("fleet.toml"), text).unwrap();
    secret_file(&here, "token", TOKEN);
    let fleet = Fleet { hosts: names.to_vec() };
    let port = 11_000 + std::process::id() % 8_000;
    let flags =
        ["--fleet-output", "runs", "--http", "127.0.0.1:0", "--token-file", "token", "--pool", "64 MiB"];
    let number = port.to_string();
    let fleet_flags = ["record", "--fleet", "fleet.toml", "--fleet-port", &number];
    let mut record = start(&here, &[&fleet_flags[..], &flags[..]].concat());
    let url = record.line("live page: ").trim_end_matches('/').to_owned();
    let page = url.strip_prefix("http://").unwrap();
    record.line("recording shown-run-1 on 2 recorders with 1 spare in reserve");
    let source = source(&here, port);
    let now = || parsed(page, "/api/v1/now").1;
    let host = |now: &Value, at: usize, key: &str| now["hosts"][at][key].clone();
    until("a recorder gets no events, a stream is not connected, or a recorder has sent no health", || {
        let now = now();
        now["flow"]["connected_streams"] == 16
            && now["hosts"][0]["volumes"][0]["free_bytes"].is_u64()
            && (0..2).all(|at| host(&now, at, "flow")["received_bytes_per_second"].as_f64() > Some(0.0))
    });
    let seen = now();
    let states: Vec<Value> = (0..3).map(|at| host(&seen, at, "state")).collect();
    assert_eq!(states, ["recording", "recording", "reserve"], "{seen:#}");
    assert!(seen["hosts"][0]["volumes"][0]["free_bytes"].as_u64().unwrap() > 0, "{seen:#}");
    until("nothing becomes durable", || {
        metric(page, "keepup_durable_bytes_total", &names[1]).is_some_and(|bytes| bytes > 0.0)
    });
    assert_eq!(parsed(page, "/health").0, 200);
    fleet.signal(0, "KILL");
    until("the streams do not move to the spare", || {
        metric(page, "keepup_received_events_total", &names[2]).is_some_and(|events| events > 0.0)
    });
    let seen = now();
    let states: Vec<Value> = (0..3).map(|at| host(&seen, at, "state")).collect();
    assert_eq!(states, ["lost", "recording", "recording"], "{seen:#}");
    assert_eq!(
        (&seen["moves"][0]["from"], &seen["moves"][0]["to"]),
        (&names[0].as_str().into(), &names[2].as_str().into())
    );
    assert!(seen["hosts"][0]["flow"]["received"]["events"].as_u64().unwrap() > 0, "it keeps its counts");
    let (status, health) = parsed(page, "/health");
    assert_eq!(status, 503, "{health:#}");
    assert!(health["failures"].to_string().contains(&format!("{} is lost", names[0])), "{health:#}");
    // What a controller does not have.
    assert!(!get(page, "/", "").1.contains("id=\"catalog\""));
    assert_eq!((get(page, "/api/v1/tap", "").0, get(page, "/api/v1/results", "").0), (404, 404));
    let refused = keepup(&here, &["ctl", "--to", &url, "arm", "--token-file", "token"]);
    assert!(refused.code() != 0 && refused.stderr.contains("may only be stopped"), "{refused:#?}");
    std::fs::write(here.join("token"), "another-token-of-nobody").unwrap();
    let refused = keepup(&here, &["ctl", "--to", &url, "stop", "--token-file", "token"]);
    assert_ne!(refused.code(), 0, "{refused:#?}");
    assert_eq!(parsed(page, "/api/v1/run").1["state"], "recording");
    secret_file(&here, "token", TOKEN);
    let stopped = keepup(&here, &["ctl", "--to", &url, "stop", "--token-file", "token"]);
    assert_eq!(stopped.code(), 0, "{stopped:#?}");
    let record = record.wait();
    assert_eq!(record.code(), 1, "{record:#?}");
    // Otherwise it would wait for its recorders.
    source.signal("KILL");
    source.wait();
    until("agents are left", || fleet.gone());
}
