//! Rule on words: what people read is plain English in the terms of the field.
//!
//! Comments and literals of shipping code, and every page but those that are history.

use crate::source::SourceFile;
use crate::violation::Violation;

/// Words that signal a sentence to rewrite, with what a reader expects instead.
const WORDS: [(&str, &str); 27] = [
    ("told", "reported, printed, specified"),
    ("tells of", "reports, names"),
    ("foretell", "estimate"),
    ("foretells", "estimates"),
    ("heed", "handle"),
    ("reckon", "estimate, expect"),
    ("reckons", "estimates, expects"),
    ("whoever", "the user, the client"),
    ("in earnest", "a real run"),
    ("by now", "the changed state itself"),
    ("so much of", "the amount"),
    ("gone on with", "continued, resumed"),
    ("goes on with", "continues with"),
    ("go on with", "continue with"),
    ("made anew", "created again"),
    ("anew", "again"),
    ("brought to", "the action itself"),
    ("left alone", "unchanged, skipped"),
    ("let alone", "not to mention"),
    ("looked at", "read, checked"),
    ("its begin", "its start"),
    ("of then", "at that time"),
    ("desk", "a noun that says what it holds"),
    ("sitting", "session"),
    ("manner", "mode, options"),
    ("farewell", "shutdown"),
    ("crowd", "group, clients"),
];
/// Pages that record what was thought at their time, and this list.
const SKIPPED: [&str; 3] = ["docs/journal/", "docs/adr/", "xtask/src/rules/words"];

/// Keys of stored files keep their names.
const STORED_KEY: &str = "#[serde(rename";

pub(crate) fn check(file: &SourceFile) -> Vec<Violation> {
    let is_data = ["json", "toml"].iter().any(|ending| file.path.ends_with(ending));
    if file.is_test() || is_data || SKIPPED.iter().any(|skipped| file.path.starts_with(skipped)) {
        return Vec::new();
    }
    let mut code = file.code.lines();
    let lines = (1..).zip(file.text.lines()).map(|(number, line)| (number, line, code.next()));
    let lines = lines.filter(|(_, line, _)| !line.contains(STORED_KEY));
    lines.flat_map(|(number, line, code)| in_line(file, number, &prose(line, code))).collect()
}

/// A line without its code, if it has any: comments and literals are blank in `code`.
fn prose(line: &str, code: Option<&str>) -> String {
    let Some(code) = code else { return line.to_lowercase() };
    let pairs = line.chars().zip(code.chars().chain(std::iter::repeat(' ')));
    pairs.map(|(text, code)| if code == ' ' { text.to_ascii_lowercase() } else { ' ' }).collect()
}

fn in_line(file: &SourceFile, number: usize, prose: &str) -> Vec<Violation> {
    let found = WORDS.iter().filter(|(word, _)| has_word(prose, word));
    found
        .map(|(word, instead)| Violation {
            file: file.path.clone(),
            line: number,
            rule: "plain-words",
            advice: format!("rewrite the sentence with `{word}` (instead: {instead})"),
        })
        .collect()
}

fn has_word(text: &str, word: &str) -> bool {
    let is_edge = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word).any(|(at, _)| {
        is_edge(text[..at].chars().next_back()) && is_edge(text[at + word.len()..].chars().next())
    })
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
