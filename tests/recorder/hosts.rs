//! Host names are accepted wherever an address is, and unresolvable names are reported.
use std::net::ToSocketAddrs;

use keepup_testkit::Program;

use crate::common::{directory, json, keepup, secret_file, start};
use crate::net::{done, net};

/// Address on which a program listens, with `localhost` as its host.
fn by_name(program: &mut Program) -> String {
    format!("localhost:{}", program.address().port())
}

/// Runs a source briefly. It must lose nothing.
fn send(here: &std::path::Path, to: &str) {
    let sent = keepup(here, &["source", "csl", "--to", to, "--events", "200", "--rate", "max", "--json"]);
    assert_eq!(sent.code(), 0, "{sent:#?}");
}

#[test]
fn a_recorder_is_reached_by_name_over_ipv4_and_ipv6() {
    let has_ipv6 = ("localhost", 0).to_socket_addrs().unwrap().any(|address| address.is_ipv6());
    for listen in ["localhost:0", "127.0.0.1:0"].into_iter().chain(has_ipv6.then_some("[::1]:0")) {
        let place = directory();
        let here = place.path();
        let mut recorder = start(here, &["record", "--to-null", "--listen", listen, "--pool", "64 MiB"]);
        let to = by_name(&mut recorder);
        send(here, &to);
        let recorded = recorder.wait();
        assert_eq!(recorded.code(), 0, "{recorded:#?}");
        assert!(!recorded.stderr.contains("is reachable from other machines"), "{recorded:#?}");
    }
}

#[test]
fn a_drain_reaches_its_sink_by_name() {
    let place = directory();
    let here = place.path();
    let arguments =
        ["record", "--listen", "localhost:0", "--volume", "disk", "--name", "run", "--pool", "64 MiB"];
    std::fs::create_dir(here.join("disk")).unwrap();
    let mut recorder = start(here, &arguments);
    let to = by_name(&mut recorder);
    send(here, &to);
    assert_eq!(recorder.wait().code(), 0);
    let mut sink = start(here, &["sink", "--to-null", "--listen", "localhost:0"]);
    let to = format!("tcp://{}", by_name(&mut sink));
    let drained = keepup(here, &["drain", "disk/run", "--to", &to, "--json"]);
    assert!(drained.code() == 0 && json(&drained)["sent"]["events"] == 200, "{drained:#?}");
    assert_eq!(sink.wait().code(), 0);
}

#[test]
fn the_live_page_and_ctl_accept_localhost() {
    let place = directory();
    let here = place.path();
    let flags = ["--to-null", "--listen", "localhost:0", "--http", "localhost:0", "--controlled"];
    let mut recorder = start(here, &[&["record", "--pool", "64 MiB"], &flags[..]].concat());
    let url = recorder.line("live page: http://");
    let port = url.split(['/', '#']).next().unwrap().rsplit(':').next().unwrap().to_owned();
    for to in [format!("localhost:{port}"), format!("http://localhost:{port}")] {
        let status = keepup(here, &["ctl", "--to", &to, "status", "--json"]);
        assert!(status.code() == 0 && json(&status)["state"] == "idle", "{status:#?}");
    }
    recorder.signal("TERM");
    recorder.wait();
}

#[test]
fn network_tests_accept_localhost() {
    let place = directory();
    let (mut server, _) = crate::net::serve(place.path(), "localhost:0");
    let address = by_name(&mut server);
    let found = done(&net(place.path(), "tcp", &[&address], &["--time", "300 ms"]));
    assert_eq!(found["runs"][0]["flows"][0]["server"], address, "{found:#}");
    done(&net(place.path(), "udp", &[&address], &["--time", "300 ms", "--rate", "1 MB/s"]));
}

#[test]
fn an_unresolvable_name_is_reported_by_every_command() {
    let place = directory();
    let here = place.path();
    let name = "keepup-test.invalid:7611";
    let drain = format!("tcp://{name}");
    let url = format!("http://{name}");
    for command in [
        &["source", "csl", "--to", name][..],
        &["record", "--to-null", "--listen", name],
        &["record", "--to-null", "--listen", "127.0.0.1:0", "--http", name],
        &["sink", "--to-null", "--listen", name],
        &["serve", "--http", name],
        &["qualify", "csl", "--drain-to", &drain],
        &["qualify", "csl", "--source", name],
        &["source", "--serve", "--listen", name],
        &["net", "serve", "--listen", name],
        &["register", "serve-ipbus", "--listen", name],
        &["drain", "nothing", "--to", &drain],
        &["ctl", "--to", &url, "status"],
    ] {
        let run = keepup(here, command);
        assert_eq!(run.code(), 2, "{command:?}: {run:#?}");
        assert!(run.stderr.contains("cannot resolve keepup-test.invalid: "), "{command:?}: {run:#?}");
        assert!(run.stderr.contains("hint: "), "{command:?}: {run:#?}");
    }
    secret_file(here, "token", crate::net::TOKEN);
    let run = net(here, "tcp", &[name], &[]);
    assert!(run.code() == 2 && run.stderr.contains("cannot resolve keepup-test.invalid"), "{run:#?}");
}
