//! Signals: the first one says what is left, others shortly after it are ignored, and a later one cuts off.
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use keepup_testkit::Program;

use crate::common::{count, directory, json, keepup, recorder, segments, start, until, verified};

const STOPPING: &str = "stopping: ";

/// A recorder that is receiving events, and their source.
fn receiving(here: &Path) -> (Program, Program) {
    let mut record = recorder(here, &["disk"], &[]);
    let to = record.address().to_string();
    let source = start(here, &["source", "csl", "--to", &to, "--time", "300s", "--json"]);
    until("a segment is full", || segments(&here.join("disk/run")).len() > 2);
    (record, source)
}

/// GNU `timeout` sends its signal to the command and then to its process group.
#[test]
fn two_signals_at_once_stop_a_recording_cleanly() {
    let place = directory();
    let here = place.path();
    let (record, source) = receiving(here);
    // Both are pending when the recorder runs again, so no time passes between them.
    record.signal("STOP");
    record.signal("INT");
    record.signal("TERM");
    record.signal("CONT");
    let run = record.wait();
    let said: Vec<&str> = run.stderr.lines().filter(|line| line.starts_with(STOPPING)).collect();
    let [said] = said[..] else { panic!("one message: {run:#?}") };
    assert!(said.ends_with(" to write; press Ctrl-C again after 2 s to cut off"), "{said}");
    let report = json(&run);
    assert_eq!(report["received"], report["durable"], "{run:#?}");
    assert_eq!(verified(here, "disk/run"), count(&report["durable"]));
    source.signal("KILL");
    source.wait();
}

/// The recording waits for the program that runs after a segment, so the later signal finds it.
#[test]
fn a_later_signal_cuts_off_and_names_the_command_to_use_next() {
    let place = directory();
    let here = place.path();
    let (held, runs) = (here.join("held"), here.join("runs"));
    std::fs::write(&held, "").unwrap();
    let script = "#!/bin/sh\ntouch runs\nwhile [ -e held ]; do sleep 0.1; done\n";
    std::fs::write(here.join("slow.sh"), script).unwrap();
    let mode = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(here.join("slow.sh"), mode).unwrap();
    let after_seal = ["--after-seal", "./slow.sh", "--after-seal-timeout", "600 s"];
    let mut record = recorder(here, &["disk"], &after_seal);
    let to = record.address().to_string();
    let source = start(here, &["source", "csl", "--to", &to, "--events", "8", "--rate", "max"]).wait();
    assert_eq!(source.code(), 0, "{source:#?}");
    until("the program runs", || runs.exists());
    record.signal("INT");
    record.line(STOPPING);
    // Ignored in the first 2 s, so it is repeated. A process that has ended has no command line.
    let command_line = format!("/proc/{}/cmdline", record.id());
    until("it is cut off", || {
        record.signal("INT");
        std::thread::sleep(Duration::from_millis(100));
        std::fs::read(&command_line).unwrap_or_default().is_empty()
    });
    std::fs::remove_file(&held).unwrap();
    let run = record.wait();
    assert_eq!(run.code(), 130, "{run:#?}");
    assert!(run.stderr.contains("error: cut off; not done: 0 B to write"), "{run:#?}");
    let hint = run.stderr.lines().find_map(|line| line.strip_prefix("hint: keepup ")).unwrap();
    let command: Vec<&str> = hint.split(' ').collect();
    assert_eq!(command, ["recover", "disk/run"], "{run:#?}");
    let recovered = keepup(here, &command);
    assert_eq!(recovered.code(), 0, "{recovered:#?}");
}

/// Runs keepup with a file size limit of 4 MiB.
fn limited(here: &Path, arguments: &[&str]) -> Program {
    // POSIX: in units of 512 bytes.
    let shell = ["-c", "ulimit -f 8192 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_keepup")];
    Program::start("sh", &[&shell, arguments].concat(), here)
}

#[test]
fn at_the_file_size_limit_a_volume_is_full_and_no_process_is_killed() {
    let place = directory();
    let here = place.path();
    std::fs::create_dir(here.join("disk")).unwrap();
    let volume = ["--volume", "disk"];
    let record = ["record", "--listen", "127.0.0.1:0", "--name", "run", "--pool", "64 MiB"];
    let trial = ["trial", "csl", "--events", "200", "--rate", "max", "--pool", "64 MiB"];
    let soak = ["soak", "--size", "16 MiB", "--copies", "1"];
    let sweep = ["disk", "sweep", "--sizes", "1 MiB", "--depths", "1", "--time", "100ms", "--file", "64 MiB"];
    for arguments in [&record[..], &trial, &soak, &sweep] {
        let run = limited(here, &[arguments, &volume].concat()).wait();
        let code = run.status.code();
        assert!(matches!(code, Some(1 | 4)), "{arguments:?}: {run:#?}");
        assert!(run.stderr.contains("File too large") || run.stdout.contains("File too large"), "{run:#?}");
    }
}
