//! Data within a page: JSON that no text in it can break out of.

use serde_json::Value;

/// The value as JSON for a script element: what could end the element, begin a comment or a line is written
/// as its number, which is the same to a reader of JSON.
pub(super) fn text(value: &Value) -> String {
    let json = value.to_string();
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => safe.push_str("\\u003c"),
            '>' => safe.push_str("\\u003e"),
            '&' => safe.push_str("\\u0026"),
            '\u{2028}' => safe.push_str("\\u2028"),
            '\u{2029}' => safe.push_str("\\u2029"),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
#[path = "island_tests.rs"]
mod tests;
