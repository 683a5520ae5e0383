//! Removes comments and literals from Rust source, so that rules see only code.
//!
//! Invariant: line feeds and the width of lines are preserved, so that positions remain valid.

/// Replaces comments and the contents of string and character literals by spaces.
pub(crate) fn strip(source: &str) -> String {
    let mut lexer = Lexer { rest: source, out: String::with_capacity(source.len()) };
    while lexer.step() {}
    lexer.out
}

struct Lexer<'a> {
    rest: &'a str,
    out: String,
}

impl Lexer<'_> {
    /// Handles one token; false at the end.
    fn step(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else { return false };
        if self.rest.starts_with("//") {
            let length = self.rest.find('\n').unwrap_or(self.rest.len());
            self.blank(length);
        } else if self.rest.starts_with("/*") {
            self.blank(block_comment(self.rest));
        } else if first == '"' {
            self.literal(1, string_end(&self.rest[1..]));
        } else if let Some(length) = char_literal(self.rest) {
            self.blank(length);
        } else if first.is_alphabetic() || first == '_' {
            self.word();
        } else {
            self.keep(first.len_utf8());
        }
        true
    }

    /// An identifier, or the prefix of a raw string (r, br, cr) or of a byte or C string (b, c).
    fn word(&mut self) {
        let length = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (word, after) = self.rest.split_at(length);
        let hashes = after.len() - after.trim_start_matches('#').len();
        let raw = ["r", "br", "cr"].contains(&word) && after[hashes..].starts_with('"');
        self.keep(length);
        if raw {
            let closing = format!("\"{}", "#".repeat(hashes));
            let body = &self.rest[hashes + 1..];
            let end = body.find(&closing).map_or(body.len(), |at| at + closing.len());
            self.literal(hashes + 1, end);
        }
    }

    /// Keeps an opening delimiter of `open` bytes, blanks the following `length`, and keeps a closing quote.
    fn literal(&mut self, open: usize, length: usize) {
        self.keep(open);
        self.blank(length);
        if self.out.ends_with(' ') {
            self.out.pop();
            self.out.push('"');
        }
    }

    fn keep(&mut self, length: usize) {
        let (kept, rest) = self.rest.split_at(length);
        self.out.push_str(kept);
        self.rest = rest;
    }

    fn blank(&mut self, length: usize) {
        let (blanked, rest) = self.rest.split_at(length);
        self.out.extend(blanked.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        self.rest = rest;
    }
}

/// Length of a block comment in bytes. Comments nest; an unclosed one extends to the end.
fn block_comment(text: &str) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

/// Length of a string literal after its opening quote, closing quote included, bytes.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if c == '"' && !escaped {
            return at + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    text.len()
}

/// Length of a character literal at the start of the text, bytes; none for a lifetime or other token.
fn char_literal(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('\'')?;
    let mut chars = inner.char_indices();
    let (_, first) = chars.next()?;
    if first == '\\' {
        // The character after the back-slash may be a quote itself.
        let (escape, _) = chars.next()?;
        let after = escape + inner[escape..].chars().next().map_or(1, char::len_utf8);
        return inner[after..].find('\'').map(|at| 1 + after + at + 1);
    }
    match chars.next()? {
        (at, '\'') => Some(1 + at + 1),
        _ => None,
    }
}

#[cfg(test)]
#[path = "lexer_tests.rs"]
mod tests;
