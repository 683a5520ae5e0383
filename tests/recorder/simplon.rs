//! Detectors that are read, armed and disarmed over HTTP. The server is written here from the vendor's API
//! reference.
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};

use keepup_testkit::program::Program;

use super::detectors::{IMAGE_BYTES, accepted, end_of_series, frame, image_of_series, start_of_series};
use super::run_live::Controlled;
use crate::common::{count, directory, json, keepup, segments, start, verified};

/// A detector's HTTP server; sends each command before it answers.
fn http_server(arm_status: u16) -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (commands, received) = channel();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().map(Result::unwrap) {
            let mut lines = BufReader::new(socket.try_clone().unwrap()).lines().map(Result::unwrap);
            let Some(request) = lines.next() else { continue };
            lines.find(String::is_empty).unwrap();
            let path = request.split(' ').nth(1).unwrap();
            let (status, body) = match path.rsplit('/').next().unwrap() {
                "version" => (200, "{\"value\": \"1.8.0\"}".to_owned()),
                "keys" => (200, "{\"value\": [\"mode\", \"state\"]}".to_owned()),
                "mode" => (200, "{\"value\": \"enabled\", \"access_mode\": \"rw\"}".to_owned()),
                "state" => (200, "{\"value\": \"idle\"}".to_owned()),
                "trigger_mode" => (200, "{\"value\": \"exts\"}".to_owned()),
                command => {
                    assert!(request.starts_with("PUT /detector/api/1.8.0/command/"), "{request}");
                    commands.send(command.to_owned()).unwrap();
                    (if command == "arm" { arm_status } else { 200 }, "{\"sequence id\": 9}".to_owned())
                }
            };
            let length = body.len();
            let head =
                format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            socket.write_all(format!("{head}{body}").as_bytes()).unwrap();
        }
    });
    (address, received)
}

fn record(here: &Path, detector: &TcpListener, http: SocketAddr) -> Program {
    std::fs::create_dir_all(here.join("a")).unwrap();
    let from = format!("zmq://{}", detector.local_addr().unwrap());
    let url = format!("http://{http}");
    let settings = ["--volume", "a", "--name", "run", "--json", "--pool", "64 MiB", "--segment", "32 MiB"];
    start(here, &[&["record", "--from", &from, "--simplon", &url, "--arm"], &settings[..]].concat())
}

/// A recorder of this detector that waits for commands.
fn controlled(here: &Path, detector: &TcpListener, http: SocketAddr) -> Controlled {
    let (from, url) = (format!("zmq://{}", detector.local_addr().unwrap()), format!("http://{http}"));
    Controlled::record(here, &["--from", &from, "--simplon", &url, "--arm", "--volume", "a"])
}

/// Document of the recording in the current directory.
fn configuration(here: &Path) -> serde_json::Value {
    let files = segments(&here.join("a/run"));
    let bytes: Vec<Vec<u8>> = files.iter().map(|segment| std::fs::read(segment).unwrap()).collect();
    let messages =
        bytes.iter().flat_map(|bytes| mcap::MessageStream::new(bytes).unwrap().map(Result::unwrap));
    let documents: Vec<_> = messages.filter(|message| message.channel.topic == "detector_config").collect();
    assert_eq!(documents.len(), 1);
    serde_json::from_slice(&documents[0].data).unwrap()
}

#[test]
fn a_detector_is_armed_when_it_is_connected_and_disarmed_at_the_end() {
    let directory = directory();
    let here = directory.path();
    let detector = TcpListener::bind("127.0.0.1:0").unwrap();
    let (http, commands) = http_server(200);
    let program = record(here, &detector, http);
    let mut peer = accepted(&detector);
    assert_eq!(commands.recv().unwrap(), "arm");
    peer.write_all(&frame(&start_of_series(9, 20))).unwrap();
    (0..20).for_each(|image| peer.write_all(&frame(&image_of_series(9, image))).unwrap());
    assert!(commands.try_recv().is_err(), "it was disarmed during the series");
    peer.write_all(&frame(&end_of_series(9))).unwrap();
    let run = program.wait();
    assert_eq!((run.code(), commands.try_recv()), (0, Ok("disarm".to_owned())), "{run:#?}");
    let document = configuration(here);
    assert_eq!((&document["series"], &document["left_out"]), (&9.into(), &serde_json::json!({})));
    assert_eq!(document["stream"]["config"]["mode"]["access_mode"], "rw");
    let (events, bytes) = verified(here, "a/run");
    assert_eq!((events, count(&json(&run)["durable"])), (41, (events, bytes)));
    assert!(bytes > 40 * IMAGE_BYTES);
}

