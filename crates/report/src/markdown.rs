//! Markdown output (GitHub dialect, for tables).
//!
//! Invariant: texts from the result are never interpreted as markup.

use std::fmt::Write as _;

use keepup_results::printable::is_printable;

use crate::page::{Fact, Item, Page};
use crate::table::{Cell, Table};

/// Renders a page. Ends with a line feed.
pub(crate) fn render(page: &Page) -> String {
    let headline = &page.headline;
    let mut text = format!("# {}: {}\n", escape(&headline.verdict), escape(&headline.title));
    items(&mut text, &headline.items);
    for block in &page.blocks {
        text.push_str(&format!("\n## {}\n", escape(&block.title)));
        items(&mut text, &block.items);
    }
    text
}

fn items(text: &mut String, items: &[Item]) {
    for item in items.iter().filter(|item| !matches!(item, Item::Chart(_))) {
        text.push('\n');
        match item {
            Item::Text(words) => text.push_str(&format!("{}\n", escape(words))),
            Item::List(entries) => {
                entries.iter().for_each(|entry| text.push_str(&format!("- {}\n", escape(entry))));
            }
            Item::Facts(facts) => facts.iter().for_each(|fact| text.push_str(&fact_line(fact))),
            Item::Table(rows) => table(text, rows),
            Item::Chart(_) => {}
        }
    }
}

fn fact_line(fact: &Fact) -> String {
    let words = if fact.copyable.is_some() { code(&fact.text) } else { escape(&fact.text) };
    format!("- {}: {words}\n", escape(&fact.label))
}

fn table(text: &mut String, table: &Table) {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    text.push_str(&line(table.columns.iter().map(|column| escape(&column.title)).collect()));
    let rule = |right: bool| if right { "---:" } else { "---" };
    text.push_str(&line(table.columns.iter().map(|column| rule(column.right).to_owned()).collect()));
    for row in &table.rows {
        text.push_str(&line(row.iter().map(|cell: &Cell| escape(&cell.text)).collect()));
    }
}

/// Code span whose fence is longer than any run of backticks in the text.
fn code(text: &str) -> String {
    let text = one_line(text);
    let mut fence = "`".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for c in one_line(text).chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '\\' | '|' | '*' | '_' | '`' | '[' | ']' | '#' | '~' => {
                let _ = write!(escaped, "\\{c}");
            }
            _ => escaped.push(c),
        }
    }
    escaped
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if is_printable(c) { c } else { ' ' }).collect()
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
