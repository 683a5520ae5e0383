//! `--source`: trials with the source in another process, which refuses, is missing, or dies.
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;

use keepup_testkit::cable::Cable;
use keepup_testkit::root::{allowed, skip};
use keepup_testkit::{Program, Run};
use serde_json::{Value, json as value};

use crate::common::{count, directory, json, keepup, qualified, secret_file, squeezed, start, until};
use crate::net::TOKEN;

const PROFILE: &str = "name = \"small\"\ntitle = \"small events\"\n[event]\nsize = \"64 KiB\"\n\
    [source]\nrate = \"8 /s\"\nbuffer = \"64 MiB\"\nstreams = 1\ntransport = \"tcp\"\n\
    [run]\nduration = \"8 h\"\n[record]\nsegment = \"64 MiB\"\n";

/// A server of sources on loopback, and its address.
fn serve(here: &Path) -> (Program, String) {
    secret_file(here, "token", TOKEN);
    let mut server = start(here, &["source", "--serve", "--listen", "127.0.0.1:0", "--token-file", "token"]);
    let address = server.address().to_string();
    (server, address)
}

fn qualify(here: &Path, more: &[&str]) -> Program {
    std::fs::create_dir_all(here.join("disk")).unwrap();
    std::fs::write(here.join("small.toml"), PROFILE).unwrap();
    let base = ["qualify", "./small.toml", "--volume", "disk", "--quick", "--soak", "3s", "--pool", "32 MiB"];
    start(here, &[&base[..], &["--max-write", "48 GB", "--json"], more].concat())
}

/// Nothing was measured, and nothing is left.
fn refused_at_once(here: &Path, run: &Run) {
    assert!(!run.stderr.contains("ceilings of the components"), "{run:#?}");
    assert_eq!(std::fs::read_dir(here.join("disk")).unwrap().count(), 0);
    assert!(!here.join("results").exists());
}

#[test]
fn a_trial_counts_what_a_source_elsewhere_sent() {
    let place = directory();
    let here = place.path();
    let (server, address) = serve(here);
    let trial =
        ["trial", "csl", "--to-null", "--rate", "max", "--events", "300", "--pool", "128 MiB", "--json"];
    let run = keepup(here, &[&trial[..], &["--source", &address, "--source-token-file", "token"]].concat());
    assert_eq!(run.code(), 0, "{run:#?}");
    let found = json(&run);
    let ledger = &found["runs"][0]["ledger"];
    assert_eq!((count(&ledger["sent"]).0, count(&ledger["sent"])), (300, count(&ledger["durable"])));
    assert_eq!(found["plan"]["source"]["address"], address, "{found:#}");
    server.signal("TERM");
    let served = server.wait();
    assert!(served.code() == 0 && served.stderr.contains("source to 127.0.0.1:"), "{served:#?}");
}

#[test]
fn a_source_elsewhere_sends_heaps() {
    let place = directory();
    let here = place.path();
    let (server, address) = serve(here);
    let trial = [
        "trial",
        "meerkat-visibilities",
        "--to-null",
        "--streams",
        "2",
        "--connections",
        "2",
        "--event",
        "100 kB",
        "--rate",
        "10 MB/s",
        "--time",
        "2s",
        "--pool",
        "128 MiB",
        "--json",
        "--source",
        &address,
        "--source-token-file",
        "token",
    ];
    let run = keepup(here, &trial);
    let found = json(&run);
    assert_eq!(found["plan"]["protocol"], "spead", "{run:#?}");
    assert_eq!(found["plan"]["source"]["address"], address, "{found:#}");
    let ledger = &found["runs"][0]["ledger"];
    let (sent, durable) = (count(&ledger["sent"]).0, count(&ledger["durable"]).0);
    // A loaded machine may drop packets, and the heaps are then counted as lost.
    let is_lossless = run.code() == 0 && durable == sent;
    let has_counted =
        run.code() == 1 && durable < sent && found["runs"][0]["ledger"].to_string().contains("gap");
    assert!(sent > 0 && (is_lossless || has_counted), "{run:#?}");
    // The recorder reads files from a directory of its own machine.
    let refused = keepup(here, &[&trial[..], &["--as", "files"]].concat());
    assert!(refused.code() == 2 && refused.stderr.contains("cannot use --source with"), "{refused:#?}");
    server.signal("TERM");
    server.wait();
}

