//! A real server on loopback with correct, faulty and idle clients.
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use keepup_error::Cause;
use keepup_results::live::{RefusalKind, RunCommand, RunRefusal, RunState};
use serde_json::Value;

use crate::testing::{TOKEN, ask, fleet, get, moment, recording, rejected, send, server};
use crate::{Live, Scene};

fn command(live: &Live, name: &str, body: &str) -> crate::testing::Answer {
    let token = format!("Authorization: Bearer {TOKEN}");
    ask(live, "POST", &format!("/api/v1/run/{name}"), &[&token, "Content-Type: application/json"], body)
}

/// Answers one command on the test's thread, like the owner of run control.
fn answering(live: &Live, answer: impl FnOnce(&crate::PendingCommand) -> Result<(), RunRefusal>) {
    let asked = live.command_queue().next(Duration::from_secs(20)).unwrap();
    let outcome = answer(&asked).map(|()| recording());
    asked.answer(outcome);
}

#[test]
fn a_command_reaches_its_owner_and_the_answer_comes_back() {
    let live = server(false, 16);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| command(&live, "configure", r#"{"revision":3,"settings":{"run":5}}"#));
        answering(&live, |asked| {
            assert_eq!((asked.order.command, asked.order.revision), (RunCommand::Configure, Some(3)));
            assert_eq!(asked.order.settings.as_ref().unwrap().run, Some(5));
            Ok(())
        });
        let answer = asking.join().unwrap();
        assert_eq!(answer.status, 200);
        let status: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(status["state"], "recording");
    });
}

#[test]
fn every_refusal_has_a_status_and_a_reason() {
    let live = server(false, 16);
    let refusals = [
        (RefusalKind::State, 409, "state"),
        (RefusalKind::Revision, 409, "revision"),
        (RefusalKind::Settings, 422, "settings"),
        (RefusalKind::Failed, 500, "failed"),
        (RefusalKind::Uncontrolled, 403, "uncontrolled"),
    ];
    for (kind, status, name) in refusals {
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| command(&live, "arm", "{}"));
            answering(&live, |_| {
                Err(RunRefusal::new(kind, Cause::new("it cannot be").with_hint("try otherwise")))
            });
            let answer = asking.join().unwrap();
            assert_eq!(answer.status, status, "{answer:?}");
            let body: Value = serde_json::from_str(&answer.body).unwrap();
            assert_eq!(
                body,
                serde_json::json!({"error": "it cannot be", "hint": "try otherwise", "refusal": name})
            );
        });
    }
}

