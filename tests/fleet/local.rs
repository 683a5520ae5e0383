//! A fleet on one machine, over loopback.
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use keepup_testkit::Program;

use super::{Fleet, down, members, status};
use crate::common::{directory, json, keepup, start, until};

pub(super) fn free() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// Launcher of agents on this machine.
pub(super) fn launcher() -> String {
    format!("[launcher]\npreset = \"local\"\nprogram = \"{}\"", env!("CARGO_BIN_EXE_keepup"))
}

fn write(here: &Path, test: &str, hosts: usize) -> (Fleet, String) {
    let listen = free();
    (Fleet::write(here, test, hosts, &listen, &launcher()), listen)
}

#[test]
fn a_fleet_comes_up_answers_and_goes_down() {
    let place = directory();
    let here = place.path();
    let (fleet, listen) = write(here, "updown", 3);
    let mut up = start(here, &["fleet", "up", "fleet.toml"]);
    fleet.wait_for_all(&mut up);
    let found = status(here);
    assert_eq!((found["name"].as_str(), found["controller"].as_str()), (Some("updown"), Some(&*listen)));
    let hosts = found["hosts"].as_array().unwrap();
    for (host, name) in hosts.iter().zip(&fleet.hosts) {
        assert_eq!((host["name"].as_str(), host["role"].as_str()), (Some(&**name), Some("recorder")));
        assert_eq!(host["report"]["state"]["is"], "idle", "{host}");
    }
    // One clock on one machine: the error of each offset must cover it.
    until("offsets are known", || {
        let known = status(here);
        known["hosts"].as_array().unwrap().iter().all(|host| {
            let report = &host["report"];
            report["clock_offset_ns"]
                .as_i64()
                .is_some_and(|offset| offset.unsigned_abs() <= report["clock_error_ns"].as_u64().unwrap())
        })
    });
    let probe = keepup(here, &["fleet", "probe", "fleet.toml", "--json"]);
    let found = json(&probe);
    assert_eq!((found["rounds"].as_u64(), found["hosts"].as_u64()), (Some(50), Some(3)), "{probe:#?}");
    assert!(found["median_ns"].as_u64().unwrap() <= found["max_ns"].as_u64().unwrap());
    let second = keepup(here, &["fleet", "up", "fleet.toml"]);
    assert_eq!(second.code(), 4, "{second:#?}");
    assert!(second.stderr.contains("a controller already runs for this file"), "{second:#?}");
    assert_eq!(members(here), 3, "the second one disturbed the first");
    let said = down(here, &fleet, up);
    assert!(said.contains("ends: `keepup fleet down`"), "{said}");
    let gone = keepup(here, &["fleet", "status", "fleet.toml"]);
    assert!(gone.code() == 4 && gone.stderr.contains("hint: keepup fleet up FILE"), "{gone:#?}");
}

#[test]
fn ctrl_c_ends_all_agents() {
    let place = directory();
    let here = place.path();
    let (fleet, _) = write(here, "ctrlc", 2);
    let mut up = start(here, &["fleet", "up", "fleet.toml"]);
    fleet.wait_for_all(&mut up);
    up.signal("INT");
    let run = up.wait();
    assert_eq!(run.code(), 0, "{run:#?}");
    assert!(run.stdout.contains("fleet ctrlc: 2 of 2 hosts"), "{run:#?}");
    until("agents are left", || fleet.gone());
}

#[test]
fn a_host_that_cannot_start_does_not_stop_the_others() {
    let place = directory();
    let here = place.path();
    let (fleet, _) = write(here, "absent", 2);
    let file = std::fs::read_to_string(here.join("fleet.toml")).unwrap();
    let broken = "[[host]]\nname = \"broken\"\nrole = \"source\"\n\
                  launcher = [\"sh\", \"-c\", \"echo no route to {host} >&2; exit 255 # {agent}\"]\n\
                  [[host]]\nname = \"nodisk\"\nrole = \"spare\"\nvolumes = [\"/nonexistent/disk\"]\n";
    std::fs::write(here.join("fleet.toml"), file + broken).unwrap();
    let mut up = start(here, &["fleet", "up", "fleet.toml"]);
    fleet.wait_for_all(&mut up);
    let why = "its program ended before it joined: exit status:";
    up.line("broken: no route to broken");
    up.line(&format!("warning: broken is not in the fleet: {why} 255"));
    up.line("nodisk: error: cannot use /nonexistent/disk: No such file or directory");
    up.line(&format!("warning: nodisk is not in the fleet: {why} 3"));
    let found = keepup(here, &["fleet", "status", "fleet.toml"]);
    assert!(found.code() == 1 && found.stdout.contains("fleet absent: 2 of 4 hosts"), "{found:#?}");
    assert_eq!(found.stdout.matches("MISSING").count(), 2, "{found:#?}");
    assert_eq!(keepup(here, &["fleet", "down", "fleet.toml"]).code(), 0);
    assert_eq!(up.wait().code(), 4);
    until("agents are left", || fleet.gone());
}