/// A trial of images without a disk, with the source at `address`.
fn images<'a>(profile: &'a str, address: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let trial = ["trial", profile, "--to-null", "--event", "200 kB", "--pool", "128 MiB", "--json"];
    let source = ["--source", address, "--source-token-file", "token"];
    [&trial[..], &source, more].concat()
}

/// A trial of 200 images sent and recorded all of them.
fn is_exact(run: &Run, protocol: &Value) {
    assert_eq!(run.code(), 0, "{run:#?}");
    let found = json(run);
    assert_eq!(&found["plan"]["protocol"], protocol, "{found:#}");
    let ledger = &found["runs"][0]["ledger"];
    assert_eq!(count(&ledger["sent"]), (200, 40_000_000), "{found:#}");
    assert_eq!(count(&ledger["durable"]), count(&ledger["sent"]), "{found:#}");
}

#[test]
fn the_recorder_connects_to_a_detector_elsewhere() {
    let place = directory();
    let here = place.path();
    let (server, address) = serve(here);
    let v1 = ["--as", "dectris-v1", "--rate", "max"];
    for (profile, more, protocol) in [
        ("eiger2-16m", &v1[1..1], value!({"dectris": "v2"})),
        ("eiger2-16m", &v1, value!({"dectris": "v1"})),
        ("oryx-51s5m", &v1[2..], value!("pvaccess")),
    ] {
        let run = keepup(here, &images(profile, &address, &[&["--events", "200"], more].concat()));
        is_exact(&run, &protocol);
        assert_eq!(json(&run)["plan"]["source"]["address"], address, "{run:#?}");
    }
    server.signal("TERM");
    let served = server.wait();
    assert!(served.code() == 0 && served.stderr.contains("source at 127.0.0.1:"), "{served:#?}");
}

#[test]
fn a_server_may_have_one_port_for_all_detectors() {
    let place = directory();
    let here = place.path();
    secret_file(here, "token", TOKEN);
    let occupied = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = occupied.local_addr().unwrap().port().to_string();
    let serve = ["source", "--serve", "--listen", "127.0.0.1:0", "--token-file", "token"];
    let mut server = start(here, &[&serve[..], &["--detector-port", &port]].concat());
    let address = server.address().to_string();
    let trial = images("eiger2-16m", &address, &["--events", "200", "--rate", "max"]);
    let refused = keepup(here, &trial);
    let why = format!("cannot open 127.0.0.1:{port} for the recorder: Address already in use");
    assert!(refused.code() == 4 && squeezed(&refused.stderr).contains(&why), "{refused:#?}");
    drop(occupied);
    // The port is free again at once.
    for _ in 0..2 {
        is_exact(&keepup(here, &trial), &value!({"dectris": "v2"}));
    }
    server.signal("TERM");
    let served = server.wait();
    assert!(served.stderr.contains(&format!("source at 127.0.0.1:{port} as dectris-v2")), "{served:#?}");
}

#[test]
fn a_source_needs_the_token() {
    let place = directory();
    let here = place.path();
    let (server, address) = serve(here);
    secret_file(here, "wrong", "not-the-token-of-tests");
    let run = qualify(here, &["--source", &address, "--source-token-file", "wrong"]).wait();
    assert!(run.code() == 4 && run.stderr.contains("the token is wrong"), "{run:#?}");
    refused_at_once(here, &run);
    let run = qualify(here, &["--source", &address]).wait();
    assert!(run.code() == 2 && run.stderr.contains("hint: --source-token-file"), "{run:#?}");
    refused_at_once(here, &run);
    server.signal("TERM");
    let served = server.wait();
    assert!(served.stderr.contains("refused, wrong token"), "{served:#?}");
    assert!(!served.stderr.contains("source to"), "{served:#?}");
}

