//! `cargo test` runs only the fast tier, and reports how many tests were skipped.
use std::io::Write as _;
use std::process::Command;

use crate::common::FILE_SERVER;

#[test]
fn skipped_tests_of_the_other_tiers_are_counted() {
    let program = std::env::current_exe().unwrap();
    let listed = Command::new(program).args(["--list", "--ignored", "--format", "terse"]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let names =
        listed.lines().filter_map(|line| line.strip_suffix(": test")).filter(|name| *name != FILE_SERVER);
    let (measured, system): (Vec<&str>, Vec<&str>) = names.partition(|name| name.contains("::measured::"));
    assert!(!measured.is_empty() && !system.is_empty(), "{listed}");
    if std::env::args().any(|argument| argument == "--include-ignored") {
        return;
    }
    // Bypass the harness, which hides the output of passing tests.
    let line = format!(
        "NOT RUN: {} system tests (`cargo test-system`), {} measured tests (`cargo test-measured`)",
        system.len(),
        measured.len()
    );
    writeln!(std::io::stderr(), "{line}").unwrap();
}
