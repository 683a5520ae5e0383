//! Failures between client and server: each is reported within seconds, with the measurements so far.
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use keepup_testkit::{Program, Run};
use serde_json::Value;

use crate::common::{directory, json, keepup, secret_file, start};
use crate::net::{TOKEN, across, command, done, net, serve, wired};

/// Time within which a fault must be reported.
const SOON: Duration = Duration::from_secs(5);
/// Additional time for starting and ending programs on a busy machine; the run has 60 s.
const SLACK: Duration = Duration::from_secs(20);

/// Checks that a run ended with an environment error soon after `since`. Returns its result.
fn failed_result(run: &Run, since: Instant, words: &str) -> Value {
    assert!(since.elapsed() < SOON + SLACK, "{:?}", since.elapsed());
    assert_eq!(run.code(), 4, "{run:#?}");
    assert!(run.stderr.contains(words), "{run:#?}");
    let found = json(run);
    assert!(found["failure"].as_str().unwrap().contains(words), "{found:#}");
    found
}

#[test]
#[ignore = "system"]
fn a_killed_or_stopped_server_is_reported() {
    for (signal, words, kind) in [
        ("KILL", "it disconnected", "tcp"),
        ("STOP", "no message for", "tcp"),
        ("KILL", "it disconnected", "udp"),
    ] {
        let place = directory();
        let (mut server, address) = serve(place.path(), "127.0.0.1:0");
        let client =
            start(place.path(), &command(kind, &[&address], &["--time", "60 s", "--rate", "5 MB/s"]));
        server.line("127.0.0.1:");
        std::thread::sleep(Duration::from_millis(1500));
        server.signal(signal);
        let since = Instant::now();
        let run = client.wait();
        server.signal("CONT");
        let found = failed_result(&run, since, words);
        assert!(found["runs"][0]["flows"][0]["sent"]["bytes"].as_u64().unwrap() > 0, "{found:#}");
        assert!(found["runs"][0]["flows"][0]["received"].is_null(), "{found:#}");
        server.signal("TERM");
        server.wait();
    }
}

#[test]
fn a_killed_client_frees_the_server() {
    let place = directory();
    let (mut server, address) = serve(place.path(), "127.0.0.1:0");
    let client = start(place.path(), &command("tcp", &[&address], &["--time", "60 s"]));
    server.line("127.0.0.1:");
    client.signal("KILL");
    client.wait();
    let port = client_line(&mut server);
    assert!(port.contains("it disconnected"), "{port}");
    done(&net(place.path(), "tcp", &[&address], &["--time", "300 ms"]));
}

/// First message of the server about a client after its flows.
fn client_line(server: &mut keepup_testkit::Program) -> String {
    let first = server.line("127.0.0.1:");
    let client = first.split(": ").next().unwrap().to_owned();
    let start = format!("127.0.0.1:{client}: cannot continue with 127.0.0.1:{client}");
    server.line(&start)
}

#[test]
#[ignore = "system"]
fn a_link_that_goes_down_is_reported() {
    let place = directory();
    let Some((cable, _server)) = wired("a_link_that_goes_down_is_reported", &place, "c") else { return };
    let client = across(&place, &cable, "tcp", &["--time", "60 s"]);
    std::thread::sleep(Duration::from_millis(1500));
    cable.cut().unwrap();
    let since = Instant::now();
    failed_result(&client.wait(), since, "no message for");
}

#[test]
fn an_interrupted_test_keeps_its_measurements() {
    let place = directory();
    let (mut server, address) = serve(place.path(), "127.0.0.1:0");
    let client = start(place.path(), &command("udp", &[&address], &["--time", "60 s", "--rate", "5 MB/s"]));
    server.line("127.0.0.1:");
    std::thread::sleep(Duration::from_millis(1500));
    client.signal("INT");
    let run = client.wait();
    assert_eq!(run.code(), 130, "{run:#?}");
    let found = json(&run);
    let flow = &found["runs"][0]["flows"][0];
    assert!(found["interrupted"] == true && flow["received"]["bytes"].as_u64().unwrap() > 0, "{found:#}");
    assert!(found["runs"][0]["ledger"]["sent"].as_u64().unwrap() > 0, "{found:#}");
}

#[test]
fn a_client_without_the_token_is_refused() {
    let place = directory();
    let (server, address) = serve(place.path(), "127.0.0.1:0");
    secret_file(place.path(), "wrong", "not-the-token-of-tests");
    let run = keepup(place.path(), &["net", "tcp", &address, "--token-file", "wrong", "--json"]);
    assert!(run.code() == 4 && run.stderr.contains("the token is wrong"), "{run:#?}");
    assert_eq!(json(&run)["runs"].as_array().unwrap().len(), 0);
    let run = keepup(place.path(), &["net", "tcp", &address]);
    assert!(run.code() == 2 && run.stderr.contains("hint: --token-file"), "{run:#?}");
    server.signal("TERM");
    let ended = server.wait();
    assert!(ended.stderr.contains("refused, wrong token") && !ended.stderr.contains("flow"), "{ended:#?}");
}

/// Sends a message to a server and returns its reply.
fn exchange(stream: &mut TcpStream, message: &Value) -> Value {
    let text = message.to_string();
    stream.write_all(&(text.len() as u32).to_le_bytes()).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut answer = vec![0; u32::from_le_bytes(length) as usize];
    stream.read_exact(&mut answer).unwrap();
    serde_json::from_slice(&answer).unwrap()
}

