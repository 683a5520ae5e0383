//! How events look as JSON.

use std::collections::BTreeMap;

use serde_json::json;

use super::Event;
use crate::example::trial;
use crate::head::Kind;
use crate::summary::{SCHEMA_VERSION, Verdict};

/// One event of every kind.
pub(crate) fn one_of_each() -> Vec<Event> {
    vec![
        Event::Started {
            t_unix_ns: 1,
            schema_version: SCHEMA_VERSION,
            tool_version: "0.1.0".into(),
            id: "ab".into(),
            kind: Kind::Qualify,
            command: "keepup qualify csl".into(),
            profile: "csl".into(),
            plan: json!({"a": [1, 2.5]}),
            environment: json!(null),
        },
        Event::Phase { t_unix_ns: 2, name: "search".into() },
        Event::Sample { t_unix_ns: 3, t_ms: 100, values: BTreeMap::from([("backlog_bytes".into(), 1.5)]) },
        Event::Trial { t_unix_ns: 4, trial: Box::new(trial(80e6, false)) },
        Event::CellRun {
            t_unix_ns: 4,
            cell: 3,
            repetition: 2,
            exit_code: 4,
            directory: Some("cells/3-r2/sweep-20261121T033000Z-0123abcd".into()),
            seconds: 1.25,
            why: Some("no \"room\"".into()),
        },
        Event::Loss {
            t_unix_ns: 5,
            stream: 7,
            first_sequence: Some(9),
            events: 2,
            cause: "sequence_gap".into(),
        },
        Event::Histogram { t_unix_ns: 6, name: "write_us".into(), hdr_v2_base64: "HISTFAAA".into() },
        Event::Note { t_unix_ns: 7, text: "line\nbreak and \u{1f4be}".into() },
        Event::Finished { t_unix_ns: u64::MAX, verdict: Some(Verdict::FitWithLimits) },
    ]
}

#[test]
fn every_event_is_one_line_and_comes_back() {
    for event in one_of_each() {
        let line = serde_json::to_string(&event).unwrap();
        assert!(!line.contains('\n'), "{line}");
        assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
    }
}

#[test]
fn an_event_is_flat_and_says_its_kind_and_time() {
    let value = serde_json::to_value(Event::Phase { t_unix_ns: 2, name: "soak".into() }).unwrap();
    assert_eq!(value, json!({"event": "phase", "t_unix_ns": 2, "name": "soak"}));
    let value =
        serde_json::to_value(Event::Finished { t_unix_ns: 3, verdict: Some(Verdict::NotFit) }).unwrap();
    assert_eq!(value, json!({"event": "finished", "t_unix_ns": 3, "verdict": "NOT FIT"}));
    for event in one_of_each() {
        let value = serde_json::to_value(&event).unwrap();
        assert!(value["t_unix_ns"].is_u64() && value["event"].is_string(), "{value}");
    }
}

#[test]
fn a_reading_that_is_not_finite_is_left_out() {
    let values =
        BTreeMap::from([("a".to_owned(), f64::NAN), ("b".to_owned(), 2.0), ("c".to_owned(), f64::INFINITY)]);
    let line = serde_json::to_string(&Event::Sample { t_unix_ns: 1, t_ms: 2, values }).unwrap();
    assert_eq!(line, r#"{"event":"sample","t_unix_ns":1,"t_ms":2,"values":{"b":2.0}}"#);
}

#[test]
fn unknown_fields_and_kinds_are_refused() {
    for line in [r#"{"event":"phase","t_unix_ns":1,"name":"a","x":1}"#, r#"{"event":"other","t_unix_ns":1}"#]
    {
        assert!(serde_json::from_str::<Event>(line).is_err(), "{line}");
    }
}
