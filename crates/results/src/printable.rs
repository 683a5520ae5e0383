//! Text from elsewhere, made fit for terminals and logs.
//!
//! A peer, a file or a name may hold characters that command a terminal, reorder or hide what follows, or
//! begin a line that looks like one of keepup's own. Each text of a peer goes through [`one_line`] where it is
//! received, and everything that is printed through [`lines`] or [`json`].
use std::borrow::Cow;

use serde::{Deserialize, Deserializer};

/// Longest text of a peer that is shown, in characters.
const CHARACTERS_MAX: usize = 1000;

/// Whether `c` may be shown as it is: it neither commands a terminal nor hides or reorders text.
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

/// A text of a peer as one line of at most 1000 characters. Breaks and tabs become blanks, everything else
/// that cannot be shown becomes U+FFFD.
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
/// It is no text.
pub fn deserialize_line<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    String::deserialize(from).map(|text| one_line(&text))
}

/// The same where the field may be null or missing.
///
/// # Errors
/// It is neither null nor a text.
pub fn deserialize_optional_line<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Option::<String>::deserialize(from).map(|text| text.as_deref().map(one_line))
}

/// A text of several lines for a terminal: what cannot be shown becomes U+FFFD.
#[must_use]
pub fn lines(text: &str) -> Cow<'_, str> {
    let may_stay = |c| is_printable(c) || matches!(c, '\n' | '\t');
    match text.chars().all(may_stay) {
        true => Cow::Borrowed(text),
        false => text.chars().map(|c| if may_stay(c) { c } else { char::REPLACEMENT_CHARACTER }).collect(),
    }
}

/// A JSON text that says the same, with everything escaped that cannot be shown.
#[must_use]
pub fn json(text: &str) -> Cow<'_, str> {
    // Breaks stand between members only; within texts they are escaped already.
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
