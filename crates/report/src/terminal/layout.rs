//! Line wrapping and column widths, in terminal columns.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use keepup_measure::sum::Sums;

use crate::table::{Cell, Table};

/// Step by which a column shrinks.
const STEP: usize = 2;
/// Longest word that is kept in one piece.
const WORD_MAX: usize = 24;
/// Separators between a figure, its range and its comment.
const PARTS: [&str; 2] = [" (", ", "];

/// Column widths of a table for a total of `width`, gaps excluded, or none if it cannot fit. The widest
/// columns shrink first; figures are never split.
pub(super) fn columns(
    table: &Table,
    titles: &[Cell],
    rows: &[Vec<Cell>],
    width: usize,
) -> Option<Vec<usize>> {
    let mut widths = Vec::new();
    let mut least = Vec::new();
    for (index, column) in table.columns.iter().enumerate() {
        let title = titles.get(index).map_or("", |title| title.text.as_str());
        let cells = || rows.iter().filter_map(|row| row.get(index)).map(|cell| cell.text.as_str());
        widths.push(cells().map(|text| text.width()).chain([title.width()]).max().unwrap_or(0));
        let words = |text: &str| text.split(' ').map(|word| word.width()).max().unwrap_or(0);
        let narrowest = match column.right {
            true => cells().map(longest_part).max().unwrap_or(0),
            false => cells().map(words).max().unwrap_or(0).min(WORD_MAX),
        };
        least.push(narrowest.max(words(title).min(WORD_MAX)));
    }
    loop {
        let over = widths.iter().saturating_sum::<usize>().saturating_sub(width);
        if over == 0 {
            return Some(widths);
        }
        let spare = widths.iter_mut().zip(&least).filter(|(width, least)| **width > **least);
        // Small steps, so that columns of equal width shrink together.
        let (widest, least) = spare.max_by_key(|(width, _)| **width)?;
        *widest -= over.min(STEP).min(*widest - least);
    }
}

/// Splits the cell of a figure into parts that are not wrapped.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = PARTS.iter().filter_map(|mark| rest.find(mark)).min() {
        // A comma belongs to the text before it, a bracket to the text after it.
        let end = at + usize::from(!rest[at..].starts_with(' '));
        parts.push(&rest[..end]);
        rest = rest[end..].trim_start_matches(' ');
    }
    parts.push(rest);
    parts
}

fn longest_part(text: &str) -> usize {
    parts(text).iter().map(|part| part.width()).max().unwrap_or(0)
}

/// Wraps a cell at `width` without splitting a figure.
pub(super) fn pieces(text: &str, is_figure: bool, width: usize) -> Vec<String> {
    if !is_figure || text.width() <= width {
        return wrap(text, width);
    }
    let mut lines: Vec<String> = Vec::new();
    for part in parts(text) {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + part.width() <= width => {
                line.push(' ');
                line.push_str(part);
            }
            _ => lines.extend(wrap(part, width)),
        }
    }
    lines
}

/// Wraps a text at spaces into lines of at most `width` columns. Splits longer words. Keeps spaces within a
/// line.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        let needed = line.width() + 1 + word.width();
        if !line.is_empty() && needed > width {
            lines.push(std::mem::take(&mut line).trim_end().to_owned());
        } else if !line.is_empty() {
            line.push(' ');
        }
        let mut rest = word;
        while line.is_empty() && rest.width() > width {
            let (head, end) = rest.split_at(cut(rest, width));
            lines.push(head.to_owned());
            rest = end;
        }
        line.push_str(rest);
    }
    lines.push(line);
    lines
}

/// Byte offset at which the first `width` columns of a word end, after at least one character.
fn cut(word: &str, width: usize) -> usize {
    let mut columns = 0;
    let starts = word.char_indices().skip(1).map(|(at, _)| at);
    for ((_, c), next) in word.char_indices().zip(starts) {
        columns += c.width().unwrap_or(0);
        let after = word[next..].chars().next().and_then(|c| c.width()).unwrap_or(0);
        if columns + after > width {
            return next;
        }
    }
    word.len()
}

/// Wraps a command into lines of at most `width` columns that end with a backslash. Does not split quoted
/// text or words that are longer than a line.
pub(super) fn shell_lines(command: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let words = shell_words(command);
    for (number, word) in words.iter().enumerate() {
        // Space for the backslash.
        let mark = if number + 1 == words.len() { 0 } else { 2 };
        if !line.is_empty() && line.width() + 1 + word.width() + mark > width {
            lines.push(format!("{line} \\"));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

/// Splits a command into words, quotes included.
fn shell_words(command: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut start, mut is_quoted, mut is_escaped) = (0, false, false);
    for (at, c) in command.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\'' => is_quoted = !is_quoted,
            '\\' if !is_quoted => is_escaped = true,
            ' ' if !is_quoted => {
                words.push(&command[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    words.push(&command[start..]);
    words
}
