//! `keepup serve`: same data as from the other commands, and nothing on the disks changes. JSON messages.
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use keepup_testkit::disk::FaultyDisk;
use keepup_testkit::root::{allowed, skip};
use keepup_testkit::{Program, pipe};
use serde_json::Value;

use crate::common::{FILE_SERVER, directory, get, json, keepup, recorder, secret_file, start, stored};

/// A server on a free port, and the address of its page.
fn serve(here: &Path, more: &[&str]) -> (Program, String) {
    let mut server = start(here, &[&["serve", "--http", "127.0.0.1:0"][..], more].concat());
    let page = server.line("live page: http://");
    (server, page)
}

fn list(page: &str, path: &str) -> Value {
    let (status, body) = get(page, path, "");
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// All files below a directory with their contents.
fn content(directory: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => content(&path, all),
            false => _ = all.insert(path.clone(), fs::read(&path).unwrap()),
        }
    }
}

#[test]
fn serving_results_and_recordings_changes_nothing() {
    let place = directory();
    let here = place.path();
    stored(here, "fit", "qualify-v2.json");
    stored(here, "old", "disk-v4.json");
    stored(here, "new", "disk-v4.json");
    let mut recording = recorder(here, &["data/a", "data/b"], &[]);
    let to = recording.address().to_string();
    let source = ["source", "csl", "--to", &to, "--events", "64", "--rate", "max"];
    let sent = keepup(here, &source);
    assert_eq!(sent.code(), 0, "{sent:#?}");
    assert_eq!(recording.wait().code(), 0);
    let mut before = BTreeMap::new();
    content(here, &mut before);

    let (server, page) = serve(here, &["results", "data"]);
    let results = list(&page, "/api/v1/results");
    let entries = results["entries"].as_array().unwrap();
    assert_eq!((entries.len(), results["unreadable"].as_array().unwrap().len()), (3, 0), "{results}");
    for entry in entries {
        let path = format!("/results/{}", entry["id"].as_str().unwrap());
        let (status, html) = get(&page, &path, "");
        let run = keepup(here, &["report", entry["directory"].as_str().unwrap(), "--html", "../page.html"]);
        assert_eq!((status, run.code()), (200, 0), "{run:#?}");
        let file = here.join("../page.html");
        assert_eq!(html, fs::read_to_string(&file).unwrap(), "served and written are the same");
        fs::remove_file(file).unwrap();
    }
    let disks: Vec<&str> =
        entries.iter().filter(|e| e["kind"] == "disk").map(|e| e["id"].as_str().unwrap()).collect();
    let (status, html) = get(&page, &format!("/compare?a={}&b={}", disks[0], disks[1]), "");
    assert!(status == 200 && html.starts_with("<!DOCTYPE html>"), "{html:.300}");

    let recordings = list(&page, "/api/v1/recordings");
    let [entry] = &recordings["entries"].as_array().unwrap()[..] else { panic!("{recordings}") };
    assert_eq!((&entry["name"], &entry["state"]), (&"run".into(), &"sealed".into()));
    assert_eq!(entry["directories"].as_array().unwrap().len(), 2);
    let served = list(&page, &format!("/recordings/{}", entry["id"].as_str().unwrap()));
    let told = keepup(here, &["info", here.join("data/a/run").to_str().unwrap(), "--json"]);
    let streams = &json(&told)["streams"];
    assert_eq!(&served["streams"], streams);
    let streams = streams.as_object().unwrap();
    let events: u64 = streams.values().map(|stream| stream["events"].as_u64().unwrap()).sum();
    assert_eq!((&entry["events"], &entry["streams"]), (&events.into(), &streams.len().into()), "{entry}");
    assert!(events > 0 && entry["bytes"].as_u64() > Some(events), "{entry}");

    for path in ["/results/..%2f..%2fetc%2fpasswd", "/results/../../etc/passwd", "/recordings/%2e%2e"] {
        assert_eq!(get(&page, path, "").0, 404, "{path}");
    }
    server.signal("INT");
    let ended = server.wait();
    assert_eq!(ended.code(), 0, "{ended:#?}");
    assert!(ended.stdout.is_empty(), "{ended:#?}");
    let mut after = BTreeMap::new();
    content(here, &mut after);
    assert!(before == after, "{:?}", after.keys().filter(|path| !before.contains_key(*path)));
}

