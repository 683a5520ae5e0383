//! `keepup net`: over loopback and between two namespaces.
use std::path::Path;

use keepup_testkit::cable::Cable;
use keepup_testkit::root::{allowed, skip};
use keepup_testkit::{Program, Run};
use serde_json::Value;

use crate::common::{TestDirectory, json, keepup, secret_file, start};

mod faults;
mod flows;
mod measured;

pub(crate) const TOKEN: &str = "a-token-for-tests";
const KEEPUP: &str = env!("CARGO_BIN_EXE_keepup");

/// A server on loopback, and its address.
pub(crate) fn serve(here: &Path, listen: &str) -> (Program, String) {
    secret_file(here, "token", TOKEN);
    let mut server = start(here, &["net", "serve", "--listen", listen, "--token-file", "token"]);
    let address = server.address().to_string();
    (server, address)
}

/// Runs a network test.
pub(crate) fn net(here: &Path, kind: &str, servers: &[&str], more: &[&str]) -> Run {
    keepup(here, &command(kind, servers, more))
}

pub(crate) fn command<'a>(kind: &'a str, servers: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    let head = ["net", kind, "--token-file", "token", "--json", "--ramp", "200 ms"];
    [&head[..], servers, more].concat()
}

/// Two namespaces with a server in the second one; `None` with a message if that is not possible.
pub(crate) fn wired(test: &str, place: &TestDirectory, name: &str) -> Option<(Cable, Program)> {
    if !allowed(test) {
        return None;
    }
    let cable = match Cable::lay(&format!("ku{name}{}", std::process::id())) {
        Ok(cable) => cable,
        Err(why) => {
            skip(test, &why);
            return None;
        }
    };
    secret_file(place.path(), "token", TOKEN);
    let arguments = ["net", "serve", "--listen", Cable::address(1), "--token-file", "token"];
    let mut server =
        Program::start("ip", &[&cable.at(1)[1..], &[KEEPUP], &arguments[..]].concat(), place.path());
    server.address();
    Some((cable, server))
}

/// Starts a test from the first namespace to the second.
pub(crate) fn across(place: &TestDirectory, cable: &Cable, kind: &str, more: &[&str]) -> Program {
    let all = [&cable.at(0)[1..], &[KEEPUP], &command(kind, &[Cable::address(1)], more)[..]].concat();
    Program::start("ip", &all, place.path())
}

pub(crate) fn done(run: &Run) -> Value {
    assert_eq!(run.code(), 0, "{run:#?}");
    json(run)
}

pub(crate) fn number(value: &Value, pointer: &str) -> f64 {
    value.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {pointer} in {value:#}"))
}

pub(crate) fn flows(run: &Value) -> &Vec<Value> {
    run["flows"].as_array().unwrap()
}

/// Checks every complete run: parts add up, and nothing arrives that was not sent.
pub(crate) fn consistent(run: &Value) {
    for flow in flows(run) {
        for side in ["sent", "received"] {
            let tenths = flow[side]["tenths"].as_array().unwrap().iter().map(|t| t.as_f64().unwrap());
            assert_eq!(tenths.sum::<f64>(), number(flow, &format!("/{side}/bytes")), "{flow:#}");
        }
        let (sent, received) = (number(flow, "/sent/bytes"), number(flow, "/received/bytes"));
        // The measurement windows differ by microseconds, and buffers lie between them.
        assert!(received > 0.0 && received < sent * 1.5 + 80e6, "{flow:#}");
    }
    for end in run["ends"].as_array().unwrap() {
        assert!(number(end, "/cpu_seconds") > 0.0 && number(end, "/seconds") > 0.2, "{end:#}");
        assert!(number(end, "/softirq_seconds") <= number(end, "/machine_cpu_seconds"), "{end:#}");
    }
}

/// Checks a ledger.
pub(crate) fn balanced(ledger: &Value) {
    let of = |key: &str| ledger[key].as_u64().unwrap();
    assert_eq!(of("due"), of("sent") + of("unsent"), "{ledger:#}");
    assert_eq!(of("sent"), of("received") + of("lost"), "{ledger:#}");
    let losses = ledger["losses"].as_array().unwrap();
    let explained: u64 = losses.iter().map(|loss| loss["datagrams"].as_u64().unwrap()).sum();
    assert_eq!(of("lost"), explained + of("unexplained"), "{ledger:#}");
    assert_eq!((of("duplicates"), of("foreign")), (0, 0), "{ledger:#}");
}