#[test]
fn a_missing_source_and_another_server_are_named() {
    let place = directory();
    let here = place.path();
    let (server, address) = crate::net::serve(here, "127.0.0.1:0");
    let run = qualify(here, &["--source", &address, "--source-token-file", "token"]).wait();
    assert!(run.code() == 4 && run.stderr.contains("start keepup source --serve"), "{run:#?}");
    refused_at_once(here, &run);
    server.signal("TERM");
    server.wait();
    let run = qualify(here, &["--source", &address, "--source-token-file", "token"]).wait();
    assert!(
        run.code() == 4 && run.stderr.contains("hint: start the source on the other machine"),
        "{run:#?}"
    );
    refused_at_once(here, &run);
}

#[test]
fn the_flags_of_a_source_and_of_its_server_exclude_each_other() {
    let place = directory();
    for arguments in [
        &["source", "--serve", "csl"][..],
        &["source", "--serve", "--to", "127.0.0.1:7611"],
        &["source", "csl"],
        &["source", "csl", "--to", "127.0.0.1:7611", "--token-file", "token"],
        &["source", "csl", "--to", "127.0.0.1:7611", "--detector-port", "7615"],
        &["source", "--serve", "--detector-port", "0"],
        &["qualify", "csl", "--source-token-file", "token"],
    ] {
        let run = keepup(place.path(), arguments);
        assert_eq!(run.code(), 2, "{arguments:?}: {run:#?}");
    }
}

#[test]
#[ignore = "system"]
fn a_source_that_dies_in_a_trial_ends_the_run() {
    let place = directory();
    let here = place.path();
    let (mut server, address) = serve(here);
    let mut run = qualify(here, &["--source", &address, "--source-token-file", "token"]);
    run.line("search for");
    // The trial of the search runs once its source does; the one before was unthrottled, for 1.5 s.
    let is_trial = |line: &str| line.contains("source to") && !line.ends_with("for 1.5 s");
    server.line_that(is_trial, "a trial of the search");
    server.signal("KILL");
    server.wait();
    let run = run.wait();
    assert!(run.code() == 4 && run.stderr.contains("it disconnected"), "{run:#?}");
    assert_eq!(std::fs::read_dir(here.join("disk")).unwrap().count(), 0, "recordings are removed");
}

