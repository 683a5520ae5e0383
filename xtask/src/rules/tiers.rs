//! Tiers of the end-to-end tests must match their names.

use crate::source::SourceFile;
use crate::violation::Violation;

/// Not a test: a helper process of other tests.
const SERVER: &str = "the file server of the other tests";

pub(crate) fn check(file: &SourceFile) -> Vec<Violation> {
    if !file.is_rust() || !file.path.starts_with("tests/") {
        return Vec::new();
    }
    let is_measured = file.path.contains("/measured/");
    let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
    let mut found = Vec::new();
    for (at, _) in lines.iter().enumerate().filter(|(_, line)| **line == "#[test]") {
        let reason = lines.get(at + 1).and_then(|next| next.strip_prefix("#[ignore"));
        let reason = reason.map(|rest| rest.trim_start_matches(" = \"").trim_end_matches("\"]"));
        let advice = match (reason, is_measured) {
            (Some("measured"), true) | (None | Some("system" | SERVER), false) => continue,
            (_, true) => {
                "tests below `measured/` are `#[ignore = \"measured\"]`, in the line after `#[test]`"
            }
            (Some("measured"), false) => "move the test to a file below `measured/`",
            (Some(_), false) => {
                "a test is ignored as \"system\" or \"measured\"; `docs/testing.md` has the tiers"
            }
        };
        found.push(Violation {
            file: file.path.clone(),
            line: at + 1,
            rule: "test-tier",
            advice: advice.into(),
        });
    }
    found
}

#[cfg(test)]
#[path = "tiers_tests.rs"]
mod tests;
