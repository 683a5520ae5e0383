//! Texts of a peer in errors and remarks.

/// Most characters of a text.
const QUOTED_CHARS_MAX: usize = 100;

/// The start of a text, in quotes.
pub(super) fn quoted(text: &str) -> String {
    let start: String = text.chars().take(QUOTED_CHARS_MAX).collect();
    format!("{start:?}")
}
