//! Access control.
use axum::http::HeaderMap;

use keepup_peer::Token;

use super::{Access, is_foreign};
use crate::testing::{READ_TOKEN, TOKEN, access, ask, get, send, server};
use crate::{Live, LiveError};

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, value.parse().unwrap());
    }
    headers
}

#[test]
fn a_non_loopback_address_needs_an_explicit_token() {
    let random = || Token::new("0000111122223333").unwrap();
    let make = |address: &str, given: Option<&str>, read: Option<&str>| {
        let token = |text: &str| Token::new(text).unwrap();
        let given = (given.map(token), read.map(token));
        Access::new(&address.parse().unwrap(), given, vec![], &mut random.clone())
    };
    assert!(!make("127.0.0.1:8611", None, None).unwrap().closed);
    assert!(!make("[::1]:8611", None, None).unwrap().closed);
    assert!(matches!(make("0.0.0.0:8611", None, None), Err(LiveError::Open { .. })));
    assert!(make("192.0.2.7:8611", Some(TOKEN), None).unwrap().closed);
    assert!(make("192.0.2.7:8611", None, Some(READ_TOKEN)).unwrap().closed);
}

#[test]
fn the_host_header_must_have_an_address_or_a_known_name() {
    let access = access(false);
    let knows = |host: &str| access.knows_host(&headers(&[("host", host)]));
    for host in
        ["127.0.0.1:8611", "localhost", "LOCALHOST:1", "[::1]:8611", "192.0.2.1", "Beamline.Example:80"]
    {
        assert!(knows(host), "{host}");
    }
    for host in
        ["evil.example", "localhost.evil.example", "user@localhost", "", "127.0.0.1.evil.example", "a b"]
    {
        assert!(!knows(host), "{host}");
    }
    assert!(!access.knows_host(&HeaderMap::new()));
    assert!(!access.knows_host(&headers(&[("host", "localhost"), ("host", "evil.example")])));
}

#[test]
fn pages_of_other_origins_are_foreign() {
    let own = ("host", "127.0.0.1:8611");
    let foreign = |pairs: &[(&'static str, &str)]| is_foreign(&headers(pairs));
    assert!(!foreign(&[own]), "programs send no such header");
    assert!(!foreign(&[own, ("origin", "http://127.0.0.1:8611")]));
    assert!(!foreign(&[own, ("sec-fetch-site", "same-origin")]));
    assert!(!foreign(&[own, ("sec-fetch-site", "none")]), "typed into the address bar");
    assert!(foreign(&[own, ("origin", "http://evil.example")]));
    assert!(foreign(&[own, ("origin", "http://127.0.0.1:9999")]), "another port is another origin");
    assert!(foreign(&[own, ("origin", "null")]));
    assert!(foreign(&[own, ("sec-fetch-site", "cross-site")]));
    assert!(foreign(&[own, ("sec-fetch-site", "same-site")]));
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

/// Viewers and programs that collect metrics need no token that ends a run.
#[test]
fn the_read_token_reads_and_commands_nothing() {
    let live = server(true, 16);
    let (line, json) = (bearer(READ_TOKEN), "Content-Type: application/json");
    let status = |method: &str, path: &str| ask(&live, method, path, &[&line, json], "{}").status;
    assert_eq!(get(&live, "/metrics").status, 401);
    for path in ["/metrics", "/health", "/api/v1/history"] {
        assert_eq!(status("GET", path), 200, "{path}");
    }
    assert_eq!(status("GET", "/api/v1/tap?stream=0"), 426, "only the upgrade is missing");
    assert_eq!(status("POST", "/api/v1/session"), 204);
    for command in ["stop", "configure", "arm", "start", "reset"] {
        let answer = ask(&live, "POST", &format!("/api/v1/run/{command}"), &[&line, json], "{}");
        assert_eq!(answer.status, 403, "{command}");
        assert!(answer.body.contains("this token may only read"), "{answer:?}");
    }
    assert!(live.command_queue().next(std::time::Duration::ZERO).is_none(), "no command was passed on");
}

#[test]
fn changes_need_the_token() {
    let live = server(false, 16);
    let json = "Content-Type: application/json";
    let wrong =
        [bearer("0123456789abcdef-tokem"), bearer(""), bearer("0123456789abcdef"), "Cookie: keepup=x".into()];
    for line in wrong.iter().map(String::as_str).chain(["X: y"]) {
        let answer = ask(&live, "POST", "/api/v1/run/stop", &[line, json], "{}");
        assert_eq!(answer.status, 401, "{line}: {answer:?}");
        assert!(answer.head.contains("www-authenticate: bearer"), "{answer:?}");
    }
    assert!(live.command_queue().next(std::time::Duration::ZERO).is_none(), "no command was passed on");
}

#[test]
fn beyond_loopback_reading_needs_the_token_too() {
    let live = server(true, 16);
    for path in ["/api/v1/now", "/metrics", "/health", "/api/v1/events", "/nothing"] {
        assert_eq!(get(&live, path).status, 401, "{path}");
    }
    assert_eq!(get(&live, "/").status, 200, "the page's frame has no data");
    assert_eq!(get(&live, "/assets/live.css").status, 200);
    assert_eq!(ask(&live, "GET", "/metrics", &[&bearer(TOKEN)], "").status, 200);
    let session = ask(&live, "POST", "/api/v1/session", &[&bearer(TOKEN)], "");
    assert_eq!(session.status, 204);
    let cookie = session.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.contains("httponly") && cookie.contains("samesite=strict"), "{cookie}");
    let pass = format!("Cookie: other=1; {}", cookie.split(';').next().unwrap());
    assert_eq!(ask(&live, "GET", "/metrics", &[&pass], "").status, 200);
    let changes = ask(&live, "POST", "/api/v1/run/stop", &[&pass, "Content-Type: application/json"], "{}");
    assert_eq!(changes.status, 401, "the cookie grants read access only");
}

#[test]
fn dns_rebinding_is_refused() {
    let live = server(false, 16);
    let answer =
        send(live.address(), b"GET /api/v1/now HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    assert_eq!(answer.status, 421);
    let answer = send(live.address(), b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    assert_eq!(answer.status, 421, "the page is refused too");
}

#[test]
fn every_response_has_the_security_headers() {
    let live = server(false, 16);
    let check = |live: &Live, path: &str| {
        let answer = get(live, path);
        for line in [
            "content-security-policy: default-src 'none'",
            "x-content-type-options: nosniff",
            "x-frame-options: deny",
            "referrer-policy: no-referrer",
        ] {
            assert!(answer.head.contains(line), "{path}: {line}: {}", answer.head);
        }
        assert!(!answer.head.contains("access-control-"), "{path}: no other origin may read");
        answer.head.lines().find(|l| l.starts_with("content-security-policy")).unwrap().to_owned()
    };
    for path in ["/", "/assets/live.js", "/metrics", "/nothing", "/assets/../../etc/passwd"] {
        let policy = check(&live, path);
        assert!(
            !policy.contains("script-src 'self' '"),
            "scripts come only from files of this host: {policy}"
        );
    }
}
