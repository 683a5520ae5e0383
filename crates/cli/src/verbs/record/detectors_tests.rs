//! Detectors are disarmed however the command ends.
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, channel};

use super::*;

/// Address of a detector, and the commands that it receives.
fn detector() -> (DetectorUrl, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let (commands, received) = channel();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().map(Result::unwrap) {
            let mut lines = BufReader::new(socket.try_clone().unwrap()).lines().map(Result::unwrap);
            let Some(request) = lines.next() else { continue };
            lines.find(String::is_empty).unwrap();
            let path = request.split(' ').nth(1).unwrap();
            let body = match path.rsplit('/').next().unwrap() {
                "version" => "{\"value\": \"1.8.0\"}",
                "keys" => "{\"value\": [\"mode\", \"state\"]}",
                "mode" => "{\"value\": \"enabled\", \"access_mode\": \"rw\"}",
                "state" => "{\"value\": \"idle\"}",
                "trigger_mode" => "{\"value\": \"exts\"}",
                command => {
                    commands.send(command.to_owned()).unwrap();
                    "{\"sequence id\": 9}"
                }
            };
            let length = body.len();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            socket.write_all(format!("{head}{body}").as_bytes()).unwrap();
        }
    });
    (url, received)
}

/// Control of one armed detector.
fn armed(url: DetectorUrl, commands: &Receiver<String>) -> DetectorControl {
    let detector = Arc::new(Detector::connect(url, Arc::new(SystemClock)).unwrap());
    let mut control = DetectorControl::default();
    let task = Arc::new(Task::new(Arc::clone(&detector), 0));
    (control.detectors, control.tasks) = (vec![detector], vec![Arc::clone(&task)]);
    task.arm().unwrap();
    assert_eq!(commands.recv().unwrap(), "arm");
    control
}

#[test]
fn an_armed_detector_is_disarmed_when_a_panic_ends_the_command() {
    let (url, commands) = detector();
    let control = armed(url.clone(), &commands);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _control = control;
        panic!("a defect");
    }));
    assert!(panicked.is_err());
    assert_eq!(commands.try_recv().unwrap(), "disarm");
    // Control: it was disarmed in order, so it gets no further command.
    let mut control = armed(url, &commands);
    while !matches!(control.phase, Phase::Disarmed { .. }) {
        control.poll(true, RunState::Sealed, &StatusLine::new());
    }
    assert_eq!(commands.try_recv().unwrap(), "disarm");
    drop(control);
    assert!(commands.try_recv().is_err());
}
