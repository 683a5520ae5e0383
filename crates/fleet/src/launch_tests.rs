//! Programs that join, fail, hang, talk too much or end. Times are arguments; waits are for conditions.
use std::time::{Duration, Instant};

use super::*;

const LIMITS: Limits = Limits { parallel: 2, join_ns: 60_000_000_000 };

fn shell(host: HostId, script: &str) -> Start {
    Start { host, command: ["sh", "-c", script].map(str::to_owned).to_vec(), line: "secret\n".to_owned() }
}

fn launcher(starts: Vec<Start>) -> Launcher {
    Launcher::new(starts, LIMITS, Waker::new(|| {}))
}

/// Turns at `now_ns` until `is_done`.
fn until(launcher: &mut Launcher, is_done: impl Fn(&Launcher, &[LaunchEvent]) -> bool) -> Vec<LaunchEvent> {
    let (mut events, mut now_ns) = (Vec::new(), 1);
    let limit = Instant::now() + Duration::from_secs(60);
    while !is_done(launcher, &events) {
        assert!(Instant::now() < limit, "{events:?}");
        launcher.turn(now_ns, &mut events);
        // Much slower than real time, so that nothing expires.
        now_ns += 1_000_000;
        std::thread::sleep(Duration::from_millis(2));
    }
    events
}

fn line(host: HostId, text: &str) -> LaunchEvent {
    LaunchEvent::Line { host, text: text.to_owned() }
}

#[test]
fn an_agent_gets_its_line_and_an_open_input() {
    let mut launcher = launcher(vec![shell(4, "read a; echo got $a >&2; read b; echo end >&2; exit 3")]);
    let events = until(&mut launcher, |_, events| !events.is_empty());
    assert_eq!(events, [line(4, "got secret")]);
    assert!(launcher.is_starting());
    launcher.joined(4);
    assert!(!launcher.is_starting());
    launcher.close();
    let events = until(&mut launcher, |launcher, _| launcher.running() == 0);
    let ended = LaunchEvent::Ended { host: 4, status: "exit status: 3".to_owned() };
    assert_eq!(events, [line(4, "end"), ended]);
}

#[test]
fn an_agent_that_cannot_start_stops_no_other() {
    let missing = Start { host: 0, command: vec!["/nonexistent/ssh".to_owned()], line: String::new() };
    let mut launcher =
        launcher(vec![missing, shell(1, "echo no route >&2; exit 255"), shell(2, "read a; read b")]);
    let events = until(&mut launcher, |launcher, events| events.len() == 3 && launcher.running() == 1);
    let failed = |host, why: &str| LaunchEvent::Failed { host, why: why.to_owned() };
    assert_eq!(events[0], failed(0, "cannot start /nonexistent/ssh: No such file or directory (os error 2)"));
    assert_eq!(
        events[1..],
        [line(1, "no route"), failed(1, "its program ended before it joined: exit status: 255")]
    );
}

#[test]
fn an_agent_that_does_not_join_is_given_up() {
    let mut launcher = launcher(vec![shell(0, "trap '' TERM; while :; do sleep 1; done")]);
    launcher.turn(1, &mut Vec::new());
    let mut events = Vec::new();
    launcher.turn(LIMITS.join_ns, &mut events);
    assert_eq!(events, []);
    launcher.turn(LIMITS.join_ns + 1, &mut events);
    let why = "it did not join within 60 s".to_owned();
    assert_eq!(events, [LaunchEvent::Failed { host: 0, why }]);
    // Once only, and its program is killed.
    let mut now_ns = LIMITS.join_ns;
    let limit = Instant::now() + Duration::from_secs(60);
    while launcher.running() > 0 {
        assert!(Instant::now() < limit);
        now_ns += SWEEP_NS;
        launcher.turn(now_ns, &mut events);
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(events.len(), 1);
}

#[test]
fn few_agents_start_at_a_time() {
    let mut launcher = launcher((0..5).map(|host| shell(host, "read a; read b")).collect());
    let mut events = Vec::new();
    launcher.turn(1, &mut events);
    assert_eq!(launcher.running(), 2);
    launcher.joined(0);
    launcher.turn(1, &mut events);
    assert_eq!((launcher.running(), events.len()), (3, 0));
    launcher.close();
    launcher.turn(1, &mut events);
    assert!(launcher.running() <= 3 && !launcher.is_starting(), "no more are started");
}

#[test]
fn lines_are_limited_and_have_no_control_characters() {
    let script = "printf 'red \\033[31m\\n' >&2; head -c 3000 /dev/zero | tr '\\0' x >&2; \
                  for i in $(seq 500); do echo $i >&2; done";
    let mut launcher = launcher(vec![shell(0, script)]);
    let events = until(&mut launcher, |launcher, events| !events.is_empty() && launcher.running() == 0);
    let lines: Vec<&String> = events
        .iter()
        .filter_map(|event| match event {
            LaunchEvent::Line { text, .. } => Some(text),
            _ => None,
        })
        .collect();
    assert_eq!(lines[0], "red \u{fffd}[31m");
    assert!(lines.iter().all(|text| text.len() <= 1_024));
    assert_eq!((lines.len(), lines[200].as_str()), (201, "(only the first 200 lines are shown)"));
}

#[test]
fn a_program_ends_even_if_another_holds_its_standard_error() {
    let mut launcher = launcher(vec![shell(0, "sleep 30 & exit 1")]);
    let events = until(&mut launcher, |_, events| !events.is_empty());
    let why = "its program ended before it joined: exit status: 1".to_owned();
    assert_eq!(events, [LaunchEvent::Failed { host: 0, why }]);
}

#[test]
fn nothing_is_left_after_the_launcher() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("pid");
    let script = format!(
        "echo $$ > {0}.new; mv {0}.new {0}; trap '' TERM HUP; while :; do sleep 1; done",
        file.display()
    );
    let mut launcher = launcher(vec![shell(0, &script)]);
    until(&mut launcher, |_, _| file.exists());
    let pid = std::fs::read_to_string(&file).unwrap();
    drop(launcher);
    assert!(!std::path::Path::new("/proc").join(pid.trim()).exists());
}
