//! A page drawn as one HTML file that needs nothing else: no network, no other file, no server.
//!
//! Invariants: text of a result is escaped wherever it stands; the page may load nothing and run nothing but
//! the scripts that are in it; behind each chart stands a table with its numbers.

mod chart;
mod island;
mod record;

use std::sync::LazyLock;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::page::{Block, Cell, Document, Fact, Headline, Item, Table, Tone};

/// The colours of all pages, light and dark, as custom properties.
pub const COLOURS_CSS: &str = include_str!("../assets/colours.css");
const STYLE: &str = include_str!("../assets/report.css");
const SCRIPT: &str = include_str!("../assets/report.js");
/// The drawing library, as a script.
pub const CHARTS_JS: &str = include_str!("../vendor/echarts.min.js");
/// Nothing from anywhere; of scripts only the page's own, known by their digests, so that nothing in the
/// text of a result can run: neither a script of its own nor what hangs on an element.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let [own, charts] = [SCRIPT, CHARTS_JS].map(|script| BASE64_STANDARD.encode(Sha256::digest(script)));
    format!(
        "default-src 'none'; script-src 'sha256-{own}' 'sha256-{charts}'; style-src 'unsafe-inline'; \
         img-src data:; base-uri 'none'; form-action 'none'"
    )
});

/// The page as a file.
pub(crate) fn render(document: &Document) -> String {
    let mut charts = Charts::default();
    let headline = &document.page.headline;
    let body = html! {
        header {
            p.brand { "keepup" span.kind { (document.kind) } }
            button #theme type="button" { "dark or light" }
        }
        main {
            (top(headline, &document.glance, &mut charts))
            @for block in &document.page.blocks { (section(block, &mut charts)) }
            @for (title, record) in &document.records { (record::folded(title, record)) }
        }
        footer { "Drawn by keepup from the result alone. MB = 10" sup { "6" } " bytes, MiB = 2" sup { "20" }
            " bytes. What was not measured is called so." }
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(*POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (headline.verdict) ": " (headline.title) }
                style { (PreEscaped(COLOURS_CSS)) (PreEscaped(STYLE)) }
            }
            body {
                (body)
                (charts.islands())
                @if !charts.is_empty() { script { (PreEscaped(CHARTS_JS)) } }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

/// Options of the charts that were drawn so far.
#[derive(Default)]
pub(super) struct Charts {
    options: Vec<Value>,
}

impl Charts {
    /// Keeps an option; returns its number.
    fn add(&mut self, option: &Value) -> usize {
        self.options.push(option.clone());
        self.options.len()
    }

    fn is_empty(&self) -> bool {
        self.options.is_empty()
    }

    fn islands(&self) -> Markup {
        html! {
            @for (number, option) in (1..).zip(&self.options) {
                script type="application/json" id=(format!("chart-{number}")) {
                    (PreEscaped(island::text(option)))
                }
            }
        }
    }
}

fn top(headline: &Headline, glance: &[Block], charts: &mut Charts) -> Markup {
    let columns = if glance.is_empty() { "top alone" } else { "top" };
    html! {
        section class=(columns) {
            div class=(format!("verdict {}", tone(headline.tone))) {
                p.word { (headline.verdict) }
                h1 { (headline.title) }
                (items(&headline.items, charts))
            }
            @for block in glance {
                div.glance { h2 { (block.title) } (items(&block.items, charts)) }
            }
        }
    }
}

fn section(block: &Block, charts: &mut Charts) -> Markup {
    let drawn = items(&block.items, charts);
    html! { section {
        h2 { (block.title) }
        @if block.is_beside { div.beside { (drawn) } } @else { (drawn) }
    } }
}

fn items(items: &[Item], charts: &mut Charts) -> Markup {
    html! {
        @for item in items {
            @match item {
                Item::Text(text) => p { (text) },
                Item::List(entries) => ul { @for entry in entries { li { (entry) } } },
                Item::Facts(facts) => dl { @for one in facts { (fact(one)) } },
                Item::Table(rows) => (table(rows)),
                Item::Chart(drawn) => (chart::figure(drawn, charts)),
            }
        }
    }
}

fn fact(fact: &Fact) -> Markup {
    html! {
        div {
            dt { (fact.label) }
            dd { @if fact.copied.is_some() { code { (fact.text) } } @else { (fact.text) } }
        }
    }
}

/// A table that scrolls by itself where it is wider than the page.
pub(super) fn table(table: &Table) -> Markup {
    let titled = table.columns.iter().any(|column| !column.title.is_empty());
    let side = |right: bool| if right { "figures" } else { "" };
    html! {
        div.wide { table {
            @if titled {
                thead { tr { @for column in &table.columns {
                    th scope="col" class=[Some(side(column.right)).filter(|side| !side.is_empty())] {
                        (column.title)
                    }
                } } }
            }
            tbody { @for row in &table.rows { tr {
                @for (column, cell) in table.columns.iter().zip(row) { (table_cell(cell, column.right)) }
            } } }
        } }
    }
}

fn table_cell(cell: &Cell, right: bool) -> Markup {
    let mut class = if right { "figures".to_owned() } else { String::new() };
    if cell.tone != Tone::Plain {
        class = format!("{class} {}", tone(cell.tone)).trim_start().to_owned();
    }
    // A figure and its range may stand below each other, but neither is broken.
    let parts = cell.text.split_once(" (").filter(|_| right);
    html! {
        td class=[Some(class).filter(|class| !class.is_empty())] {
            @if let Some((figure, range)) = parts { span { (figure) } " " span.range { "(" (range) } }
            @else { (cell.text) }
        }
    }
}

fn tone(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Good => "good",
        Tone::Doubtful => "doubtful",
        Tone::Bad => "bad",
    }
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