/// Address at which the next source waits.
fn waiting_at(server: &mut Program) -> SocketAddr {
    let line = server.line_that(|line| line.contains(": source at "), "a source that waits");
    line.split("source at ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap()
}

#[test]
#[ignore = "system"]
fn a_trial_that_is_killed_leaves_no_port() {
    let place = directory();
    let here = place.path();
    let (mut server, address) = serve(here);
    for profile in ["eiger2-16m", "oryx-51s5m"] {
        let trial = start(here, &images(profile, &address, &["--rate", "10 /s", "--time", "60s"]));
        let port = waiting_at(&mut server);
        trial.signal("KILL");
        trial.wait();
        until("the port is closed", || TcpStream::connect(port).is_err());
        let run = keepup(here, &images(profile, &address, &["--events", "200", "--rate", "max"]));
        assert_eq!(run.code(), 0, "{run:#?}");
        waiting_at(&mut server);
    }
    server.signal("TERM");
    server.wait();
}

#[test]
#[ignore = "system"]
fn a_detector_that_dies_in_a_trial_ends_the_run() {
    for profile in ["eiger2-16m", "oryx-51s5m"] {
        let place = directory();
        let here = place.path();
        let (mut server, address) = serve(here);
        std::fs::create_dir(here.join("disk")).unwrap();
        // 2.4 GB, which the volume must have room for.
        let long = ["--rate", "100 /s", "--time", "120s", "--volume", "disk", "--segment", "64 MiB"];
        let mut trial = images(profile, &address, &long);
        trial.retain(|argument| *argument != "--to-null");
        let trial = start(here, &trial);
        waiting_at(&mut server);
        // Not before images have arrived: a segment grows once a block is written.
        let has_data = |path: &Path| std::fs::metadata(path).is_ok_and(|data| data.len() > 0);
        until("a segment", || {
            let recordings = std::fs::read_dir(here.join("disk")).unwrap().flatten();
            let files = recordings.flat_map(|recording| std::fs::read_dir(recording.path()).into_iter());
            files.flatten().flatten().any(|file| has_data(&file.path()))
        });
        server.signal("KILL");
        server.wait();
        let run = trial.wait();
        assert!(run.code() == 4 && run.stderr.contains("it disconnected"), "{run:#?}");
        assert_eq!(std::fs::read_dir(here.join("disk")).unwrap().count(), 0, "recordings are removed");
    }
}

const IMAGES: &str = "name = \"small\"\ntitle = \"small images\"\n[event]\nsize = \"64 KiB\"\n\
    shape = [128, 256]\nelement = \"u16\"\n[source]\nrate = \"8 /s\"\nbuffer = \"64 MiB\"\nstreams = 1\n\
    transport = \"pvaccess\"\n[run]\nduration = \"8 h\"\n[record]\nsegment = \"64 MiB\"\n";

/// Two network namespaces: a recorder at end 0, a server of sources at end 1 with a fixed port for detectors.
#[test]
#[ignore = "system"]
fn a_path_from_a_detector_elsewhere_is_qualified() {
    let test = "a_path_from_a_detector_elsewhere_is_qualified";
    if !allowed(test) {
        return;
    }
    let cable = match Cable::lay(&format!("kr{}", std::process::id())) {
        Ok(cable) => cable,
        Err(why) => return skip(test, &why),
    };
    let place = directory();
    let here = place.path();
    secret_file(here, "token", TOKEN);
    std::fs::create_dir(here.join("disk")).unwrap();
    std::fs::write(here.join("small.toml"), IMAGES).unwrap();
    let at = |end: usize, arguments: &[&str]| {
        Program::start(
            "ip",
            &[&cable.at(end)[1..], &[env!("CARGO_BIN_EXE_keepup")], arguments].concat(),
            here,
        )
    };
    let there = Cable::address(1);
    let serve = ["source", "--serve", "--listen", there, "--token-file", "token", "--detector-port", "7615"];
    let mut server = at(1, &serve);
    let address = server.address().to_string();
    let source = ["--source", there, "--source-token-file", "token", "--json"];
    let search =
        ["qualify", "./small.toml", "--volume", "disk", "--quick", "--soak", "3s", "--pool", "64 MiB"];
    let found = qualified(&at(0, &[&search[..], &["--max-write", "48 GB"], &source].concat()).wait());
    assert_eq!(found["source_host"]["address"], address, "{found:#}");
    assert!(found["limits"].to_string().contains("NTNDArray over pvAccess"), "{found:#}");
    for ceiling in ["source_bytes_per_second", "network_bytes_per_second"] {
        assert!(found["ceilings"][ceiling].as_f64().is_some_and(|rate| rate > 1e6), "{found:#}");
    }
    cable.prohibit(0, 7615).unwrap();
    for protocol in ["dectris-v1", "dectris-v2", "pvaccess"] {
        let trial = ["trial", "./small.toml", "--to-null", "--as", protocol, "--time", "1s"];
        let refused = at(0, &[&trial[..], &source].concat()).wait();
        assert_eq!(refused.code(), 4, "{refused:#?}");
        let text = squeezed(&refused.stderr);
        let why = format!("cannot use the source on {address}: cannot wait for a receiver at {there}:7615");
        assert!(text.contains(&why) && text.contains("hint: a firewall may block this port"), "{refused:#?}");
    }
    server.signal("TERM");
    assert_eq!(server.wait().code(), 0);
}
