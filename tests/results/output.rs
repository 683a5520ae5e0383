//! Output that cannot be written: every verb that prints a result says so, and does not exit as if it had
//! printed it.
use std::fs::File;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::common::{directory, recorder, start, stored};

/// Runs keepup with this standard output.
fn run(here: &Path, arguments: &[&str], stdout: Stdio) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_keepup"));
    command.args(arguments).current_dir(here).stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped());
    command.spawn().unwrap().wait_with_output().unwrap()
}

#[test]
fn every_verb_reports_that_its_output_could_not_be_written() {
    let place = directory();
    let here = place.path();
    let mut record = recorder(here, &["disk"], &[]);
    let to = record.address().to_string();
    let source = start(here, &["source", "csl", "--to", &to, "--events", "8", "--rate", "max"]).wait();
    assert_eq!(source.code(), 0, "{source:#?}");
    assert_eq!(record.wait().code(), 0);
    std::fs::write(here.join("t.txt"), "  8,0 1 1 0.000000000 8699 Q WS 2048 + 8 [fio]\n").unwrap();
    let result = stored(here, "q", "qualify-v2.json").display().to_string();
    let verbs: &[&[&str]] = &[
        &["--version"],
        &["--help"],
        &["record", "--help"],
        &["info", "disk/run"],
        &["info", "disk/run", "--json"],
        &["verify", "disk/run"],
        &["verify", "disk/run", "--json"],
        &["recover", "disk/run"],
        &["cat", "disk/run", "--stream", "0", "--count", "2"],
        &["trace", "info", "t.txt", "--json"],
        &["profile", "list"],
        &["profile", "show", "csl"],
        &["generate", "completions", "bash"],
        &["report", &result],
        &["report", &result, "--full"],
        &["report", &result, "--markdown"],
        &["report", &result, "--badge"],
        &["predict", "csl", "--json"],
        &["doctor", "--volume", "disk"],
        &["qualify", "csl", "--volume", "disk", "--dry-run"],
        &["trial", "csl", "--to-null", "--events", "4", "--rate", "max", "--json"],
        &["soak", "--volume", "disk", "--quick", "--dry-run"],
        &["disk", "sweep", "--volume", "disk", "--dry-run"],
        &["net", "tcp", "self", "--dry-run"],
        &["reproduce", "romanis", "--print"],
    ];
    for arguments in verbs {
        let whole = run(here, arguments, Stdio::piped());
        assert!(!whole.stdout.is_empty(), "{arguments:?} prints: {whole:#?}");
        let code = whole.status.code().unwrap();
        let full = run(here, arguments, File::create("/dev/full").unwrap().into());
        let stderr = String::from_utf8_lossy(&full.stderr);
        let expected = if code == 0 { 4 } else { code };
        assert_eq!(full.status.code(), Some(expected), "{arguments:?}: {stderr}");
        assert!(stderr.contains("error: cannot write"), "{arguments:?}: {stderr}");
        assert!(stderr.contains("No space left on device"), "{arguments:?}: {stderr}");
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let place = directory();
    for arguments in [&["profile", "list"][..], &["--help"], &["generate", "completions", "bash"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let run = run(place.path(), arguments, writer.into());
        let stderr = String::from_utf8_lossy(&run.stderr);
        assert_eq!((run.status.code(), &*stderr), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn exports_and_reports_on_a_full_device_are_errors() {
    let place = directory();
    let here = place.path();
    let result = stored(here, "q", "qualify-v2.json").display().to_string();
    for arguments in
        [&["report", &result, "--html", "/dev/full"][..], &["predict", "csl", "--html", "/dev/full"]]
    {
        let run = run(here, arguments, Stdio::null());
        let stderr = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(4), "{arguments:?}: {stderr}");
        assert!(stderr.contains("No space left on device"), "{arguments:?}: {stderr}");
    }
}
