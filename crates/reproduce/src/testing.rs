//! Requests and campaigns for tests.
use keepup_results::Begun;

use crate::{NamedVolume, PaperRequest};

/// A request with every option, on directories named after their use.
pub(crate) fn full_request() -> PaperRequest {
    let volume = |name: &str| NamedVolume { name: name.to_owned(), path: name.into() };
    PaperRequest {
        volumes: vec![volume("DIR"), volume("DIR2")],
        scale: 1.0,
        repetitions: None,
        raid: Some("RAID".into()),
        targets: Vec::new(),
        simulated: Vec::new(),
        host: None,
        is_long: true,
        cores: 2,
        fleet: None,
        with: Vec::new(),
        id: "ID".into(),
        traces: "TRACES".into(),
    }
}

/// The beginning of a reproduction.
pub(crate) fn begun() -> Begun {
    Begun {
        id: "0123abcd".into(),
        tool_version: "0.1.0".into(),
        created_unix_ns: 0,
        command: "keepup reproduce".into(),
        workload: "reproduce".into(),
        plan: serde_json::Value::Null,
        environment: serde_json::Value::Null,
    }
}
