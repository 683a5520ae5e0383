//! Run control: numbers and limits of runs with `record`, and external commands.
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::thread::JoinHandle;

use keepup_results::live::{RunCommand, RunState, RunStatus};
use serde_json::{Value, json};

use crate::common::{count, directory, events, json as printed, keepup, secret_file, squeezed, start};

/// Records one run below `disk` with these flags until its source has sent `events`. Returns the report.
fn run(here: &Path, name: &str, flags: &[&str], events: &str) -> Value {
    std::fs::create_dir_all(here.join("disk")).unwrap();
    let base = ["record", "--listen", "127.0.0.1:0", "--volume", "disk", "--name", name, "--json"];
    let small = ["--pool", "64 MiB", "--segment", "32 MiB"];
    let mut record = start(here, &[&base[..], &small[..], flags].concat());
    let to = record.address().to_string();
    // A run that a limit ends closes the source's connection without a final message.
    keepup(here, &["source", "csl", "--to", &to, "--events", events, "--json"]);
    let record = record.wait();
    assert!(matches!(record.code(), 0 | 1), "{record:#?}");
    printed(&record)
}

fn info(here: &Path, name: &str) -> Value {
    let info = keepup(here, &["info", &format!("disk/{name}"), "--json"]);
    assert_eq!(info.code(), 0, "{info:#?}");
    printed(&info)
}

#[test]
fn runs_are_numbered_and_keep_their_metadata() {
    let directory = directory();
    let here = directory.path();
    run(here, "first", &[], "10");
    run(here, "second", &["--run", "20", "--meta", "sample=quartz", "--meta", "note=a=b"], "10");
    run(here, "third", &[], "10");
    let numbers = ["first", "second", "third"].map(|name| info(here, name)["run"].clone());
    assert_eq!(numbers, [json!(1), json!(20), json!(21)]);
    assert_eq!(info(here, "second")["metadata"], json!({"sample": "quartz", "note": "a=b"}));
    assert_eq!(info(here, "third")["metadata"], json!({}));
    let page = squeezed(&keepup(here, &["info", "disk/second"]).stdout);
    assert!(page.contains(" run 20 ") && page.contains("sample: quartz"), "{page}");
    let again = keepup(here, &["record", "--volume", "disk", "--listen", "127.0.0.1:0", "--run", "20"]);
    assert_eq!(again.code(), 2, "{again:#?}");
    assert!(again.stderr.contains("run 20 is on the volumes already"), "{again:#?}");
    let nowhere = keepup(here, &["record", "--to-null", "--meta", "sample=quartz"]);
    assert_eq!(nowhere.code(), 2, "{nowhere:#?}");
    assert_eq!(std::fs::read_dir(here.join("disk")).unwrap().count(), 3, "a refused command creates nothing");
}

#[test]
fn a_run_limit_seals_the_recording() {
    let directory = directory();
    let here = directory.path();
    for (name, limit, least) in [("events", "20 events", (20, 0)), ("bytes", "5 MB", (0, 5_000_000))] {
        let account = run(here, name, &["--stop-after", limit], "3000");
        assert!(account["ended"].as_str().unwrap().ends_with("as asked"), "{account}");
        let received = count(&account["received"]);
        assert!(received.0 >= least.0 && received.1 >= least.1, "{received:?} for {limit}");
        assert!(received.0 < 3000, "{received:?} for {limit}");
        assert_eq!(received, count(&account["durable"]));
        assert_eq!(
            events(&account["received"]),
            info(here, name)["streams"]["0"]["events"].as_u64().unwrap()
        );
    }
}

#[test]
fn invalid_run_settings_are_refused_before_anything_is_created() {
    let directory = directory();
    let here = directory.path();
    std::fs::create_dir(here.join("disk")).unwrap();
    let long = format!("key={}", "x".repeat(2000));
    let cases: [&[&str]; 6] = [
        &["--stop-after", "0 events"],
        &["--stop-after", "tea time"],
        &["--stop-after", "1 s", "--stop-after", "2 s"],
        &["--meta", "sample"],
        &["--meta", "a=1", "--meta", "a=2"],
        &["--meta", &long],
    ];
    for flags in cases {
        let base = ["record", "--volume", "disk", "--listen", "127.0.0.1:0"];
        let refused = keepup(here, &[&base[..], flags].concat());
        assert_eq!(refused.code(), 2, "{flags:?}: {refused:#?}");
    }
    assert_eq!(std::fs::read_dir(here.join("disk")).unwrap().count(), 0);
}

/// A received HTTP request.
#[derive(Debug)]
struct Request {
    line: String,
    authorization: Option<String>,
    body: String,
}

/// A server with these responses, one per connection. Its thread returns the requests.
fn server(answers: Vec<(u16, Value)>) -> (String, JoinHandle<Vec<Request>>) {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let serve =
        move || answers.into_iter().map(|answer| one(&listener.accept().unwrap().0, &answer)).collect();
    (address, std::thread::spawn(serve))
}

