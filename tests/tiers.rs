//! `cargo test` runs the fast tier only, and says which tests did not run.
use std::io::Write as _;
use std::process::Command;

use crate::common::FILE_SERVER;

#[test]
fn tests_of_the_other_tiers_are_counted() {
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
    // Past the capture: output of a test that passes is not shown.
    let line = format!(
        "NOT RUN: {} system tests (`cargo test-system`), {} measured tests (`cargo test-measured`)",
        system.len(),
        measured.len()
    );
    writeln!(std::io::stderr(), "{line}").unwrap();
}
