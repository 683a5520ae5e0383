//! Lists, reports and comparisons over real sockets; ids that are paths, and a slow catalog.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use keepup_error::Cause;
use keepup_results::{Entries, Unreadable};
use serde_json::{Value, json};

use super::LOOKUPS_MAX;
use crate::testing::{ask, card, get, server, server_with};
use crate::{Admit, Catalog, EventCard, EventCopy, Listing, Live, ResultEntry, Tone};

/// Catalog with one result and one recording, which records its requests.
#[derive(Default)]
struct Fake {
    asked: Mutex<Vec<String>>,
    inside: AtomicUsize,
    inside_max: AtomicUsize,
    pause: Duration,
}

const PAGE: &str = "<!DOCTYPE html><title>fit</title><script>document.title = 'ran'</script>";

fn entry() -> ResultEntry {
    ResultEntry {
        id: "7f3c01aa".into(),
        kind: "qualify".into(),
        workload: "csl".into(),
        created: "2026-11-21T03:30:00Z".into(),
        answer: "FIT <b>".into(),
        tone: Tone::Good,
        interrupted: false,
        failure: None,
        machine: None,
        tool_version: "0.1.0".into(),
        directory: "/results/csl".into(),
    }
}

impl Fake {
    fn note(&self, what: String) {
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.inside_max.fetch_max(inside, Ordering::SeqCst);
        std::thread::sleep(self.pause);
        self.asked.lock().unwrap().push(what);
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Catalog for Fake {
    fn list(&self) -> Result<Listing, Cause> {
        self.note("list".into());
        let unreadable = vec![Unreadable { directory: "/results/x".into(), why: "it is damaged".into() }];
        let results = Entries { entries: vec![entry()], unreadable, left_out: None };
        Ok(Listing { results, ..Listing::default() })
    }

    fn page(&self, id: &str) -> Result<Option<String>, Cause> {
        self.note(format!("page {id}"));
        match id {
            "broken" => Err(Cause::new("cannot read it: it is damaged").with_hint("measure again")),
            _ => Ok((id == "7f3c01aa").then(|| PAGE.to_owned())),
        }
    }

    fn compare(&self, baseline: &str, other: &str) -> Result<Option<String>, Cause> {
        self.note(format!("compare {baseline} {other}"));
        Ok((other != "gone").then(|| PAGE.to_owned()))
    }

    fn recording(&self, id: &str) -> Result<Option<Value>, Cause> {
        self.note(format!("recording {id}"));
        Ok((id == "00ff").then(|| json!({ "name": "run1" })))
    }

    fn event(&self, id: &str, stream: u32, from: u64, admit: Admit<'_>) -> Result<Option<EventCopy>, Cause> {
        self.note(format!("event {id} {stream} {from}"));
        if from > 1000 {
            return Err(Cause::new("there is no such event").with_hint("list the streams"));
        }
        assert!(admit(4));
        let card = EventCard { name: "Strahl \u{e4} \u{1f600}\r\nX: y".into(), ..card(stream, from) };
        Ok((id == "00ff").then(|| EventCopy::new(card, vec![1, 2, 3, 4])))
    }
}

fn with_catalog(fake: Fake) -> (Live, Arc<Fake>) {
    let fake = Arc::new(fake);
    (server_with(false, 64, Some(fake.clone())), fake)
}

#[test]
fn lists_have_readable_and_unreadable_entries() {
    let (live, _) = with_catalog(Fake::default());
    let answer = get(&live, "/api/v1/results");
    assert_eq!(answer.status, 200, "{answer:?}");
    let list: Entries<ResultEntry> = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(list.entries, [entry()]);
    assert_eq!(list.unreadable[0].why, "it is damaged");
    let recordings: Value = serde_json::from_str(&get(&live, "/api/v1/recordings").body).unwrap();
    assert_eq!(recordings, json!({ "entries": [], "unreadable": [], "left_out": null }));
}

#[test]
fn a_report_is_sandboxed_and_other_responses_keep_the_page_policy() {
    let (live, _) = with_catalog(Fake::default());
    for path in ["/results/7f3c01aa", "/compare?a=7f3c01aa&b=other"] {
        let answer = get(&live, path);
        assert_eq!((answer.status, answer.body.as_str()), (200, PAGE), "{path}");
        let policy = answer.head.lines().find_map(|line| line.strip_prefix("content-security-policy: "));
        assert!(policy.unwrap().starts_with("sandbox allow-scripts; default-src 'none';"), "{policy:?}");
        assert_eq!(answer.head.matches("content-security-policy").count(), 1);
        assert!(!policy.unwrap().contains("allow-same-origin"));
        assert!(answer.head.contains("x-content-type-options: nosniff"), "{}", answer.head);
        assert!(answer.head.contains("content-type: text/html; charset=utf-8"), "{}", answer.head);
    }
    let list = get(&live, "/api/v1/results");
    assert!(list.head.contains("script-src 'self'") && !list.head.contains("sandbox"), "{}", list.head);
}

#[test]
fn unknown_and_unreadable_entries_have_different_errors() {
    let (live, _) = with_catalog(Fake::default());
    assert_eq!(get(&live, "/results/unknown").status, 404);
    assert_eq!(get(&live, "/recordings/unknown").status, 404);
    assert_eq!(get(&live, "/compare?a=7f3c01aa&b=gone").status, 404);
    let broken = get(&live, "/results/broken");
    assert_eq!(broken.status, 422);
    let body: Value = serde_json::from_str(&broken.body).unwrap();
    assert_eq!(body, json!({ "error": "cannot read it: it is damaged", "hint": "measure again" }));
    let recording = get(&live, "/recordings/00ff");
    assert_eq!((recording.status, recording.body.as_str()), (200, "{\"name\":\"run1\"}"));
}

#[test]
fn an_event_has_its_description_for_any_stream_name() {
    let (live, fake) = with_catalog(Fake::default());
    let answer = get(&live, "/recordings/00ff/event?stream=3&from=7&preview=1");
    assert_eq!((answer.status, answer.body.as_bytes()), (200, &[1u8][..]), "{answer:?}");
    let head = answer.head.lines().find_map(|line| line.strip_prefix("keepup-event: ")).unwrap();
    assert!(head.is_ascii(), "{head}");
    let head: Value = serde_json::from_str(head).unwrap();
    assert_eq!((&head["sequence"], &head["shape"], &head["bytes"]), (&7.into(), &json!([1, 1]), &4.into()));
    assert_eq!(head["name"], "strahl \u{e4} \u{1f600}\r\nx: y", "heads are lower-cased by this test");
    assert!(head.get("missed").is_none());
    assert_eq!(get(&live, "/recordings/00ff/event?stream=3").body.as_bytes(), [1, 2, 3, 4]);
    for (path, status) in [
        ("/recordings/unknown/event?stream=3", 404),
        ("/recordings/..%2f/event?stream=3", 404),
        ("/recordings/00ff/event", 400),
        ("/recordings/00ff/event?stream=-1", 400),
        ("/recordings/00ff/event?stream=3&preview=0", 400),
        ("/recordings/00ff/event?stream=3&path=/etc/passwd", 400),
        ("/recordings/00ff/event?stream=3&from=1001", 422),
    ] {
        assert_eq!(get(&live, path).status, status, "{path}");
    }
    assert_eq!(fake.asked.lock().unwrap().len(), 4);
}

#[test]
fn ids_that_could_be_paths_are_not_looked_up() {
    let (live, fake) = with_catalog(Fake::default());
    let long = "a".repeat(65);
    let odd =
        ["..", "%2e%2e", "..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd", "a%00b", "a.b", "a%5cb", "%ff", &long];
    for id in odd {
        for path in [format!("/results/{id}"), format!("/recordings/{id}"), format!("/compare?a={id}&b=a")] {
            let answer = get(&live, &path);
            assert!([400, 404].contains(&answer.status), "{path}: {answer:?}");
        }
    }
    for path in ["/results/", "/results/../../etc/passwd", "/results/a/b", "/recordings//etc/passwd"] {
        assert_eq!(get(&live, path).status, 404, "{path}");
    }
    for query in ["", "?a=1", "?a=1&b=2&c=3", "?a=1&a=2&b=3"] {
        let answer = get(&live, &format!("/compare{query}"));
        assert_eq!(answer.status, 400, "{query}: {answer:?}");
    }
    assert_eq!(*fake.asked.lock().unwrap(), Vec::<String>::new());
}

#[test]
fn without_a_catalog_there_is_no_list() {
    let has_section = |live: &crate::Live| get(live, "/").body.contains("id=\"catalog\"");
    assert!(has_section(&with_catalog(Fake::default()).0));
    let live = server(false, 16);
    assert!(!has_section(&live), "an empty section");
    for path in ["/api/v1/results", "/api/v1/recordings", "/results/a", "/recordings/a", "/compare?a=a&b=b"] {
        let answer = get(&live, path);
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.body.contains("keepup serve DIR"), "{}", answer.body);
    }
}

#[test]
fn stored_data_is_read_only() {
    let (live, fake) = with_catalog(Fake::default());
    let token = format!("Authorization: Bearer {}", crate::testing::TOKEN);
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        for path in ["/results/7f3c01aa", "/recordings/00ff", "/api/v1/results", "/compare?a=a&b=b"] {
            assert_eq!(ask(&live, method, path, &[&token], "").status, 405, "{method} {path}");
        }
    }
    assert_eq!(*fake.asked.lock().unwrap(), Vec::<String>::new());
}

#[test]
fn beyond_loopback_stored_data_needs_the_token() {
    let fake: Arc<dyn Catalog> = Arc::new(Fake::default());
    let live = server_with(true, 16, Some(fake));
    let token = format!("Authorization: Bearer {}", crate::testing::TOKEN);
    for path in ["/api/v1/results", "/results/7f3c01aa", "/recordings/00ff"] {
        assert_eq!(get(&live, path).status, 401, "{path}");
        assert_eq!(ask(&live, "GET", path, &[&token], "").status, 200, "{path}");
    }
}

#[test]
fn concurrent_lookups_are_limited_and_all_are_answered() {
    let (live, fake) = with_catalog(Fake { pause: Duration::from_millis(50), ..Fake::default() });
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..8).map(|_| scope.spawn(|| get(&live, "/results/7f3c01aa").status)).collect();
        // Other requests are not delayed meanwhile.
        assert_eq!(get(&live, "/health").status, 200);
        assert!(asking.into_iter().all(|one| one.join().unwrap() == 200));
    });
    assert_eq!(fake.asked.lock().unwrap().len(), 8);
    assert!(fake.inside_max.load(Ordering::SeqCst) <= LOOKUPS_MAX);
}
