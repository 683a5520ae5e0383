//! Sanitizing of foreign text for terminals and logs.
//!
//! Text of a peer, a file or a name may contain control characters, reorder or hide other text, or
//! imitate a line of keepup. Text of a peer is sanitized by [`one_line`] on receipt, and all output
//! by [`lines`] or [`json`].
use std::borrow::Cow;

use serde::{Deserialize, Deserializer};

/// Maximum length of a peer's text, characters.
const CHARACTERS_MAX: usize = 1000;

/// Whether `c` is printable: neither a control character nor one that hides or reorders text.
#[must_use]
pub fn is_printable(c: char) -> bool {
    let hides_or_reorders = matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    );
    !c.is_control() && !hides_or_reorders
}

/// A peer's text as one line of at most 1000 characters. Line breaks and tabs become blanks, other
/// unprintable characters U+FFFD.
#[must_use]
pub fn one_line(text: &str) -> String {
    let shown = |c| match c {
        '\n' | '\r' | '\t' => ' ',
        c if is_printable(c) => c,
        _ => char::REPLACEMENT_CHARACTER,
    };
    let mut characters = text.trim_end().chars();
    let mut line: String = characters.by_ref().take(CHARACTERS_MAX).map(shown).collect();
    if characters.next().is_some() {
        line.push('…');
    }
    line
}

/// [`one_line`] for a field of a message from a peer: `#[serde(deserialize_with = "…")]`.
///
/// # Errors
/// The value is not a string.
pub fn deserialize_line<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    String::deserialize(from).map(|text| one_line(&text))
}

/// The same for a field that may be null or missing.
///
/// # Errors
/// The value is neither null nor a string.
pub fn deserialize_optional_line<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Option::<String>::deserialize(from).map(|text| text.as_deref().map(one_line))
}

/// A name or path as one line in which every character is visible: others become escapes such as `\n`.
/// Quotes and backslashes stay as they are.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if is_printable(c) { line.push(c) } else { line.extend(c.escape_default()) }
    }
    line
}

/// Multi-line text for a terminal; unprintable characters become U+FFFD.
#[must_use]
pub fn lines(text: &str) -> Cow<'_, str> {
    let may_stay = |c| is_printable(c) || matches!(c, '\n' | '\t');
    match text.chars().all(may_stay) {
        true => Cow::Borrowed(text),
        false => text.chars().map(|c| if may_stay(c) { c } else { char::REPLACEMENT_CHARACTER }).collect(),
    }
}

/// Equivalent JSON with unprintable characters escaped.
#[must_use]
pub fn json(text: &str) -> Cow<'_, str> {
    // Line breaks occur only between members; within strings they are already escaped.
    let may_stay = |c| is_printable(c) || c == '\n';
    if text.chars().all(may_stay) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match may_stay(c) {
            true => escaped.push(c),
            false => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| escaped += &format!("\\u{unit:04x}")),
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
#[path = "printable_tests.rs"]
mod tests;