/// A server of ssh joins the arguments of the client with spaces and gives them to a shell.
#[test]
fn the_agents_command_survives_a_remote_shell() {
    let place = directory();
    let here = place.path();
    let (fleet, _) = write(here, "shell", 1);
    let file = std::fs::read_to_string(here.join("fleet.toml")).unwrap();
    let script = r#"shift; exec sh -c \"$*\""#;
    let command = format!("command = [\"sh\", \"-c\", \"{script}\", \"ssh\", \"{{host}}\", \"{{agent}}\"]");
    std::fs::write(here.join("fleet.toml"), file.replace("preset = \"local\"", &command)).unwrap();
    let mut up = start(here, &["fleet", "up", "fleet.toml"]);
    fleet.wait_for_all(&mut up);
    down(here, &fleet, up);
}

#[test]
fn strangers_on_the_port_disturb_nobody() {
    let place = directory();
    let here = place.path();
    let (fleet, listen) = write(here, "strangers", 2);
    let mut up = start(here, &["fleet", "up", "fleet.toml"]);
    up.line("fleet strangers: controller on ");
    let noise: Vec<u8> = (0..4_096).map(|_| fastrand::u8(..)).collect();
    let strangers: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(&*listen).unwrap()).collect();
    for (number, mut stranger) in strangers.iter().enumerate() {
        // The controller may have closed it; a part of them says nothing.
        if number % 2 == 0 {
            drop(stranger.write_all(&noise));
        }
    }
    fleet.wait_for_all(&mut up);
    assert_eq!(members(here), 2);
    down(here, &fleet, up);
}

#[test]
fn a_fleet_without_tls_says_so() {
    let place = directory();
    let here = place.path();
    let listen = free();
    let fleet = Fleet::write(here, "plain", 1, &listen, &format!("tls = false\n{}", launcher()));
    let mut up = start(here, &["fleet", "up", "fleet.toml"]);
    up.line(&format!("fleet plain: controller on {listen} without TLS, starting 1 agents"));
    fleet.wait_for_all(&mut up);
    down(here, &fleet, up);
}

/// Zenoh ends a path at `#` or `?`.
#[test]
fn the_directory_for_temporary_files_may_have_any_name() {
    let place = directory();
    let here = place.path();
    let (fleet, _) = write(here, "temporary", 1);
    let odd = here.join(format!("a#b?c{}", "x".repeat(100)));
    std::fs::create_dir(&odd).unwrap();
    let (odd, keepup) = (odd.display(), env!("CARGO_BIN_EXE_keepup"));
    let command = format!("TMPDIR='{odd}' exec '{keepup}' fleet up fleet.toml");
    let mut up = Program::start("sh", &["-c", &command], here);
    fleet.wait_for_all(&mut up);
    down(here, &fleet, up);
    assert_eq!(std::fs::read_dir(odd.to_string()).unwrap().count(), 0, "removed at the end");
}

/// Strangers must find neither a full table of descriptors at once nor one without a limit.
#[test]
fn a_controller_raises_a_low_limit_of_descriptors_to_a_bounded_one() {
    let place = directory();
    let here = place.path();
    let (fleet, _) = write(here, "limits", 1);
    let command = format!("ulimit -S -n 64; exec '{}' fleet up fleet.toml", env!("CARGO_BIN_EXE_keepup"));
    let mut up = Program::start("sh", &["-c", &command], here);
    fleet.wait_for_all(&mut up);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", up.id())).unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let limit = |column| line.split_whitespace().nth(column).unwrap().parse::<u64>().unwrap();
    let (soft, hard) = (limit(0), limit(1));
    assert_eq!(soft, hard.min(4_096 + 6), "{line}");
    down(here, &fleet, up);
}

/// Neither arguments nor environment nor open files of an agent contain its key.
#[test]
fn secrets_are_only_in_memory() {
    let place = directory();
    let here = place.path();
    let (fleet, _) = write(here, "secrets", 1);
    let mut up = start(here, &["fleet", "up", "fleet.toml"]);
    fleet.wait_for_all(&mut up);
    let process = format!("/proc/{}", fleet.agent(0).unwrap());
    let mut seen = Vec::new();
    for name in ["cmdline", "environ", "comm"] {
        seen.extend(std::fs::read(format!("{process}/{name}")).unwrap());
    }
    // A memfd is a file too; a pipe would not end.
    let open = std::fs::read_dir(format!("{process}/fd")).unwrap().flatten().map(|entry| entry.path());
    for file in open.filter(|file| std::fs::metadata(file).is_ok_and(|found| found.is_file())) {
        seen.extend(std::fs::read(file).unwrap());
    }
    assert!(!seen.windows(7).any(|window| window == b"PRIVATE"));
    down(here, &fleet, up);
}

#[test]
fn an_agent_that_was_started_by_hand_says_what_to_do() {
    let place = directory();
    let run = keepup(place.path(), &["fleet", "agent", "--name", "x"]);
    assert_eq!(run.code(), 4, "{run:#?}");
    assert!(run.stderr.contains("hint: agents are started by `keepup fleet up`"), "{run:#?}");
}