#[test]
fn an_invalid_command_never_reaches_its_owner() {
    let live = server(false, 16);
    assert_eq!(command(&live, "explode", "{}").status, 404);
    assert_eq!(command(&live, "arm", "not json").status, 400);
    assert_eq!(command(&live, "arm", r#"{"revison":1}"#).status, 422, "an unknown field is refused");
    assert_eq!(command(&live, "arm", r#"{"settings":{}}"#).status, 422);
    assert_eq!(
        command(&live, "configure", &format!(r#"{{"settings":{{"name":"{}"}}}}"#, "x".repeat(200_000)))
            .status,
        413
    );
    let token = format!("Authorization: Bearer {TOKEN}");
    assert_eq!(ask(&live, "POST", "/api/v1/run/arm", &[&token], "{}").status, 415);
    assert_eq!(ask(&live, "DELETE", "/api/v1/run", &[&token], "").status, 405);
    assert!(live.command_queue().next(Duration::ZERO).is_none());
}

#[test]
fn figures_are_available_once_published() {
    let live = server(false, 16);
    assert_eq!(get(&live, "/api/v1/now").status, 404);
    assert_eq!(get(&live, "/api/v1/run").status, 404);
    assert_eq!(get(&live, "/health").status, 200, "idle is healthy");
    live.publish(Scene { run: Some(&recording()), moment: Some(&moment(3)), ..Scene::default() });
    let now: Value = serde_json::from_str(&get(&live, "/api/v1/now").body).unwrap();
    assert_eq!(now["flow"]["received"]["events"], 100);
    assert_eq!(now["streams"].as_array().unwrap().len(), 3);
    let run: Value = serde_json::from_str(&get(&live, "/api/v1/run").body).unwrap();
    assert_eq!((&run["state"], &run["run"]), (&"recording".into(), &17.into()));
    let history: Value = serde_json::from_str(&get(&live, "/api/v1/history").body).unwrap();
    assert_eq!(history[0]["received"], 200.0);
    let open = ask(&live, "GET", "/metrics", &["Accept: application/openmetrics-text; version=1.0.0"], "");
    assert!(
        open.body.ends_with("# EOF\n") && open.head.contains("content-type: application/openmetrics-text")
    );
    assert!(get(&live, "/metrics").head.contains("content-type: text/plain; version=0.0.4"));
}

#[test]
fn health_reports_losses() {
    let live = server(false, 16);
    let mut seen = moment(1);
    seen.warnings.push("free memory bridges only 0.4 s".into());
    live.publish(Scene { run: Some(&recording()), moment: Some(&seen), ..Scene::default() });
    let health = get(&live, "/health");
    assert_eq!(health.status, 200, "a warning is not a failure");
    assert!(health.body.contains("\"warning\""), "{health:?}");
    seen.volumes[0].failure = Some("no space left".into());
    live.publish(Scene { run: Some(&recording()), moment: Some(&seen), ..Scene::default() });
    let health = get(&live, "/health");
    assert_eq!(health.status, 503);
    assert!(health.body.contains("takes no more data: no space left"), "{health:?}");
    let mut run = recording();
    (run.state, run.error) = (RunState::Error, Some("no volume is left".into()));
    live.publish(Scene { run: Some(&run), moment: None, ..Scene::default() });
    assert_eq!(get(&live, "/health").status, 503);
}

#[test]
fn health_reports_rejected_data_as_a_failure_unless_they_are_of_strangers() {
    let live = server(false, 16);
    let mut seen = moment(1);
    let mut health = |foreign| {
        seen.flow.rejected = vec![rejected(foreign)];
        live.publish(Scene { run: Some(&recording()), moment: Some(&seen), ..Scene::default() });
        get(&live, "/health")
    };
    assert_eq!(health(true).status, 200);
    let of_source = health(false);
    assert_eq!(of_source.status, 503);
    assert!(of_source.body.contains("3 packets not recorded (malformed): too short"), "{of_source:?}");
}

#[test]
fn figures_of_a_fleet_take_the_place_of_those_of_a_recorder() {
    let live = server(false, 16);
    live.publish(Scene { run: Some(&recording()), fleet: Some(&fleet()), ..Scene::default() });
    let now: Value = serde_json::from_str(&get(&live, "/api/v1/now").body).unwrap();
    assert_eq!(now["flow"]["received_bytes_per_second"], 2e8);
    assert_eq!((&now["hosts"][1]["state"], &now["moves"][0]["to"]), (&"lost".into(), &"daq3".into()));
    let health = get(&live, "/health");
    assert_eq!(health.status, 503);
    let body: Value = serde_json::from_str(&health.body).unwrap();
    let failures = ["daq2 is lost: no heartbeat until its lease expired", "3 events are missing"];
    assert_eq!(body["failures"], serde_json::json!(failures));
    assert_eq!(body["warnings"][1], "the streams of daq2 moved to daq3");
    let events = read_events(&live, 2);
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["run", "fleet"]);
}

/// Reads events of the stream until `enough` have arrived.
fn read_events(live: &Live, enough: usize) -> Vec<(String, Value)> {
    let mut socket = TcpStream::connect(live.address()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(socket, "GET /api/v1/events HTTP/1.1\r\nHost: {}\r\n\r\n", live.address()).unwrap();
    let (mut events, mut name) = (Vec::new(), String::new());
    for line in BufReader::new(socket).lines() {
        let line = line.unwrap();
        if let Some(text) = line.strip_prefix("event: ") {
            name = text.to_owned();
        } else if let Some(data) = line.strip_prefix("data: ") {
            events.push((std::mem::take(&mut name), serde_json::from_str(data).unwrap()));
        }
        if events.len() == enough {
            break;
        }
    }
    events
}

#[test]
fn an_event_stream_has_the_full_state_first_and_then_changes() {
    let live = server(false, 16);
    let mut seen = moment(2);
    live.publish(Scene { run: Some(&recording()), moment: Some(&seen), ..Scene::default() });
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| read_events(&live, 4));
        while !watching.is_finished() {
            std::thread::sleep(Duration::from_millis(20));
            seen.seconds += 1.0;
            live.publish(Scene { run: Some(&recording()), moment: Some(&seen), ..Scene::default() });
        }
        let events = watching.join().unwrap();
        let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["run", "streams", "now", "now"]);
        assert_eq!(events[1].1[1]["name"], "module \"1\"");
        assert!(events[3].1["seconds"].as_f64() > events[2].1["seconds"].as_f64());
    });
}

#[test]
fn oversized_and_invalid_requests_are_refused() {
    let live = server(false, 16);
    let host = live.address();
    let giant = format!("GET / HTTP/1.1\r\nHost: {host}\r\nX: {}\r\n\r\n", "x".repeat(100_000));
    assert_eq!(send(host, giant.as_bytes()).status, 431);
    let many: String = (0..500).map(|n| format!("X-{n}: y\r\n")).collect();
    assert_eq!(send(host, format!("GET / HTTP/1.1\r\nHost: {host}\r\n{many}\r\n").as_bytes()).status, 431);
    assert_eq!(send(host, b"\x00\x01\x02 nonsense\r\n\r\n").status, 400);
    assert_eq!(send(host, b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n").status, 421, "without a host");
    for path in [
        "/assets/../../../etc/passwd",
        "/assets/..%2f..%2fetc%2fpasswd",
        "/assets/%2e%2e/Cargo.toml",
        "//etc/passwd",
    ] {
        let answer = get(&live, path);
        assert_eq!(answer.status, 404, "{path}");
        assert!(!answer.body.contains("root:"), "{path}");
    }
}

#[test]
fn the_title_is_escaped_and_the_page_has_no_inline_script() {
    let live = server(false, 16);
    let page = get(&live, "/");
    assert!(page.body.contains("<title>keepup a &lt;b&gt; &amp; c</title>"), "{}", page.body);
    let scripts: Vec<&str> = page.body.split("<script").skip(1).collect();
    assert!(!scripts.is_empty() && scripts.iter().all(|script| script.contains("></script>")), "{scripts:?}");
    assert_eq!(get(&live, "/assets/charts.js").body, "// charts");
}

#[test]
fn every_api_route_is_described() {
    let live = server(false, 16);
    let described: Value = serde_json::from_str(&get(&live, "/api/v1/openapi.json").body).unwrap();
    let routes =
        include_str!("routes.rs").split(".route(\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    let programs: Vec<&str> = routes.filter(|path| *path != "/" && !path.starts_with("/assets")).collect();
    assert!(programs.len() > 10, "{programs:?}");
    for path in programs {
        assert!(described["paths"].get(path).is_some(), "{path} is not described");
    }
}

#[test]
fn idle_clients_and_clients_that_never_read_delay_nobody() {
    let live = server(false, 600);
    let idle: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(live.address()).unwrap()).collect();
    let stuck: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut socket = TcpStream::connect(live.address()).unwrap();
            write!(socket, "GET /api/v1/events HTTP/1.1\r\nHost: {}\r\n\r\n", live.address()).unwrap();
            socket
        })
        .collect();
    let begun = Instant::now();
    for at in 0..50 {
        let mut seen = moment(508);
        seen.seconds = f64::from(at);
        live.publish(Scene { run: Some(&recording()), moment: Some(&seen), ..Scene::default() });
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "publishing must not wait");
    assert_eq!(get(&live, "/health").status, 200);
    drop((idle, stuck));
}

/// Without this, silent connections would keep the owner of the token from stopping a run.
#[test]
fn silent_connections_give_way_to_new_ones() {
    let live = server(false, 4);
    let silent: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(live.address()).unwrap()).collect();
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| command(&live, "stop", "{}"));
        answering(&live, |asked| {
            assert_eq!(asked.order.command, RunCommand::Stop);
            Ok(())
        });
        assert_eq!(asking.join().unwrap().status, 200);
    });
    assert_eq!(get(&live, "/metrics").status, 200);
    drop(silent);
}

