//! Reports drawn from a result alone: a page for people, on a terminal, in Markdown and as one HTML file, and
//! a badge.
//!
//! `kinds` says what is shown and in which words, as a `page` with charts; `terminal`, `markdown` and `html`
//! say how it looks.
//! Invariants: the same summary gives the same text; colour never carries meaning that the words do not; what
//! was not measured is called so.

mod badge;
mod blocks;
mod chart;
mod format;
mod history;
mod html;
mod kinds;
mod markdown;
mod page;
#[cfg(test)]
mod samples;
mod terminal;

pub use history::History;
pub use html::{CHARTS_JS, COLOURS_CSS};
pub use page::Tone;

use keepup_results::Stored;

/// How a terminal shows text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether ANSI colours may be used; the caller heeds NO_COLOR and whether this is a terminal at all.
    pub colour: bool,
    /// Columns of the terminal; taken as 60 when it has fewer.
    pub width: usize,
}

/// The page for a terminal, one page where that is possible: the answer, its tables, and what a reader must
/// know of them; of a qualification the verdict and what was not tested. Only commands and the path of the
/// result may be wider than the terminal: broken in two they could not be copied.
#[must_use]
pub fn terminal(result: &Stored, style: Style) -> String {
    match result {
        Stored::Qualify(summary) => terminal::render_closed(&blocks::brief(summary), style),
        other => terminal::render(&kinds::page(other, true), style),
    }
}

/// The page for a terminal with all blocks of a qualification; other results have no shorter one.
#[must_use]
pub fn terminal_full(result: &Stored, style: Style) -> String {
    let page = kinds::page(result, true);
    match result {
        Stored::Qualify(summary) => terminal::render_closed(&blocks::full(summary, page.blocks), style),
        _ => terminal::render(&page, style),
    }
}

/// One HTML file that needs nothing else, with what the event log says of the time.
#[must_use]
pub fn html(result: &Stored, history: &History) -> String {
    html::render(&kinds::document(result, history))
}

/// The answer in some words, and how it is to be taken: the verdict and its rate, or the test and its best
/// figure.
#[must_use]
pub fn answer(result: &Stored) -> (String, Tone) {
    badge::answer(result)
}

/// A small picture of the answer, as SVG.
#[must_use]
pub fn badge(result: &Stored) -> String {
    badge::render(result)
}

/// The page as a Markdown document, with every trial and every figure.
#[must_use]
pub fn markdown(result: &Stored) -> String {
    markdown::render(&kinds::page(result, false))
}