#[test]
fn another_protocol_version_does_not_bypass_the_token() {
    let place = directory();
    let (server, address) = serve(place.path(), "127.0.0.1:0");
    let connect = || {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(b"KU-NETc\n").unwrap();
        stream
    };
    for version in [0, 1, 2, 3, 4, 5, u32::MAX] {
        let mut stream = connect();
        let hello = serde_json::json!({"say": "hello", "version": version, "nonce": "0".repeat(32)});
        assert_eq!(exchange(&mut stream, &hello)["say"], "challenge");
        let answer = exchange(&mut stream, &serde_json::json!({"say": "proof", "proof": "0".repeat(64)}));
        assert_eq!(answer["say"], "refused", "{version}: {answer}");
        assert!(answer["why"].as_str().unwrap().contains("the token is wrong"), "{version}: {answer}");
    }
    // Version 2 sent the token in clear text.
    let answer = exchange(&mut connect(), &serde_json::json!({"say": "hello", "version": 2, "token": TOKEN}));
    assert!(answer["why"].as_str().unwrap().contains("the server uses protocol version 4"), "{answer}");
    server.signal("TERM");
    let ended = server.wait();
    assert!(!ended.stderr.contains(TOKEN) && !ended.stdout.contains(TOKEN), "{ended:#?}");
}

#[test]
fn the_token_is_read_from_a_private_file_or_the_environment() {
    let place = directory();
    let here = place.path();
    let (_server, address) = serve(here, "127.0.0.1:0");
    std::fs::write(here.join("shared"), TOKEN).unwrap();
    std::fs::set_permissions(here.join("shared"), std::fs::Permissions::from_mode(0o644)).unwrap();
    for command in [&["net", "tcp", &address][..], &["net", "serve", "--listen", "127.0.0.1:0"]] {
        let run = keepup(here, &[command, &["--token-file", "shared"]].concat());
        assert!(run.code() == 3 && run.stderr.contains("hint: chmod 600 shared"), "{run:#?}");
    }
    let environment = format!("exec env KEEPUP_NET_TOKEN={TOKEN} \"$@\"");
    let test = [env!("CARGO_BIN_EXE_keepup"), "net", "tcp", &address, "--time", "300 ms", "--json"];
    let run = Program::start("sh", &[&["-c", &environment, "sh"], &test[..]].concat(), here).wait();
    done(&run);
    assert!(!run.stdout.contains(TOKEN) && !run.stderr.contains(TOKEN), "{run:#?}");
    let run = keepup(here, &["net", "tcp", &address, "--token", TOKEN]);
    assert!(run.code() == 2 && run.stderr.contains("--token-file"), "{run:#?}");
}

#[test]
#[ignore = "system"]
fn silent_connections_do_not_block_other_clients() {
    let place = directory();
    let (_server, address) = serve(place.path(), "127.0.0.1:0");
    let mut silent: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(&address).unwrap()).collect();
    for stream in silent.iter_mut().step_by(3) {
        // Connections that are closed already refuse it.
        drop(stream.write_all(b"KU-NETc\n\xff\xff\xff\xff"));
    }
    done(&net(place.path(), "tcp", &[&address], &["--time", "300 ms"]));
    drop(silent);
}

#[test]
fn another_protocol_version_is_reported() {
    let place = directory();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let elsewhere = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        let challenge = br#"{"say":"challenge","version":99,"nonce":"x"}"#;
        stream.write_all(&(challenge.len() as u32).to_le_bytes()).unwrap();
        stream.write_all(challenge).unwrap();
        drop(stream.read_to_end(&mut Vec::new()));
    });
    secret_file(place.path(), "token", TOKEN);
    let run = net(place.path(), "tcp", &[&address], &[]);
    assert!(run.code() == 4 && run.stderr.contains("version 99") && run.stderr.contains("hint"), "{run:#?}");
    elsewhere.join().unwrap();
}

#[test]
fn invalid_commands_are_refused_with_hints() {
    let place = directory();
    let here = place.path();
    let (_server, address) = serve(here, "127.0.0.1:0");
    let listen = keepup(here, &["net", "serve", "--listen", &address]);
    assert!(listen.code() == 4 && listen.stderr.contains("another program listens there"), "{listen:#?}");
    for address in ["224.0.0.1", "255.255.255.255", "[ff02::1]"] {
        let run = net(here, "udp", &[address], &[]);
        assert!(run.code() == 2 && run.stderr.contains("hint: use the address of one machine"), "{run:#?}");
        let run = keepup(here, &["net", "serve", "--listen", address]);
        assert!(run.code() == 2, "{run:#?}");
    }
    for (more, words) in [
        (["--flows", "0"], "0 flows"),
        (["--flows", "1000"], "from 1 to 256"),
        (["--message", "1 GiB"], "1 to 16777216"),
        (["--time", "0 s"], "must be above 0"),
        (["--congestion", "a-name-that-is-too-long"], "15 letters"),
    ] {
        let run = net(here, "tcp", &[&address], &more);
        assert!(run.code() == 2 && run.stderr.contains(words), "{more:?}: {run:#?}");
    }
    let run = net(here, "tcp", &[&address], &["--congestion", "unknown"]);
    assert!(run.code() == 4 && run.stderr.contains("cannot"), "{run:#?}");
    let refused = net(here, "tcp", &["127.0.0.1:1"], &[]);
    assert!(
        refused.code() == 4 && refused.stderr.contains("hint: start a server on the other machine"),
        "{refused:#?}"
    );
    let dry = net(here, "tcp", &["127.0.0.1:1"], &["--dry-run"]);
    assert!(dry.code() == 0 && dry.stdout.contains("nothing is written"), "{dry:#?}");
}
