//! The recorder as a service: notifications over the service manager's socket.
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use keepup_testkit::Program;

use crate::common::directory;

/// A recorder below `here` with a watchdog of three seconds, and the manager's socket.
fn service(here: &Path, more: &[&str]) -> (Program, UnixDatagram) {
    let socket = here.join("notify");
    let manager = UnixDatagram::bind(&socket).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let notify = format!("NOTIFY_SOCKET={}", socket.display());
    let program = env!("CARGO_BIN_EXE_keepup");
    let base =
        [notify.as_str(), "WATCHDOG_USEC=3000000", program, "record", "--to-null", "--listen", "127.0.0.1:0"];
    (Program::start("env", &[&base[..], more].concat(), here), manager)
}

/// Receives notifications until `wanted` arrives.
fn await_notification(manager: &UnixDatagram, wanted: &str) {
    let mut bytes = [0; 4096];
    loop {
        let length = manager.recv(&mut bytes).unwrap_or_else(|e| panic!("never notified of {wanted}: {e}"));
        let notification = std::str::from_utf8(&bytes[..length]).unwrap();
        if notification.lines().any(|line| line == wanted) {
            return;
        }
        assert!(
            ["READY=1", "WATCHDOG=1"].contains(&notification.trim_end()),
            "{notification:?} before {wanted}"
        );
    }
}

#[test]
#[ignore = "system"]
fn a_service_manager_is_notified_of_start_watchdog_and_end() {
    for more in [&["--stay"][..], &["--controlled", "--http", "127.0.0.1:0"]] {
        let place = directory();
        let (mut recorder, manager) = service(place.path(), more);
        await_notification(&manager, "READY=1");
        let listens = if more == ["--stay"] { "listening on " } else { "waiting for commands" };
        recorder.line(listens);
        for _ in 0..3 {
            await_notification(&manager, "WATCHDOG=1");
        }
        recorder.signal("TERM");
        await_notification(&manager, "STOPPING=1");
        let run = recorder.wait();
        assert_eq!(run.code(), 0, "{run:#?}");
    }
}