#[test]
fn a_bad_file_is_named() {
    let place = directory();
    let here = place.path();
    let run = keepup(here, &["fleet", "up", "fleet.toml"]);
    assert_eq!(run.code(), 2, "{run:#?}");
    assert!(run.stderr.contains("fleet.toml: No such file") && run.stderr.contains("hint: "), "{run:#?}");
    Fleet::write(here, "bad", 1, "0.0.0.0:1", &launcher());
    let run = keepup(here, &["fleet", "up", "fleet.toml"]);
    assert_eq!(run.code(), 2, "{run:#?}");
    assert!(run.stderr.contains("fleet.toml: listen: agents cannot connect to 0.0.0.0:1"), "{run:#?}");
    assert!(run.stderr.contains("hint: the management address"), "{run:#?}");
}

/// Held by tests whose sources run: their ports are fixed.
pub(super) static SOURCE_PORTS: Mutex<()> = Mutex::new(());

/// A fleet of two sources, two recorders and a spare.
pub(super) fn sources_and_recorders(here: &Path, test: &str) {
    let host = |name: &str, role: &str| {
        std::fs::create_dir_all(here.join(name)).unwrap();
        let volumes =
            if role == "source" { String::new() } else { format!("volumes = [{:?}]", here.join(name)) };
        format!("[[host]]\nname = \"{name}\"\nrole = \"{role}\"\ndata = \"127.0.0.1\"\n{volumes}\n")
    };
    let hosts = [("s0", "source"), ("r0", "recorder"), ("s1", "source"), ("r1", "recorder"), ("x", "spare")];
    let hosts: String = hosts.map(|(name, role)| host(name, role)).concat();
    // A machine of tests may stall for longer than the default lease.
    let head = "[timing]\nlease = \"20 s\"\norphan = \"30 s\"";
    let text = format!("name = \"{test}\"\nlisten = \"{}\"\n{head}\n{}\n{hosts}", free(), launcher());
    std::fs::write(here.join("fleet.toml"), text).unwrap();
}

#[test]
fn a_trial_records_on_all_recorders() {
    let _ports = SOURCE_PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    let place = directory();
    let here = place.path();
    sources_and_recorders(here, "trial");
    let trial = ["fleet", "trial", "fleet.toml", "romanis", "--streams", "5", "--event", "64 KiB"];
    let flags = ["--rate", "5 MB/s", "--time", "2s", "--json"];
    let run = keepup(here, &[&trial[..], &flags[..]].concat());
    assert_eq!(run.code(), 0, "{run:#?}");
    let found = json(&run);
    assert_eq!((found["lost_events"].as_u64(), found["hosts"].as_array().unwrap().len()), (Some(0), 2));
    // 2 s of 5 MB/s, less the part of an event in each stream.
    let events = found["received_events"].as_u64().unwrap();
    assert!((140..=160).contains(&events), "{found}");
    // Streams 0 and 3, and streams 1, 2 and 4.
    for (host, streams) in found["hosts"].as_array().unwrap().iter().zip([2, 3]) {
        let run = &host["outcome"]["run"];
        assert_eq!((run["streams"].as_u64(), run["faults"].as_u64()), (Some(streams), Some(0)), "{host}");
        assert_eq!(run["ledger"]["durable"], run["ledger"]["sent"], "{host}");
        assert!(host["outcome"]["start_delay_seconds"].as_f64().unwrap() >= 0.0, "{host}");
    }
    // Recordings are removed.
    for recorder in ["r0", "r1"] {
        assert_eq!(std::fs::read_dir(here.join(recorder)).unwrap().count(), 0);
    }
}

#[test]
fn a_trial_that_a_fleet_cannot_run_is_refused_before_it_starts() {
    let place = directory();
    let here = place.path();
    sources_and_recorders(here, "few");
    let run = keepup(here, &["fleet", "trial", "fleet.toml", "romanis", "--streams", "1"]);
    assert_eq!(run.code(), 2, "{run:#?}");
    assert!(
        run.stderr.contains("cannot run the trial: the profile has 1 streams for 2 recorders"),
        "{run:#?}"
    );
    assert!(run.stderr.contains("hint: --streams N"), "{run:#?}");
}

#[test]
fn a_recorder_that_fails_is_named_and_the_others_go_on() {
    let _ports = SOURCE_PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    let place = directory();
    let here = place.path();
    sources_and_recorders(here, "failed");
    std::fs::remove_dir(here.join("r1")).unwrap();
    let trial = ["fleet", "trial", "fleet.toml", "romanis", "--streams", "2", "--event", "64 KiB"];
    let run = keepup(here, &[&trial[..], &["--rate", "1 MB/s", "--time", "1s"]].concat());
    assert_eq!(run.code(), 1, "{run:#?}");
    assert!(run.stdout.contains("r1: it was not in the fleet when the run began"), "{run:#?}");
    assert!(run.stdout.contains("0 events lost"), "{run:#?}");
}
