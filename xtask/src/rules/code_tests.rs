//! Rules on code, each with code that keeps it and code that breaks it.

use super::check;
use crate::source::SourceFile;

fn rules(path: &str, code: &str) -> Vec<(&'static str, usize)> {
    check(&SourceFile::new(path, code)).into_iter().map(|found| (found.rule, found.line)).collect()
}

#[test]
fn unsafe_is_found_outside_of_sys_and_in_code_only() {
    let rule = "unsafe-only-in-sys";
    assert_eq!(rules("crates/plan/src/a.rs", "\nunsafe fn f() {}"), [(rule, 2)]);
    assert_eq!(rules("crates/plan/src/a.rs", "#![allow(unsafe_code)]"), [(rule, 1)]);
    assert_eq!(rules("crates/plan/src/a_tests.rs", "unsafe { x() }"), [(rule, 1)]);
    assert_eq!(rules("crates/plan/src/a.rs", "// unsafe\nlet unsafe_rate = \"unsafe\";"), []);
    assert_eq!(rules("crates/sys/src/a.rs", "unsafe { x() }"), []);
    assert_eq!(rules("docs/a.md", "unsafe"), []);
}

#[test]
fn tests_live_in_siblings() {
    assert_eq!(rules("crates/a/src/b.rs", "#[cfg(test)]\nmod tests {\n}"), [("tests-in-sibling-files", 2)]);
    assert_eq!(rules("crates/a/src/b.rs", "#[cfg(test)]\nmod tests;\nmod testing { }"), []);
}

#[test]
fn the_clock_is_read_where_the_list_says() {
    let code = "let t = std::time::Instant::now();\nlet u = SystemTime::now();";
    let rule = "clock-is-injected";
    assert_eq!(rules("crates/recorder/src/a.rs", code), [(rule, 1), (rule, 2)]);
    assert_eq!(rules("crates/measure/src/clock.rs", code), []);
    assert_eq!(rules("crates/measure/src/clockwork.rs", code).len(), 2);
    assert_eq!(rules("crates/recorder/src/a_tests.rs", code), []);
}

#[test]
fn the_search_does_no_io() {
    let found = |code| rules("crates/qualify/src/search/grid.rs", code);
    assert_eq!(found("use std::fs;"), [("pure", 1)]);
    assert_eq!(found("use std::{fmt, thread::sleep};"), [("pure", 1)]);
    assert_eq!(found("use std::{\n fmt,\n net,\n};"), [("pure", 1)]);
    assert_eq!(found("fn f(at: std::time::Instant) {}"), [("pure", 1)]);
    assert_eq!(found("use std::time::Duration;\nuse std::{fmt};\nlet net = threads.fs;"), []);
    assert_eq!(rules("crates/qualify/src/trial.rs", "use std::fs;"), []);
}

#[test]
fn a_hint_is_no_part_of_a_message() {
    let found = |code| rules("crates/a/src/b.rs", code);
    assert_eq!(found("let text = \"it failed\\nhint: try\";"), [("hint-apart", 1)]);
    assert_eq!(found("let text = \"it failed\\n\\\n    hint: try\";"), [("hint-apart", 2)]);
    assert_eq!(found("let error = Error { what, hint: \"try\" };\n// It was `\\nhint:` once.\n"), []);
    let text = "const LINE: &str = \"\\nhint: \";";
    assert_eq!(rules("crates/error/src/cause.rs", text), []);
    assert_eq!(rules("crates/a/src/b_tests.rs", text), []);
    assert_eq!(rules("testkit/src/a.rs", text), []);
    assert_eq!(rules("xtask/src/a.rs", text), []);
}
