//! Addresses of detectors.
use super::*;

#[test]
fn a_url_is_a_scheme_and_a_host() {
    for (text, shown) in [
        ("http://127.0.0.1", "http://127.0.0.1"),
        ("http://127.0.0.1:8080/", "http://127.0.0.1:8080"),
        ("http://[::1]:80", "http://[::1]:80"),
        ("http://localhost", "http://localhost"),
    ] {
        assert_eq!(text.parse::<DetectorUrl>().unwrap().to_string(), shown);
    }
}

#[test]
fn others_are_refused() {
    for text in [
        "",
        "eiger1",
        "https://127.0.0.1",
        "http://",
        "http://127.0.0.1/detector",
        "http://user@127.0.0.1",
        "http://127.0.0.1?x",
        "http://127.0.0.1:99999",
        "http://127.0.0.1\r\nX: y",
        "zmq://127.0.0.1",
    ] {
        let error = text.parse::<DetectorUrl>().unwrap_err();
        assert!(error.to_string().starts_with("cannot"), "{text:?}: {error}");
    }
}
