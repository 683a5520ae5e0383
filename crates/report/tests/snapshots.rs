//! Whole reports against the texts beside this file; `KEEPUP_BLESS=1 cargo test -p keepup-report` rewrites.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use keepup_report::{Style, markdown, terminal, terminal_full};
use keepup_results::{ResultSummary, Stored, Verdict};

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
        assert_same(&terminal_full(&stored(name), PAGE), &format!("{name}_full.txt"));
    }
}

#[test]
fn a_terminal_page_ends_with_the_verdict_in_three_lines() {
    for name in NAMES {
        let verdict = format!("[ {} ]", summary(name).verdict);
        let narrow = terminal(&stored(name), Style { colour: false, width: 80 });
        assert_eq!(narrow.lines().rev().nth(3), Some(verdict.as_str()), "{name}: {narrow}");
        let brief = terminal(&stored(name), PAGE);
        let ending: Vec<&str> = brief.lines().rev().take(4).collect();
        assert_eq!(ending[3], verdict, "{name}: {brief}");
        for (line, label) in ending.iter().zip(["limit", "held", "asked"]) {
            assert!(line.trim_start().starts_with(label), "{name}: {line}");
        }
        let full = terminal_full(&stored(name), PAGE);
        assert!(brief.lines().count() < 20, "{name}: {brief}");
        assert_eq!(full.lines().rev().take(4).collect::<Vec<_>>(), ending, "{name}");
    }
}

/// What would make a reader act otherwise is never left to the full page.
#[test]
fn a_brief_page_has_every_reason_and_every_limit() {
    for name in NAMES {
        let summary = summary(name);
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let brief = words(&terminal(&stored(name), PAGE));
        let reasons = if summary.verdict == Verdict::Fit { &[][..] } else { &summary.verdict_reasons };
        for said in reasons.iter().chain(&summary.limits) {
            assert!(brief.contains(&words(said)), "{name}: {said}");
        }
    }
}

#[test]
fn a_load_that_fell_short_is_said_beside_a_fit_too() {
    let mut found = summary("limited");
    found.verdict = Verdict::Fit;
    let page = terminal(&Stored::Qualify(Box::new(found)), PAGE);
    assert!(page.contains("41.2 MB/s of 50.0 MB/s"), "{page}");
}

#[test]
fn a_rate_that_failed_is_never_called_none() {
    let mut found = summary("limited");
    let page = |found: &ResultSummary| terminal_full(&Stored::Qualify(Box::new(found.clone())), PAGE);
    assert!(page(&found).contains("; no rate failed"));
    let mut trial = found.trials[0].clone();
    trial.passed = false;
    trial.failed_condition = Some("the source did not keep its schedule".into());
    found.trials.push(trial);
    assert!(!page(&found).contains("no rate failed"), "{}", page(&found));
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
            let style = Style { colour: false, width };
            for page in [terminal(&stored(name), style), terminal_full(&stored(name), style)] {
                let literal = |line: &&str| {
                    ["repeat with", "result in", "  result "].iter().any(|start| line.contains(start))
                };
                let lines = page.lines().filter(|line| !literal(line));
                let widest = lines.max_by_key(|line| line.chars().count()).unwrap();
                assert!(widest.chars().count() <= width, "{name} at {width}: {widest}");
            }
        }
        let lines = terminal_full(&stored(name), PAGE).lines().count();
        assert!(lines <= 80, "{name}: {lines} lines");
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