/// Viewers without a token hold all event streams; one with a token gets a place.
#[test]
fn event_streams_without_a_token_give_way_to_those_with_one() {
    let live = server(false, 600);
    let open = |more: &str| {
        let mut socket = TcpStream::connect(live.address()).unwrap();
        write!(socket, "GET /api/v1/events HTTP/1.1\r\nHost: {}\r\n{more}\r\n", live.address()).unwrap();
        let mut line = String::new();
        BufReader::new(&socket).read_line(&mut line).unwrap();
        (socket, line)
    };
    let viewers: Vec<_> = (0..256).map(|_| open("")).collect();
    assert!(viewers.iter().all(|(_, line)| line.contains("200")));
    assert!(open("").1.contains("503"), "another viewer does not push one out");
    let known = format!("Authorization: Bearer {TOKEN}\r\n");
    assert!(open(&known).1.contains("200"));
}

#[test]
fn known_clients_keep_their_places_and_slots_are_reused() {
    let live = server(false, 4);
    let mut held: Vec<TcpStream> = (0..4).map(|_| TcpStream::connect(live.address()).unwrap()).collect();
    for socket in &mut held {
        let host = live.address();
        let head = format!("GET /health HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n");
        socket.write_all(head.as_bytes()).unwrap();
        assert_ne!(socket.read(&mut [0; 16]).unwrap(), 0);
    }
    let refused = |live: &Live| {
        let mut socket = TcpStream::connect(live.address()).unwrap();
        let _ =
            write!(socket, "GET /health HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", live.address());
        let mut text = Vec::new();
        let _ = socket.read_to_end(&mut text);
        text.is_empty()
    };
    let by = Instant::now() + Duration::from_secs(20);
    while !refused(&live) {
        assert!(Instant::now() < by, "four connections are served, the fifth is not");
    }
    drop(held);
    while refused(&live) {
        assert!(Instant::now() < by, "a closed connection frees its slot");
    }
}
