//! Where lines are broken and how wide the columns of a table are, in columns of a terminal.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::page::{Cell, Table};

/// By how much a column gives way at a time.
const STEP: usize = 2;
/// Longest word for which a column of words keeps its width; what is longer is broken.
const WORD_MAX: usize = 24;
/// What separates the parts of a figure's cell: its range, and what is said of it.
const PARTS: [&str; 2] = [" (", ", "];

/// Width of every column, so that a table fits into `room` without its gaps; none where it cannot. Where it
/// does not fit by itself the widest columns give way, but no figure is broken.
pub(super) fn columns(table: &Table, titles: &[Cell], rows: &[Vec<Cell>], room: usize) -> Option<Vec<usize>> {
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
        let over = widths.iter().sum::<usize>().saturating_sub(room);
        if over == 0 {
            return Some(widths);
        }
        let spare = widths.iter_mut().zip(&least).filter(|(width, least)| **width > **least);
        // Step by step, so that columns which become equally wide give way together.
        let (width, least) = spare.max_by_key(|(width, _)| **width)?;
        *width -= over.min(STEP).min(*width - least);
    }
}

/// The parts of a figure's cell, each of which stays in one piece.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = PARTS.iter().filter_map(|mark| rest.find(mark)).min() {
        // A comma stays with what is before it, a bracket with what is behind it.
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

/// The lines of a cell in a column of that width: a figure's parts stay whole.
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

/// Lines of at most `width` columns, broken at spaces; a longer word is broken wherever it must. Spaces
/// within a line stay as they are.
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
            let (begin, end) = rest.split_at(cut(rest, width));
            lines.push(begin.to_owned());
            rest = end;
        }
        line.push_str(rest);
    }
    lines.push(line);
    lines
}

/// Where the first `width` columns of a word end, bytes; at least one character.
fn cut(word: &str, width: usize) -> usize {
    let mut columns = 0;
    let begins = word.char_indices().skip(1).map(|(at, _)| at);
    for ((_, c), next) in word.char_indices().zip(begins) {
        columns += c.width().unwrap_or(0);
        let after = word[next..].chars().next().and_then(|c| c.width()).unwrap_or(0);
        if columns + after > width {
            return next;
        }
    }
    word.len()
}

/// A command in lines of at most `width` columns, all but the last with the mark by which a shell goes on to
/// the next. What is quoted stays in one piece, and so does a word that is longer than a line.
pub(super) fn shell_lines(command: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let words = shell_words(command);
    for (number, word) in words.iter().enumerate() {
        // A line that is not the last has the mark too.
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

/// The words of a command as they stand in it, what is quoted with its quotes.
fn shell_words(command: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut begin, mut is_quoted, mut is_escaped) = (0, false, false);
    for (at, c) in command.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\'' => is_quoted = !is_quoted,
            '\\' if !is_quoted => is_escaped = true,
            ' ' if !is_quoted => {
                words.push(&command[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    words.push(&command[begin..]);
    words
}
