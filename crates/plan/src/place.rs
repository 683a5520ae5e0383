//! Locations in a TOML text: key to line, and span to key.

use std::fmt;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

/// Location of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLocation {
    /// File or profile name.
    pub origin: String,
    /// Line from 1, if known.
    pub line: Option<usize>,
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin)?;
        self.line.iter().try_for_each(|line| write!(f, ":{line}"))
    }
}

/// Line, from 1, of a byte offset.
pub fn line_of_offset(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

/// Line of a dotted key; `None` if the key does not occur.
pub fn line_of_key(text: &str, key: &str) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    let mut table = document.get_ref();
    let mut names = key.split('.').peekable();
    while let Some(name) = names.next() {
        let (found, value) = table.iter().find(|(found, _)| found.get_ref() == name)?;
        if names.peek().is_none() {
            return Some(line_of_offset(text, found.span().start));
        }
        table = value.get_ref().as_table()?;
    }
    None
}

/// Dotted key whose name or value contains the span; empty if there is none or the text is not
/// valid TOML.
pub fn key_at(text: &str, span: &Range<usize>) -> String {
    let Ok(document) = DeTable::parse(text) else { return String::new() };
    let mut names = Vec::new();
    name_path(document.get_ref(), span, &mut names);
    names.join(".")
}

/// Collects the keys that contain the span. The span of a `[table]` is its header alone, so every
/// table is searched.
fn name_path(table: &DeTable<'_>, span: &Range<usize>, names: &mut Vec<String>) -> bool {
    let covers = |range: Range<usize>| range.start <= span.start && span.end <= range.end;
    for (name, value) in table {
        names.push(name.get_ref().to_string());
        let deeper = match value.get_ref() {
            DeValue::Table(table) => name_path(table, span, names),
            DeValue::Array(array) => array
                .iter()
                .filter_map(|value| value.get_ref().as_table())
                .any(|table| name_path(table, span, names)),
            _ => false,
        };
        if deeper || covers(name.span()) || covers(value.span()) {
            return true;
        }
        names.pop();
    }
    false
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;