#[test]
fn a_served_recording_can_be_opened_remotely() {
    let place = directory();
    let here = place.path();
    let mut recording = recorder(here, &["data/a", "data/b"], &[]);
    let to = recording.address().to_string();
    let sent = keepup(here, &["source", "csl", "--to", &to, "--events", "64", "--rate", "max"]);
    assert_eq!((sent.code(), recording.wait().code()), (0, 0), "{sent:#?}");
    let (_server, page) = serve(here, &["data"]);
    let to = format!("http://{}", page.split('/').next().unwrap());
    let ctl = |words: &[&str]| keepup(here, &[&["ctl", "--to", &to][..], words].concat());

    let listed = json(&ctl(&["recordings", "--json"]));
    let id = listed["entries"][0]["id"].as_str().unwrap();
    assert!(ctl(&["recordings"]).stdout.trim_start().starts_with(id));
    let place = here.join("data/a/run").canonicalize().unwrap();
    let info = keepup(here, &["info", place.to_str().unwrap()]);
    for which in [id, "run", "last"] {
        let remote = ctl(&["info", which]);
        assert_eq!((remote.code(), &remote.stdout), (0, &info.stdout), "{remote:#?}");
    }
    let mut files = Vec::new();
    let base = ["--stream", "0", "--from", "5", "--count", "3", "--out"];
    let far = ctl(&[&["cat", "run"][..], &base, &["far.raw"]].concat());
    let near = keepup(here, &[&["cat", "data/a/run"][..], &base, &["near.raw"]].concat());
    for (run, file) in [(far, "far.raw"), (near, "near.raw")] {
        assert_eq!(run.code(), 0, "{run:#?}");
        files.push(fs::read(here.join(file)).unwrap());
    }
    assert!(files[0] == files[1] && files[0].len() > 300_000, "{} bytes", files[0].len());
    for (words, code) in [
        (&["info", "no-such"][..], 3),
        (&["cat", "run", "--stream", "99"], 3),
        (&["cat", "run", "--from", "64"], 3),
        (&["cat", "run", "--from", "62", "--count", "9", "--out", "few.raw"], 1),
        (&["cat", "run", "--out", "far.raw"], 3),
        (&["status"], 3),
    ] {
        let run = ctl(words);
        assert_eq!(run.code(), code, "{words:?}: {run:#?}");
        assert!(code != 3 || run.stderr.contains("hint: "), "{words:?}: {run:#?}");
    }
    assert_eq!(fs::read(here.join("far.raw")).unwrap(), files[1], "an existing file is not overwritten");
}

#[test]
fn only_a_generated_token_is_printed() {
    let place = directory();
    let here = place.path();
    fs::create_dir(here.join("results")).unwrap();
    let (server, page) = serve(here, &[]);
    let token = page.split_once("/#token=").unwrap().1;
    assert!(token.len() == 32 && token.bytes().all(|b| b.is_ascii_hexdigit()), "{page}");
    server.signal("TERM");
    assert_eq!(server.wait().code(), 0);

    secret_file(here, "token", "a-token-of-20-letters\n");
    let (server, page) = serve(here, &["--token-file", "token"]);
    assert!(page.ends_with('/'), "{page}");
    server.signal("TERM");
    let run = server.wait();
    assert!(!run.stderr.contains("a-token-of"), "{run:#?}");
}

#[test]
fn serve_refuses_invalid_arguments_with_a_reason() {
    let place = directory();
    let here = place.path();
    let none = keepup(here, &["serve"]);
    assert!(none.code() == 2 && none.stderr.contains("hint: keepup serve DIR"), "{none:#?}");
    fs::create_dir(here.join("results")).unwrap();
    secret_file(here, "file", "short");
    fs::write(here.join("shared"), "a-token-of-20-letters").unwrap();
    fs::set_permissions(here.join("shared"), fs::Permissions::from_mode(0o640)).unwrap();
    let cases: [(&[&str], i32, &str); 6] = [
        (&["serve", "nowhere"], 2, "cannot serve nowhere"),
        (&["serve", "file"], 2, "it is not a directory"),
        (&["serve", "--token-file", "file"], 2, "shorter than 16"),
        (&["serve", "--token-file", "shared"], 3, "hint: chmod 600 shared"),
        (&["serve", "--token-file", "nothing"], 4, "cannot read the token"),
        (&["serve", "--http", "0.0.0.0:0"], 3, "no token was given"),
    ];
    for (arguments, code, why) in cases {
        let run = keepup(here, arguments);
        assert!(run.code() == code && run.stderr.contains(why), "{arguments:?}: {run:#?}");
    }
}

#[test]
fn serving_beyond_loopback_requires_the_token() {
    let place = directory();
    let here = place.path();
    stored(here, "a", "disk-v4.json");
    secret_file(here, "token", "a-token-of-20-letters\n");
    let (server, page) = serve(here, &["--http", "0.0.0.0:0", "--token-file", "token"]);
    let page = page.replace("0.0.0.0", "127.0.0.1");
    assert_eq!(get(&page, "/api/v1/results", "").0, 401);
    let token = "Authorization: Bearer a-token-of-20-letters\r\n";
    assert_eq!(get(&page, "/api/v1/results", token).0, 200);
    server.signal("TERM");
    assert_eq!(server.wait().code(), 0);
}

