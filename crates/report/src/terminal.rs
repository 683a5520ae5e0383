//! Terminal output.
//!
//! Invariants: no control character of the summary reaches the terminal, because a path may contain any; no
//! line is wider than the terminal, except paths and quoted words, which must stay copyable.

mod layout;

use keepup_results::printable::is_printable;
use unicode_width::UnicodeWidthStr as _;

use self::layout::{columns, pieces, shell_lines, wrap};
use crate::Style;
use crate::page::{Block, Copyable, Fact, Headline, Item, Page, VerdictLast};
use crate::table::{Cell, Table, Tone};

/// Fewest columns assumed.
const WIDTH_MIN: usize = 60;
/// Most rows of a table. The other output formats show more.
const ROWS_MAX: usize = 100;
const INDENT: usize = 2;
/// Widest label with its text on the same line. A longer one would push the texts of all others.
const LABEL_MAX: usize = 32;
const GAP: &str = "  ";

/// Renders a page. Ends with a line feed.
pub(crate) fn render(page: &Page, style: Style) -> String {
    let mut out = Renderer::new(style);
    out.headline(&page.headline);
    page.blocks.iter().for_each(|block| out.block(block));
    out.text
}

/// Renders a page with the verdict last.
pub(crate) fn render_verdict_last(page: &VerdictLast, style: Style) -> String {
    let mut out = Renderer::new(style);
    out.title(&page.title);
    page.blocks.iter().for_each(|block| out.block(block));
    out.line(0, "");
    out.headline(&page.verdict);
    out.text
}

/// Renders blocks without a verdict. All rows of a table are shown. Ends with a line feed.
pub(crate) fn render_blocks(blocks: &[Block], style: Style) -> String {
    let mut out = Renderer::new(style);
    for (number, block) in blocks.iter().enumerate() {
        if number > 0 {
            out.line(0, "");
        }
        out.titled(block, usize::MAX);
    }
    out.text
}

struct Renderer {
    text: String,
    style: Style,
    rows_max: usize,
}

impl Renderer {
    fn new(style: Style) -> Self {
        let width = style.width.max(WIDTH_MIN);
        Self { text: String::new(), style: Style { width, ..style }, rows_max: ROWS_MAX }
    }

    fn block(&mut self, block: &Block) {
        self.line(0, "");
        self.titled(block, ROWS_MAX);
    }

    /// Writes a block. A block without a title continues the one before it.
    fn titled(&mut self, block: &Block, rows_max: usize) {
        if !block.title.is_empty() {
            self.title(&block.title);
        }
        self.rows_max = block.terminal_rows.unwrap_or(rows_max);
        block.items.iter().for_each(|item| self.item(item));
    }

    fn line(&mut self, indent: usize, text: &str) {
        let line = format!("{}{text}", " ".repeat(indent));
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn headline(&mut self, headline: &Headline) {
        let verdict = format!("[ {} ]", clean(&headline.verdict));
        let title = clean(&headline.title);
        let fits = verdict.width() + GAP.len() + title.width() <= self.style.width;
        if fits {
            let (verdict, title) = (self.toned(&verdict, headline.tone), self.strong(&title));
            self.line(0, &format!("{verdict}{GAP}{title}"));
        } else {
            let verdict = self.toned(&verdict, headline.tone);
            self.line(0, &verdict);
            self.wrapped("", &title);
        }
        headline.items.iter().for_each(|item| self.item(item));
    }

    /// Writes a title. It may contain a path, so it wraps.
    fn title(&mut self, title: &str) {
        for line in wrap(&clean(title), self.style.width) {
            let line = self.strong(&line);
            self.line(0, &line);
        }
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Text(text) => self.wrapped("", text),
            Item::List(texts) => texts.iter().for_each(|text| self.wrapped("- ", text)),
            Item::Facts(facts) => self.facts(facts),
            Item::Table(table) => self.table(table),
            Item::Chart(_) => {}
        }
    }

    /// Writes a text with a hanging indent after `lead`.
    fn wrapped(&mut self, lead: &str, text: &str) {
        self.wrapped_at(INDENT, lead, text);
    }

    fn wrapped_at(&mut self, indent: usize, lead: &str, text: &str) {
        let lead_width = lead.width();
        let width = self.style.width.saturating_sub(indent + lead_width).max(1);
        for (index, line) in wrap(&clean(text), width).iter().enumerate() {
            if index == 0 {
                self.line(indent, &format!("{lead}{line}"));
            } else {
                self.line(indent + lead_width, line);
            }
        }
    }

    fn facts(&mut self, facts: &[Fact]) {
        let labels: Vec<String> = facts.iter().map(|fact| clean(&fact.label)).collect();
        let width = label_width(labels.iter().map(String::as_str));
        for (fact, label) in facts.iter().zip(&labels) {
            let lead = self.lead(INDENT, label, width);
            let text = clean(&fact.text);
            match fact.copyable {
                None => self.wrapped(&lead, &fact.text),
                Some(Copyable::Path) => self.line(INDENT, &format!("{lead}{text}")),
                Some(Copyable::Command) => self.command(&lead, &text),
            }
        }
    }

    /// Writes a command, continued with backslashes.
    fn command(&mut self, lead: &str, command: &str) {
        let lead_width = lead.width();
        let width = self.style.width.saturating_sub(INDENT + lead_width);
        for (index, line) in shell_lines(command, width).iter().enumerate() {
            match index {
                0 => self.line(INDENT, &format!("{lead}{line}")),
                _ => self.line(INDENT + lead_width, line),
            }
        }
    }

