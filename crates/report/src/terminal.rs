//! A page drawn for a terminal.
//!
//! Invariant: no control character of the summary reaches the terminal; a path may hold anything.

use keepup_results::printable::is_printable;

use crate::Style;
use crate::page::{Cell, Fact, Headline, Item, Page, Table, Tone};

/// Tables need this much; on a narrower terminal lines run over.
const WIDTH_MIN: usize = 60;
/// Narrowest column of a table before it runs over the edge.
const COLUMN_MIN: usize = 12;
/// By how much a column gives way at a time, characters.
const STEP: usize = 2;
/// Rows of a table that are shown; the other forms of a report have more.
const ROWS_MAX: usize = 100;
const INDENT: usize = 2;
const GAP: &str = "  ";

/// The page as text; ends with a line feed.
pub(crate) fn render(page: &Page, style: Style) -> String {
    let width = style.width.max(WIDTH_MIN);
    let mut pen = Pen { text: String::new(), style: Style { width, ..style }, rows_max: ROWS_MAX };
    pen.headline(&page.headline);
    for block in &page.blocks {
        pen.line(0, "");
        let title = pen.strong(&clean(&block.title));
        pen.line(0, &title);
        pen.rows_max = block.terminal_rows.unwrap_or(ROWS_MAX);
        block.items.iter().for_each(|item| pen.item(item));
    }
    pen.text
}

struct Pen {
    text: String,
    style: Style,
    rows_max: usize,
}

impl Pen {
    fn line(&mut self, indent: usize, text: &str) {
        let line = format!("{}{text}", " ".repeat(indent));
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn headline(&mut self, headline: &Headline) {
        let verdict = format!("[ {} ]", headline.verdict);
        let title = clean(&headline.title);
        let fits = verdict.chars().count() + GAP.len() + title.chars().count() <= self.style.width;
        let (verdict, title_drawn) = (self.toned(&verdict, headline.tone), self.strong(&title));
        if fits {
            self.line(0, &format!("{verdict}{GAP}{title_drawn}"));
        } else {
            self.line(0, &verdict);
            self.wrapped("", &title);
        }
        headline.items.iter().for_each(|item| self.item(item));
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

    /// A text broken at spaces; further lines stand below the first one's text.
    fn wrapped(&mut self, lead: &str, text: &str) {
        let lead_width = lead.chars().count();
        let lines = wrap(&clean(text), self.style.width - INDENT - lead_width);
        for (index, line) in lines.iter().enumerate() {
            if index == 0 {
                self.line(INDENT, &format!("{lead}{line}"));
            } else {
                self.line(INDENT + lead_width, line);
            }
        }
    }

    fn facts(&mut self, facts: &[Fact]) {
        let width = facts.iter().map(|fact| fact.label.chars().count()).max().unwrap_or(0);
        for fact in facts {
            let lead = format!("{:width$}{GAP}", clean(&fact.label));
            if fact.literal {
                self.line(INDENT, &format!("{lead}{}", clean(&fact.text)));
            } else {
                self.wrapped(&lead, &fact.text);
            }
        }
    }

    fn table(&mut self, table: &Table) {
        let shown = table.rows.iter().take(self.rows_max);
        let rows: Vec<Vec<Cell>> = shown.map(|row| row.iter().map(cleaned).collect()).collect();
        let widths = self.widths(table, &rows);
        if table.columns.iter().any(|column| !column.title.is_empty()) {
            let titles: Vec<Cell> = table.columns.iter().map(|column| clean(&column.title).into()).collect();
            self.row(table, &widths, &titles);
        }
        rows.iter().for_each(|row| self.row(table, &widths, row));
        let more = table.rows.len() - rows.len();
        if more > 0 {
            self.line(INDENT, &format!("... {more} more rows: keepup report RESULT --markdown"));
        }
    }

    /// Every column as wide as its widest cell, but where they do not fit the widest ones give way.
    fn widths(&self, table: &Table, rows: &[Vec<Cell>]) -> Vec<usize> {
        let natural = |(index, title): (usize, &str)| {
            let cells = rows.iter().filter_map(|row| row.get(index)).map(|cell| cell.text.chars().count());
            cells.chain([title.chars().count()]).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> =
            table.columns.iter().map(|column| column.title.as_str()).enumerate().map(natural).collect();
        let gaps = INDENT + GAP.len() * widths.len().saturating_sub(1);
        let room = self.style.width.saturating_sub(gaps);
        loop {
            let over = widths.iter().sum::<usize>().saturating_sub(room);
            let Some(widest) = widths.iter_mut().max() else { return widths };
            if over == 0 || *widest <= COLUMN_MIN {
                return widths;
            }
            // Step by step, so that columns which become equally wide give way together.
            *widest -= over.min(STEP).min(*widest - COLUMN_MIN);
        }
    }

    /// A row, over several lines where a cell has more text than its column is wide.
    fn row(&mut self, table: &Table, widths: &[usize], cells: &[Cell]) {
        let parts: Vec<Vec<String>> =
            cells.iter().zip(widths).map(|(cell, width)| wrap(&cell.text, (*width).max(1))).collect();
        for number in 0..parts.iter().map(Vec::len).max().unwrap_or(0) {
            let mut line = String::new();
            for (((cell, column), width), parts) in cells.iter().zip(&table.columns).zip(widths).zip(&parts) {
                let part = parts.get(number).map(String::as_str).unwrap_or_default();
                line.push_str(&self.padded(&Cell::toned(part, cell.tone), column.right, *width));
                line.push_str(GAP);
            }
            self.line(INDENT, &line);
        }
    }

    /// A cell with its padding outside of the colour, so that trailing space can be cut.
    fn padded(&self, cell: &Cell, right: bool, width: usize) -> String {
        let padding = " ".repeat(width.saturating_sub(cell.text.chars().count()));
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

fn clean(text: &str) -> String {
    text.chars().map(|c| if is_printable(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}

fn cleaned(cell: &Cell) -> Cell {
    Cell::toned(clean(&cell.text), cell.tone)
}

/// Lines of at most `width` characters, broken at spaces; a longer word gets a line of its own. Spaces within
/// a line stay as they are.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        let needed = line.chars().count() + 1 + word.chars().count();
        if !line.is_empty() && needed > width {
            lines.push(std::mem::take(&mut line).trim_end().to_owned());
        } else if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

#[cfg(test)]
#[path = "terminal_tests.rs"]
mod tests;
