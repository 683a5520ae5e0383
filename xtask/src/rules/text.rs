//! Rules on the text of a file: first line, name, and forbidden words.

use crate::source::SourceFile;
use crate::violation::Violation;

const LINE_CHARACTERS_MAX: usize = 110;
/// Directories of a developer machine, split because this file is checked too.
const MACHINE_PATHS: [&str; 2] = [concat!("/ro", "ot/"), concat!("/wo", "rk/")];

pub(crate) fn check(file: &SourceFile) -> Vec<Violation> {
    let mut found = machine_paths(file);
    if file.is_rust() {
        found.extend(long_lines(file));
        found.extend(opening(file));
    }
    found
}

fn violation(file: &SourceFile, line: usize, rule: &'static str, advice: impl Into<String>) -> Violation {
    Violation { file: file.path.clone(), line, rule, advice: advice.into() }
}

fn long_lines(file: &SourceFile) -> Vec<Violation> {
    let advice = format!("break the line: at most {LINE_CHARACTERS_MAX} characters");
    (1..)
        .zip(file.text.lines())
        .filter(|(_, line)| line.chars().count() > LINE_CHARACTERS_MAX)
        .map(|(number, _)| violation(file, number, "line-length", advice.clone()))
        .collect()
}

fn opening(file: &SourceFile) -> Vec<Violation> {
    let mut found = Vec::new();
    if !file.text.starts_with("//!") {
        found.push(violation(file, 1, "file-purpose", "open the file with `//!` and its purpose"));
    }
    if file.path.ends_with("/mod.rs") {
        found.push(violation(file, 1, "mod-rs", "name it after its module: `foo.rs` beside `foo/`"));
    }
    found
}

fn machine_paths(file: &SourceFile) -> Vec<Violation> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        for path in MACHINE_PATHS {
            if line.match_indices(path).any(|(at, _)| starts_a_path(&line[..at])) {
                let advice = format!("remove `{path}`: it does not exist on other machines");
                found.push(violation(file, number, "machine-path", advice));
            }
        }
    }
    found
}

/// Whether a path can start after this text. After "/proc/1" the match is inside a path.
fn starts_a_path(before: &str) -> bool {
    !before.ends_with(|c: char| c.is_alphanumeric() || "_-.*}>".contains(c))
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