#[test]
fn a_controlled_run_disarms_its_detector_before_it_stops() {
    let directory = directory();
    let here = directory.path();
    std::fs::create_dir_all(here.join("a")).unwrap();
    let detector = TcpListener::bind("127.0.0.1:0").unwrap();
    let (http, commands) = http_server(200);
    let controlled = controlled(here, &detector, http);
    let ctl = |flags: &[&str]| {
        let run = controlled.ctl(here, flags);
        assert_eq!(run.code(), 0, "{flags:?}: {run:#?}");
        json(&run)
    };
    ctl(&["configure"]);
    // A run that is stopped in the middle of its series, and one that ends with its series.
    for (series, is_stopped) in [(9, true), (9, false)] {
        ctl(&["arm"]);
        assert!(commands.try_recv().is_err(), "only `start` arms the detector");
        ctl(&["start"]);
        let mut peer = accepted(&detector);
        assert_eq!(commands.recv().unwrap(), "arm");
        peer.write_all(&frame(&start_of_series(series, 20))).unwrap();
        (0..10).for_each(|image| peer.write_all(&frame(&image_of_series(series, image))).unwrap());
        if is_stopped {
            assert_eq!(ctl(&["stop"])["state"], "recording", "until the detector has sent everything");
            assert_eq!(commands.recv().unwrap(), "disarm");
        }
        (10..20).for_each(|image| peer.write_all(&frame(&image_of_series(series, image))).unwrap());
        peer.write_all(&frame(&end_of_series(series))).unwrap();
        let sealed = ctl(&["wait", "sealed", "--timeout", "60 s"]);
        let last = &sealed["last"];
        assert_eq!((&last["whole"], &last["durable"]["events"]), (&true.into(), &41.into()), "{sealed:#}");
        if !is_stopped {
            assert_eq!(commands.recv().unwrap(), "disarm");
        }
    }
    controlled.recorder.signal("INT");
    let ended = controlled.recorder.wait();
    assert_eq!((ended.code(), commands.try_iter().count()), (0, 0), "{ended:#?}");
    assert_eq!(ended.stdout.matches(" ended: ").count(), 2, "{ended:#?}");
}

#[test]
fn a_controlled_recorder_outlives_a_detector_that_refuses() {
    let directory = directory();
    let here = directory.path();
    std::fs::create_dir_all(here.join("a")).unwrap();
    let detector = TcpListener::bind("127.0.0.1:0").unwrap();
    let (http, commands) = http_server(400);
    let controlled = controlled(here, &detector, http);
    let ctl = |flags: &[&str]| controlled.ctl(here, flags);
    assert_eq!(ctl(&["configure"]).code(), 0);
    for _ in 0..2 {
        assert_eq!(ctl(&["arm"]).code(), 0);
        assert_eq!(ctl(&["start"]).code(), 0);
        let _peer = accepted(&detector);
        assert_eq!(ctl(&["wait", "sealed", "--timeout", "60 s"]).code(), 0);
    }
    assert_eq!(commands.try_iter().collect::<Vec<_>>(), ["arm", "arm"]);
    controlled.recorder.signal("INT");
    let ended = controlled.recorder.wait();
    assert_eq!(ended.code(), 1, "{ended:#?}");
    let refusal = format!("error: cannot arm http://{http}: HTTP status 400");
    assert_eq!(ended.stderr.matches(&refusal).count(), 2, "{ended:#?}");
}

#[test]
fn a_detector_that_refuses_leaves_no_recording() {
    let directory = directory();
    let here = directory.path();
    let detector = TcpListener::bind("127.0.0.1:0").unwrap();
    let (http, commands) = http_server(400);
    let program = record(here, &detector, http);
    let _peer = accepted(&detector);
    let run = program.wait();
    assert_eq!(run.code(), 4, "{run:#?}");
    assert!(run.stderr.contains(&format!("cannot arm http://{http}: HTTP status 400")), "{run:#?}");
    assert_eq!(commands.try_iter().collect::<Vec<_>>(), ["arm"]);
    assert!(!here.join("a/run").exists());
}

#[test]
fn flags_that_do_not_fit_together_are_refused() {
    let directory = directory();
    for (arguments, expected) in [
        (&["--simplon", "http://127.0.0.1:1"][..], "--from"),
        (&["--from", "zmq://127.0.0.1:1", "--arm"], "--simplon"),
        (&["--from", "zmq://127.0.0.1:1", "--simplon", "http://127.0.0.1:1", "--trigger"], "--arm"),
        (&["--from", "zmq://127.0.0.1:1", "--simplon", "https://127.0.0.1"], "it is not http://HOST[:PORT]"),
        (&["--from", "udp://127.0.0.1:0", "--simplon", "http://127.0.0.1:1"], "in the same order"),
        (&["--from", "zmq://127.0.0.1:1", "--simplon", "http://127.0.0.1:1", "--stay"], "--stay"),
    ] {
        let run = keepup(directory.path(), &[&["record", "--to-null"], arguments].concat());
        assert_eq!(run.code(), 2, "{run:#?}");
        assert!(run.stderr.contains(expected), "{run:#?}");
    }
}