/// JSON messages, each with all required fields.
fn messages(stderr: &str) -> Vec<Value> {
    let message = |line: &str| -> Value {
        let message: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{line:?}: {e}"));
        let time = message["time"].as_str().unwrap();
        assert!(time.len() == 24 && time.ends_with('Z') && time.as_bytes()[19] == b'.', "{line}");
        assert!(["info", "warning", "error"].contains(&message["level"].as_str().unwrap()), "{line}");
        assert!(message["message"].is_string(), "{line}");
        message
    };
    stderr.lines().map(message).collect()
}

#[test]
fn messages_are_json_on_request_and_results_unchanged() {
    let place = directory();
    let here = place.path();
    stored(here, "a", "disk-v4.json");
    let plain = keepup(here, &["report", "results/a", "--markdown"]);
    let said = keepup(here, &["--log", "json", "report", "results/a", "--markdown"]);
    assert_eq!((said.code(), &said.stdout), (0, &plain.stdout));
    let run = keepup(here, &["info", "nowhere", "--log", "json"]);
    let [error] = &messages(&run.stderr)[..] else { panic!("{run:#?}") };
    assert_eq!((run.code(), &error["level"]), (2, &"error".into()), "{run:#?}");
    assert!(!error["message"].as_str().unwrap().starts_with("error: "));

    let mut recording =
        start(here, &["record", "--listen", "127.0.0.1:0", "--to-null", "--log", "json", "--json"]);
    let listening = recording.line("{\"level\":\"info\",\"message\":\"listening on ");
    let address = listening.split('"').next().unwrap();
    let sent = keepup(here, &["source", "csl", "--to", address, "--events", "8", "--rate", "max"]);
    assert_eq!(sent.code(), 0, "{sent:#?}");
    let run = recording.wait();
    assert!(json(&run).is_object() && messages(&run.stderr).len() > 1, "{run:#?}");
}

#[test]
fn the_environment_selects_json_messages_and_the_flag_overrides_it() {
    let place = directory();
    let run = |value: &str, more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_keepup"));
        command.args(["info", "nowhere"]).args(more).env("KEEPUP_LOG", value).current_dir(place.path());
        let ended = command.output().unwrap();
        (ended.status.code().unwrap(), String::from_utf8(ended.stderr).unwrap())
    };
    assert_eq!(messages(&run("json", &[]).1).len(), 1);
    assert!(run("json", &["--log", "text"]).1.starts_with("error: "));
    assert!(run("text", &[]).1.starts_with("error: "));
    let (code, said) = run("loud", &[]);
    assert!(code == 2 && said.contains("KEEPUP_LOG is \"loud\""), "{code} {said}");
}

#[test]
fn a_pipe_in_place_of_a_result_does_not_block_the_server() {
    let place = directory();
    let here = place.path();
    stored(here, "good", "disk-v4.json");
    stored(here, "bad", "disk-v4.json");
    for file in ["result.json", "events.jsonl"] {
        fs::remove_file(here.join("results/bad").join(file)).unwrap();
        pipe(&here.join("results/bad").join(file));
    }
    let (_server, page) = serve(here, &["results"]);
    let results = list(&page, "/api/v1/results");
    assert_eq!(results["entries"].as_array().unwrap().len(), 1, "{results}");
    assert!(results["unreadable"][0]["why"].as_str().unwrap().contains("not a regular file"), "{results}");
    let refused = keepup(here, &["report", "results/bad"]);
    assert!(refused.code() != 0 && refused.stderr.contains("not a regular file"), "{refused:#?}");
}

#[test]
#[ignore = "system"]
fn an_unresponsive_disk_blocks_only_its_own_results() {
    const TEST: &str = "serve::an_unresponsive_disk_blocks_only_its_own_results";
    if !allowed(TEST) {
        return;
    }
    let place = directory();
    let here = place.path();
    let disk = match FaultyDisk::mount(&here.join("disk"), FILE_SERVER) {
        Ok(disk) => disk,
        Err(why) => return skip(TEST, &why),
    };
    stored(here, "good", "disk-v4.json");
    fs::create_dir(here.join("disk/more")).unwrap();
    let (_server, page) = serve(here, &["results", "disk"]);
    let results = list(&page, "/api/v1/results");
    let good = format!("/results/{}", results["entries"][0]["id"].as_str().unwrap());
    std::thread::scope(|scope| {
        let frozen = scope.spawn(|| disk.freeze(std::time::Duration::from_secs(20)));
        // The cached list expires after a second, so the next request scans the disk and waits.
        std::thread::sleep(std::time::Duration::from_secs(2));
        let waiting = scope.spawn(|| list(&page, "/api/v1/results"));
        std::thread::sleep(std::time::Duration::from_secs(2));
        assert!(!waiting.is_finished(), "the list waits for the disk");
        assert_eq!(get(&page, &good, "").0, 200);
        assert_eq!(list(&page, "/api/v1/results")["entries"], results["entries"]);
        assert!(
            !frozen.is_finished() && !waiting.is_finished(),
            "the request did not wait for the other disk"
        );
        assert_eq!(waiting.join().unwrap()["entries"], results["entries"]);
    });
}