fn one(stream: &TcpStream, (status, answer): &(u16, Value)) -> Request {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let (mut authorization, mut length) = (None, 0);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        match name.to_lowercase().as_str() {
            "authorization" => authorization = Some(value.to_owned()),
            "content-length" => length = value.parse().unwrap(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let text = answer.to_string();
    let head = format!("HTTP/1.1 {status} x\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", text.len());
    (&*stream).write_all(format!("{head}{text}").as_bytes()).unwrap();
    Request { line: line.trim_end().to_owned(), authorization, body: String::from_utf8(body).unwrap() }
}

fn in_state(state: RunState) -> (u16, Value) {
    let commands: Vec<RunCommand> = state.commands().to_vec();
    (200, json!(RunStatus { state, revision: 5, controlled: true, commands, ..RunStatus::default() }))
}

#[test]
fn ctl_sends_the_documented_requests() {
    let directory = directory();
    let here = directory.path();
    secret_file(here, "token", "0123456789abcdef\n");
    let (to, asked) = server(vec![
        in_state(RunState::Idle),
        in_state(RunState::Configured),
        in_state(RunState::Armed),
        in_state(RunState::Recording),
        in_state(RunState::Idle),
    ]);
    let ctl = |flags: &[&str]| {
        let base = ["ctl", "--to", &to, "--token-file", "token", "--json"];
        let run = keepup(here, &[&base[..], flags].concat());
        assert_eq!(run.code(), 0, "{run:#?}");
        printed(&run)["state"].clone()
    };
    assert_eq!(ctl(&["status"]), "idle");
    let settings =
        ["configure", "--run", "7", "--meta", "sample=quartz", "--stop-after", "2 h", "--volume", "/d"];
    assert_eq!(ctl(&settings), "configured");
    assert_eq!(ctl(&["arm", "--revision", "5"]), "armed");
    assert_eq!(ctl(&["start"]), "recording");
    assert_eq!(ctl(&["reset"]), "idle");
    let asked = asked.join().unwrap();
    let lines: Vec<&str> = asked.iter().map(|request| request.line.as_str()).collect();
    let expected = ["GET /api/v1/run", "POST /api/v1/run/configure", "POST /api/v1/run/arm"];
    let expected = expected.into_iter().chain(["POST /api/v1/run/start", "POST /api/v1/run/reset"]);
    assert_eq!(lines, expected.map(|line| format!("{line} HTTP/1.1")).collect::<Vec<_>>());
    assert!(
        asked.iter().all(|r| r.authorization.as_deref() == Some("Bearer 0123456789abcdef")),
        "{asked:#?}"
    );
    let body = |at: usize| serde_json::from_str::<Value>(&asked[at].body).unwrap();
    let stop = json!({"seconds": 7200.0});
    let settings = json!({"run": 7, "metadata": {"sample": "quartz"}, "volumes": ["/d"], "stop": stop});
    assert_eq!(body(1), json!({"settings": settings}));
    assert_eq!(body(2), json!({"revision": 5}));
    assert_eq!(body(3), json!({}));
}

#[test]
fn every_response_has_its_exit_code() {
    let directory = directory();
    let here = directory.path();
    let problem = |status: u16| (status, json!({"error": "it cannot be", "hint": "try later"}));
    let ctl = |answers: Vec<(u16, Value)>, flags: &[&str]| {
        let (to, asked) = server(answers);
        let run = keepup(here, &[&["ctl", "--to", &to], flags].concat());
        asked.join().unwrap();
        run
    };
    for (status, code) in [(401, 3), (403, 3), (409, 3), (422, 3), (500, 1), (503, 4)] {
        let run = ctl(vec![problem(status)], &["arm"]);
        assert_eq!(run.code(), code, "{status}: {run:#?}");
        assert!(run.stderr.contains("it cannot be"), "{run:#?}");
        assert!(run.stderr.contains("hint: "), "{run:#?}");
    }
    assert_eq!(ctl(vec![in_state(RunState::Error)], &["status"]).code(), 1);
    let waited = ctl(
        vec![in_state(RunState::Recording), in_state(RunState::Draining), in_state(RunState::Sealed)],
        &["wait", "sealed"],
    );
    assert_eq!(waited.code(), 0, "{waited:#?}");
    let failed = ctl(vec![in_state(RunState::Recording), in_state(RunState::Error)], &["wait", "sealed"]);
    assert_eq!(failed.code(), 1, "{failed:#?}");
    let late = vec![in_state(RunState::Recording), in_state(RunState::Recording)];
    let late = ctl(late, &["wait", "sealed", "--timeout", "1 us"]);
    assert!(late.code() == 5 && late.stderr.contains("timeout: the state is "), "{late:#?}");
    let lost = ctl(vec![in_state(RunState::Draining), in_state(RunState::Sealed)], &["stop", "--wait"]);
    assert_eq!(lost.code(), 1, "a run with uncounted events: {lost:#?}");
    let unreachable = keepup(here, &["ctl", "--to", "http://127.0.0.1:1", "status"]);
    assert!(
        unreachable.code() == 4 && unreachable.stderr.contains("at http://127.0.0.1:1: Connection refused"),
        "{unreachable:#?}"
    );
    assert_eq!(keepup(here, &["ctl", "--to", "https://127.0.0.1:1", "status"]).code(), 2);
}
