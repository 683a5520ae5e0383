//! Whole reports against the texts beside this file; `KEEPUP_BLESS=1 cargo test -p keepup-report` rewrites.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use keepup_report::{Style, markdown, terminal};
use keepup_results::{ResultSummary, Stored};

const NAMES: [&str; 4] = ["fit", "limited", "not_fit", "bare"];
const PAGE: Style = Style { colour: false, width: 100 };

fn fixture(name: &str) -> String {
    format!("{}/tests/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn summary(name: &str) -> ResultSummary {
    serde_json::from_str(&std::fs::read_to_string(fixture(&format!("{name}.json"))).unwrap()).unwrap()
}

fn stored(name: &str) -> Stored {
    Stored::Qualify(Box::new(summary(name)))
}

#[track_caller]
fn assert_same(drawn: &str, file: &str) {
    let path = fixture(file);
    if std::env::var_os("KEEPUP_BLESS").is_some() {
        std::fs::write(&path, drawn).unwrap();
    }
    let wanted = std::fs::read_to_string(Path::new(&path)).unwrap_or_default();
    assert!(
        drawn == wanted,
        "the report differs from tests/{file}; if the change is meant: \
         KEEPUP_BLESS=1 cargo test -p keepup-report\n{drawn}"
    );
}

#[test]
fn terminal_pages_are_as_committed() {
    for name in NAMES {
        assert_same(&terminal(&stored(name), PAGE), &format!("{name}.txt"));
    }
}

#[test]
fn markdown_pages_are_as_committed() {
    for name in NAMES {
        assert_same(&markdown(&stored(name)), &format!("{name}.md"));
    }
}

#[test]
fn the_fixtures_do_not_contradict_themselves() {
    for name in NAMES {
        assert_eq!(summary(name).check(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_terminal_page_is_one_page() {
    for name in NAMES {
        for width in [80, 100, 140] {
            let page = terminal(&stored(name), Style { colour: false, width });
            let literal = |line: &&str| line.contains("repeat with") || line.contains("result in");
            let lines = page.lines().filter(|line| !literal(line));
            let widest = lines.max_by_key(|line| line.chars().count()).unwrap();
            assert!(widest.chars().count() <= width, "{name} at {width}: {widest}");
        }
        let lines = terminal(&stored(name), PAGE).lines().count();
        assert!(lines <= 72, "{name}: {lines} lines");
    }
}

#[test]
fn colour_adds_codes_and_changes_no_word() {
    for name in NAMES {
        let coloured = terminal(&stored(name), Style { colour: true, width: 100 });
        let mut plain = coloured.clone();
        for code in ["0", "1", "31", "32", "33"] {
            plain = plain.replace(&format!("\u{1b}[{code}m"), "");
        }
        let trimmed: String = plain.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        assert!(coloured.contains('\u{1b}'));
        assert_eq!(trimmed, terminal(&stored(name), PAGE));
    }
}
