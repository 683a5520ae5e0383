//! Rules on code: location of `unsafe`, clocks, I/O and tests.

use crate::source::SourceFile;
use crate::violation::Violation;

/// Files that may read the clock, with reasons. Other code gets the time as an argument.
const CLOCK_ALLOWED: [(&str, &str); 5] = [
    ("crates/measure/src/clock.rs", "the clock that others are given"),
    ("crates/cli/", "where the real clock is passed in"),
    (
        "crates/stream/src/source/clock.rs",
        "a simulated detector is outside of the recorder and has its own clock",
    ),
    ("crates/stream/src/client.rs", "time limits of a blocking socket"),
    ("xtask/", "how long checks and measured programs took"),
];
/// Files that may combine text and hint, for channels that carry a single text.
const HINT_ALLOWED: &str = "crates/error/src/cause.rs";
/// Pure code, and the names it must not use.
const PURE: [&str; 2] = ["crates/qualify/src/search", "crates/model/"];
const IMPURE_MODULES: [&str; 5] = ["fs", "net", "thread", "process", "env"];

pub(crate) fn check(file: &SourceFile) -> Vec<Violation> {
    if !file.is_rust() {
        return Vec::new();
    }
    let mut found = unsafe_outside_sys(file);
    found.extend(test_bodies(file));
    if !file.is_test() {
        found.extend(clock(file));
        found.extend(pure(file));
        found.extend(hints(file));
    }
    found
}

fn violation(file: &SourceFile, at: usize, rule: &'static str, advice: impl Into<String>) -> Violation {
    let line = 1 + file.code[..at].matches('\n').count();
    Violation { file: file.path.clone(), line, rule, advice: advice.into() }
}

/// Hints within message texts. Shipping code separates them.
fn hints(file: &SourceFile) -> Vec<Violation> {
    if !file.path.starts_with("crates/") || file.path == HINT_ALLOWED {
        return Vec::new();
    }
    let advice = "move the hint out of the text: use `Cause::with_hint` or `hint` of `Diagnostic`";
    let found = file.text.match_indices("hint:").map(|(at, _)| at).filter(|at| {
        let before = &file.text[..*at];
        let is_comment = before.rsplit('\n').next().unwrap_or_default().trim_start().starts_with("//");
        // A literal may go on in the next line, behind a backslash.
        let before = before.trim_end().strip_suffix('\\').unwrap_or(before);
        !is_comment && before.ends_with("\\n")
    });
    let line = |at: usize| 1 + file.text[..at].matches('\n').count();
    found
        .map(|at| Violation {
            file: file.path.clone(),
            line: line(at),
            rule: "hint-apart",
            advice: advice.into(),
        })
        .collect()
}

/// Positions of a whole word.
fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |at| !code[..*at].ends_with(part) && !code[at + word.len()..].starts_with(part))
}

fn unsafe_outside_sys(file: &SourceFile) -> Vec<Violation> {
    if file.path.starts_with("crates/sys/") {
        return Vec::new();
    }
    let advice = "move unsafe code to `crates/sys`, behind a safe function";
    let found = words(&file.code, "unsafe").chain(words(&file.code, "unsafe_code"));
    found.map(|at| violation(file, at, "unsafe-only-in-sys", advice)).collect()
}

fn test_bodies(file: &SourceFile) -> Vec<Violation> {
    let advice = "move the tests to a sibling: `#[cfg(test)] #[path = \"foo_tests.rs\"] mod tests;`";
    words(&file.code, "mod")
        .filter(|at| {
            let rest = file.code[at + 3..].trim_start();
            let name_end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            ["test", "tests"].contains(&&rest[..name_end]) && rest[name_end..].trim_start().starts_with('{')
        })
        .map(|at| violation(file, at, "tests-in-sibling-files", advice))
        .collect()
}

fn clock(file: &SourceFile) -> Vec<Violation> {
    if CLOCK_ALLOWED.iter().any(|(path, _)| file.path.starts_with(path)) {
        return Vec::new();
    }
    let advice = "pass the time or a `Clock` as an argument; only `measure` and `cli` read it";
    let found = ["Instant::now", "SystemTime::now"].into_iter().flat_map(|call| words(&file.code, call));
    found.map(|at| violation(file, at, "clock-is-injected", advice)).collect()
}

fn pure(file: &SourceFile) -> Vec<Violation> {
    if !PURE.iter().any(|path| file.path.starts_with(path)) {
        return Vec::new();
    }
    let modules = IMPURE_MODULES.into_iter().flat_map(|module| std_uses(&file.code, module));
    let clocks = ["Instant", "SystemTime"].into_iter().flat_map(|name| words(&file.code, name));
    let advice = "this code is pure: pass what it needs as an argument";
    modules.chain(clocks).map(|at| violation(file, at, "pure", advice)).collect()
}

/// Positions of `std::module`, also within `std::{...}`.
fn std_uses<'a>(code: &'a str, module: &'a str) -> impl Iterator<Item = usize> + 'a {
    words(code, "std").filter(move |at| {
        let Some(rest) = code[at + 3..].trim_start().strip_prefix("::") else { return false };
        match rest.trim_start().strip_prefix('{') {
            Some(group) => words(group.split(';').next().unwrap_or_default(), module).next().is_some(),
            None => words(rest.trim_start(), module).next() == Some(0),
        }
    })
}

#[cfg(test)]
#[path = "code_tests.rs"]
mod tests;