    fn table(&mut self, table: &Table) {
        let shown = table.rows.iter().take(self.rows_max);
        let rows: Vec<Vec<Cell>> = shown.map(|row| row.iter().map(cleaned).collect()).collect();
        let titles: Vec<Cell> = table.columns.iter().map(|column| clean(&column.title).into()).collect();
        let gaps = INDENT + GAP.len() * titles.len().saturating_sub(1);
        match columns(table, &titles, &rows, self.style.width.saturating_sub(gaps)) {
            Some(widths) => {
                self.heads(table, &widths, &titles);
                rows.iter().for_each(|row| self.row(table, &widths, row));
            }
            None => rows.iter().for_each(|row| self.record(table, &titles, row)),
        }
        let more = table.rows.len() - rows.len();
        if more > 0 {
            self.line(INDENT, &format!("... {more} more rows: keepup report RESULT --markdown"));
        }
    }

    /// Writes the column titles, aligned at the bottom.
    fn heads(&mut self, table: &Table, widths: &[usize], titles: &[Cell]) {
        if titles.iter().all(|title| title.text.is_empty()) {
            return;
        }
        let mut parts: Vec<Vec<String>> =
            titles.iter().zip(widths).map(|(title, width)| wrap(&title.text, (*width).max(1))).collect();
        let height = parts.iter().map(Vec::len).max().unwrap_or(0);
        for part in &mut parts {
            part.splice(0..0, vec![String::new(); height - part.len()]);
        }
        self.lines_of_row(table, widths, titles, &parts);
    }

    /// Writes a row, over several lines if a cell is wider than its column.
    fn row(&mut self, table: &Table, widths: &[usize], cells: &[Cell]) {
        let parts: Vec<Vec<String>> = cells
            .iter()
            .zip(&table.columns)
            .zip(widths)
            .map(|((cell, column), width)| pieces(&cell.text, column.right, (*width).max(1)))
            .collect();
        self.lines_of_row(table, widths, cells, &parts);
    }

    fn lines_of_row(&mut self, table: &Table, widths: &[usize], cells: &[Cell], parts: &[Vec<String>]) {
        for number in 0..parts.iter().map(Vec::len).max().unwrap_or(0) {
            let mut line = String::new();
            for (((cell, column), width), parts) in cells.iter().zip(&table.columns).zip(widths).zip(parts) {
                let part = parts.get(number).map(String::as_str).unwrap_or_default();
                line.push_str(&self.padded(&Cell::toned(part, cell.tone), column.right, *width));
                line.push_str(GAP);
            }
            self.line(INDENT, &line);
        }
    }

    /// Writes a row of a table that is too wide: the words first, then each figure after its title.
    fn record(&mut self, table: &Table, titles: &[Cell], row: &[Cell]) {
        let heads = table.columns.iter().take_while(|column| !column.right).count().clamp(1, 3);
        let named = row.iter().zip(titles).take(heads).filter(|(cell, _)| !cell.text.is_empty());
        let lead: Vec<String> = named
            .map(|(cell, title)| match table.columns.first().is_some_and(|column| column.right) {
                true => format!("{} {}", title.text, cell.text),
                false => cell.text.clone(),
            })
            .collect();
        self.wrapped("", &lead.join(", "));
        let rest: Vec<(&Cell, &Cell)> =
            row.iter().zip(titles).skip(heads).filter(|(cell, _)| !cell.text.is_empty()).collect();
        let width = label_width(rest.iter().map(|(_, title)| title.text.as_str()));
        for (cell, title) in rest {
            let lead = self.lead(2 * INDENT, &title.text, width);
            self.wrapped_at(2 * INDENT, &lead, &cell.text);
        }
    }

    /// Pads a label to `width`. Writes a label that is wider on lines of its own, above the text.
    fn lead(&mut self, indent: usize, label: &str, width: usize) -> String {
        if label.width() <= width {
            return format!("{}{GAP}", pad(label, width));
        }
        self.wrapped_at(indent, "", label);
        format!("{}{GAP}", pad("", width))
    }

    /// Pads a cell outside of its colour codes, so that trailing spaces can be trimmed.
    fn padded(&self, cell: &Cell, right: bool, width: usize) -> String {
        let padding = " ".repeat(width.saturating_sub(cell.text.width()));
        let text = self.toned(&cell.text, cell.tone);
        if right { format!("{padding}{text}") } else { format!("{text}{padding}") }
    }

    fn toned(&self, text: &str, tone: Tone) -> String {
        let code = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Good => "32",
            Tone::Doubtful => "33",
            Tone::Bad => "31",
        };
        self.coded(text, code)
    }

    fn strong(&self, text: &str) -> String {
        self.coded(text, "1")
    }

    fn coded(&self, text: &str, code: &str) -> String {
        if self.style.colour && !text.is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Common width of labels, without those that are too wide.
fn label_width<'a>(labels: impl Iterator<Item = &'a str>) -> usize {
    labels.map(|label| label.width()).filter(|width| *width <= LABEL_MAX).max().unwrap_or(0)
}

fn clean(text: &str) -> String {
    text.chars().map(|c| if is_printable(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}

fn cleaned(cell: &Cell) -> Cell {
    Cell::toned(clean(&cell.text), cell.tone)
}

/// Pads a text with spaces.
fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

#[cfg(test)]
#[path = "terminal_tests.rs"]
mod tests;
