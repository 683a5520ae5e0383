//! Addresses and answers.
use keepup_error::Diagnostic as _;

use super::*;

fn read(status: u16, text: &str) -> Result<RunStatus, CtlError> {
    parse_answer("x", status, text)
}

#[test]
fn addresses_are_scheme_host_and_port() {
    for (good, to) in [
        ("http://127.0.0.1:8611", "http://127.0.0.1:8611"),
        ("http://localhost/", "http://localhost:80"),
        ("http://[::1]:8700", "http://[::1]:8700"),
        ("localhost:8700", "http://localhost:8700"),
        ("localhost", "http://localhost:8611"),
        ("::1", "http://[::1]:8611"),
    ] {
        assert_eq!(Client::new(good, None).map(|client| client.to).ok().as_deref(), Some(to), "{good}");
    }
    for bad in ["daq:x", "https://daq", "http://", "http://daq/api", "http://me:pw@daq", "ftp://daq"] {
        assert!(Client::new(bad, None).is_err(), "{bad}");
    }
}

#[test]
fn every_http_status_maps_to_its_error() {
    let idle = serde_json::to_string(&RunStatus::default()).unwrap();
    assert_eq!(read(200, &idle).unwrap(), RunStatus::default());
    let problem = r#"{"error": "no", "hint": "ask again", "refusal": "state"}"#;
    for status in [401, 403, 404, 409, 422] {
        let refused = read(status, problem).unwrap_err();
        let cause = Cause::new("no").with_hint("ask again");
        assert!(matches!(&refused, CtlError::Refused { why } if *why == cause), "{refused:?}");
    }
    assert!(matches!(read(500, problem), Err(CtlError::Failed { .. })));
    let bare = read(401, r#"{"error": "no token", "hint": null}"#).unwrap_err();
    assert!(bare.hint().unwrap().contains("--token-file"), "{bare}");
    for (status, text) in [(200, "{}x"), (200, "<html>"), (404, "nothing"), (302, ""), (503, problem)] {
        assert!(matches!(read(status, text), Err(CtlError::Answer { .. })), "{status} {text}");
    }
}
