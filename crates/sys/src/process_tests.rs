//! Children that exit, that keep running, and that are dropped.
use std::path::PathBuf;
use std::process::Stdio;

use super::*;

const LONG: Duration = Duration::from_secs(60);

fn shell(script: &str) -> Process {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::null());
    Process::start(command).unwrap()
}

#[test]
fn the_exit_status_is_reported() {
    assert_eq!(shell("exit 7").wait(LONG).unwrap().unwrap().status.code(), Some(7));
    let killed = shell("kill -KILL $$").wait(LONG).unwrap().unwrap();
    assert_eq!(killed.status.signal(), Some(9));
}

#[test]
fn a_second_wait_gives_the_same_answer() {
    let mut child = shell("exit 3");
    let first = child.wait(LONG).unwrap();
    assert!(first.is_some());
    assert_eq!(child.wait(Duration::ZERO).unwrap(), first);
}

#[test]
fn cpu_time_and_memory_include_grandchildren() {
    let idle = shell("exit 0").wait(LONG).unwrap().unwrap();
    let busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let own = shell(busy).wait(LONG).unwrap().unwrap();
    let theirs = shell(&format!("({busy}); exit 0")).wait(LONG).unwrap().unwrap();
    assert!(own.user_ns > idle.user_ns && theirs.user_ns > idle.user_ns, "{idle:?} {own:?} {theirs:?}");
    assert!(idle.resident_bytes_max > 100 << 10, "{idle:?}");
}

#[test]
fn a_running_child_is_killed_when_dropped() {
    let mut child = shell("exec sleep 600");
    assert_eq!(child.wait(Duration::from_millis(10)).unwrap(), None);
    let process = PathBuf::from(format!("/proc/{}", child.id()));
    assert!(process.exists());
    drop(child);
    assert!(!process.exists());
}

#[test]
fn a_program_that_does_not_exist_is_an_error() {
    let error = Process::start(Command::new("no-such-program-here")).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
}

#[test]
fn an_interrupted_child_ends_by_that_signal_and_is_not_signalled_again() {
    let mut command = Command::new("sleep");
    command.arg("60");
    let mut process = Process::start(command).unwrap();
    process.interrupt().unwrap();
    let ended = process.wait(Duration::from_secs(30)).unwrap().unwrap();
    assert_eq!(ended.status.signal(), Some(2));
    process.interrupt().unwrap();
}
