//! Commands and checks against a server that answers well, and against others.
use std::time::Instant;

use super::*;
use crate::testing::{Answer, Server, of_value};
use keepup_error::Diagnostic;

/// Text and hint of the error of a connection to a server with this answer at `at`.
fn refused(at: &'static str, answer: Answer) -> (String, String) {
    let server = Server::start(move |_, path| (path == at).then(|| answer.clone()));
    let error = server.connect().err().unwrap();
    (error.to_string(), error.hint().unwrap_or_default().into_owned())
}

#[test]
fn commands_use_the_version_that_the_detector_states() {
    let server = Server::start(|_, path| match path {
        "/detector/api/version" => Some(of_value("\"1.6.0\"")),
        "/detector/api/1.6.0/status/state" => Some(of_value("\"idle\"")),
        "/detector/api/1.6.0/command/arm" => Some(Answer::Json("{\"series id\": 4}".into())),
        _ => path.strip_prefix("/detector/api/1.6.0/command/").map(|_| Answer::Json(String::new())),
    });
    let detector = server.connect().unwrap();
    detector.check_idle().unwrap();
    assert_eq!(detector.arm().unwrap(), Some(4));
    detector.trigger().unwrap();
    detector.disarm().unwrap();
    let requests = server.requests.lock().unwrap();
    let commands: Vec<_> = requests.iter().filter(|request| request.starts_with("PUT")).collect();
    let expected = ["arm", "trigger", "disarm"].map(|name| format!("PUT /detector/api/1.6.0/command/{name}"));
    assert_eq!(commands, expected.iter().collect::<Vec<_>>());
}

#[test]
fn a_detector_that_cannot_be_used_is_refused_with_a_hint() {
    let (why, hint) = refused("/stream/api/1.8.0/config/mode", of_value("\"disabled\""));
    assert!(why.contains("its stream has the mode \"disabled\""), "{why}");
    assert!(hint.contains("-d '{\"value\": \"enabled\"}'") && hint.ends_with("/config/mode"), "{hint}");
    let (why, hint) = refused("/detector/api/1.8.0/status/state", of_value("\"na\""));
    assert!(why.contains("is not initialized") && hint.ends_with("/command/initialize"), "{why} {hint}");
    let server = Server::start(|_, path| path.ends_with("state").then(|| of_value("\"acquire\"")));
    let error = server.connect().unwrap().check_idle().unwrap_err();
    assert!(error.to_string().contains("its state is \"acquire\""), "{error}");
    let server = Server::start(|_, path| path.ends_with("trigger_mode").then(|| of_value("\"exts\"")));
    let error = server.connect().unwrap().check_software_trigger().unwrap_err();
    assert!(error.to_string().contains("its trigger_mode is \"exts\""), "{error}");
}

#[test]
fn answers_that_are_none_are_errors() {
    let version = "/detector/api/version";
    for (answer, expected) in [
        (Answer::Status(500, "internal\u{7} error".into()), "HTTP status 500: internal"),
        (Answer::Json("{\"value\"".into()), "the answer is not JSON"),
        (Answer::Json("[1]".into()), "the answer has no value"),
        (of_value("\"../../x\""), "the value is not a short word"),
        (of_value(&format!("\"{}\"", "1".repeat(33))), "the value is not a short word"),
        (of_value("18"), "the value is not a short word"),
        (Answer::Redirect("/detector/api/1.8.0/config/nimages".into()), "HTTP status 302"),
        (Answer::Raw(b"220 smtp ready\r\n".to_vec()), "cannot read http://"),
        (Answer::Raw(Vec::new()), "cannot read http://"),
        (Answer::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\xff\xfe\xfd\xfc".to_vec()), "not UTF-8"),
        (Answer::Endless, "the answer is longer than 262144 bytes"),
        (Answer::Json("[".repeat(100_000)), "the answer is not JSON: recursion limit exceeded"),
    ] {
        let (why, hint) = refused(version, answer.clone());
        assert!(why.contains(expected), "{answer:?}: {why}");
        assert!(hint.starts_with("curl http://127.0.0.1:") && hint.ends_with(version), "{hint}");
    }
}

#[test]
fn a_redirect_is_not_followed() {
    let server = Server::start(|method, _| (method == "PUT").then(|| Answer::Redirect("/elsewhere".into())));
    let failure = server.connect().unwrap().arm().unwrap_err();
    assert!(!failure.may_be_armed);
    assert!(!server.requests.lock().unwrap().iter().any(|request| request.contains("elsewhere")));
}

#[test]
fn a_detector_that_did_not_answer_may_be_armed() {
    let server = Server::start(|method, _| (method == "PUT").then(|| Answer::Raw(Vec::new())));
    let failure = server.connect().unwrap().arm().unwrap_err();
    assert!(failure.may_be_armed, "{failure:?}");
    let server = Server::start(|method, _| (method == "PUT").then(|| Answer::Status(400, "not idle".into())));
    let failure = server.connect().unwrap().arm().unwrap_err();
    assert!(!failure.may_be_armed && failure.error.to_string().ends_with("HTTP status 400: not idle"));
}

#[test]
fn an_answer_that_drips_is_given_up() {
    for start in ["HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", "HTTP/1.1 200 OK\r\nX: "] {
        let started = Instant::now();
        let (why, _) = refused("/detector/api/version", Answer::Dripping(start));
        assert!(why.ends_with("no complete answer within the time limit"), "{why}");
        // The server would drip for hours.
        assert!(started.elapsed() < 10 * READ_TIMEOUT);
    }
}

#[test]
fn a_server_that_is_gone_is_an_error() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url: DetectorUrl = format!("http://{gone}").parse().unwrap();
    let clock = Arc::new(keepup_measure::clock::SystemClock);
    let error = Detector::connect(url, clock).err().unwrap();
    assert!(error.to_string().contains("Connection refused"), "{error}");
}

#[test]
fn a_trigger_may_take_as_long_as_its_images() {
    let server = Server::start(|_, path| match path.rsplit('/').next() {
        Some("nimages") => Some(of_value("3000")),
        Some("frame_time") => Some(of_value("0.5")),
        Some("trigger_start_delay") => Some(of_value("2.5")),
        _ => None,
    });
    assert_eq!(server.connect().unwrap().trigger_timeout(), Duration::from_secs_f64(1562.5));
    let server = Server::start(|_, path| path.ends_with("frame_time").then(|| of_value("1e300")));
    assert_eq!(server.connect().unwrap().trigger_timeout().as_secs_f64(), TRIGGER_S_MAX);
}
