//! An HTTP server for tests: answers each request as a function says.
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use keepup_measure::clock::SystemClock;

use crate::{Detector, DetectorUrl, SimplonError};

/// What a server does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Status 200 with this body.
    Json(String),
    /// Another status with this body.
    Status(u16, String),
    /// These bytes, then the end of the connection.
    Raw(Vec<u8>),
    /// These bytes, then one every 50 ms, without end.
    Dripping(&'static str),
    /// Bytes without end.
    Endless,
    /// A redirect to this path.
    Redirect(String),
}

/// An answer with a value.
pub(crate) fn of_value(value: &str) -> Answer {
    Answer::Json(format!("{{\"value\": {value}, \"value_type\": \"string\", \"access_mode\": \"r\"}}"))
}

type Script = dyn Fn(&str, &str) -> Option<Answer> + Send + Sync;

/// A server on a local port; its threads end with the test.
pub(crate) struct Server {
    pub(crate) url: DetectorUrl,
    /// Requests so far: method and path.
    pub(crate) requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts a server that answers with `script`, or as an idle detector.
    pub(crate) fn start(script: impl Fn(&str, &str) -> Option<Answer> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let (requests, script): (Arc<Mutex<Vec<String>>>, Arc<Script>) = (Arc::default(), Arc::new(script));
        let seen = Arc::clone(&requests);
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let (socket, seen, script) = (socket.unwrap(), Arc::clone(&seen), Arc::clone(&script));
                std::thread::spawn(move || serve(&socket, &seen, &*script));
            }
        });
        Self { url, requests }
    }

    pub(crate) fn connect(&self) -> Result<Detector, SimplonError> {
        Detector::connect(self.url.clone(), Arc::new(SystemClock))
    }
}

fn serve(mut socket: &TcpStream, seen: &Mutex<Vec<String>>, script: &Script) -> Option<()> {
    let mut lines = BufReader::new(socket.try_clone().unwrap()).lines();
    loop {
        let request = lines.next()?.ok()?;
        while !lines.next()?.ok()?.is_empty() {}
        let (method, path) = request.strip_suffix(" HTTP/1.1")?.split_once(' ')?;
        seen.lock().unwrap().push(format!("{method} {path}"));
        let mut send = |status: u16, more: &str, body: &str| {
            let length = body.len();
            let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n{more}\r\n");
            socket.write_all(format!("{head}{body}").as_bytes()).ok()
        };
        match script(method, path).or_else(|| idle(path)) {
            Some(Answer::Json(body)) => send(200, "Content-Type: application/json\r\n", &body)?,
            Some(Answer::Status(status, body)) => send(status, "", &body)?,
            Some(Answer::Redirect(to)) => send(302, &format!("Location: {to}\r\n"), "")?,
            Some(Answer::Raw(bytes)) => return socket.write_all(&bytes).ok(),
            Some(Answer::Dripping(start)) => {
                socket.write_all(start.as_bytes()).ok()?;
                loop {
                    socket.write_all(b" ").ok()?;
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
            Some(Answer::Endless) => {
                socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").ok()?;
                loop {
                    socket.write_all(&[b' '; 65536]).ok()?;
                }
            }
            None => send(404, "", "Parameter does not exist")?,
        }
    }
}

/// Answers of a detector that is idle.
fn idle(path: &str) -> Option<Answer> {
    Some(match path {
        "/detector/api/version" | "/stream/api/version" => of_value("\"1.8.0\""),
        "/detector/api/1.8.0/status/state" => of_value("\"idle\""),
        "/stream/api/1.8.0/config/mode" => of_value("\"enabled\""),
        "/detector/api/1.8.0/config/trigger_mode" => of_value("\"ints\""),
        "/detector/api/1.8.0/config/keys" => of_value("[\"nimages\", \"threshold/1/energy\"]"),
        "/stream/api/1.8.0/config/keys" => of_value("[\"mode\"]"),
        "/detector/api/1.8.0/status/keys" => of_value("[\"state\"]"),
        "/detector/api/1.8.0/config/nimages" => of_value("10"),
        "/detector/api/1.8.0/config/threshold/1/energy" => of_value("6200.123456789012345"),
        "/detector/api/1.8.0/command/arm" => Answer::Json("{\"sequence id\": 17}".to_owned()),
        "/detector/api/1.8.0/command/disarm" | "/detector/api/1.8.0/command/trigger" => {
            Answer::Json("{}".to_owned())
        }
        _ => return None,
    })
}
