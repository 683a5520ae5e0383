//! Reports of a stored result: a terminal page, a Markdown document, a single HTML file and a badge; and the
//! terminal pages of everything else that a command prints.
//!
//! `kinds` converts each kind of result to a `page` with charts; `terminal`, `markdown` and `html` render it.
//! [`listing`] converts values that are not stored, such as the description of a recording.
//! Invariants: the same summary gives the same text; colour repeats what the words say; missing figures are
//! printed as "not measured".

mod badge;
mod blocks;
mod chart;
mod format;
mod history;
mod html;
mod kinds;
pub mod listing;
mod markdown;
mod page;
#[cfg(test)]
mod samples;
mod table;
mod terminal;

pub use format::{plural, time};
pub use history::History;
pub use html::{CHARTS_JS, COLOURS_CSS};
pub use table::Tone;

use keepup_results::Stored;

/// How a terminal shows text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether to use ANSI colours. The caller checks NO_COLOR and whether the output is a terminal.
    pub colour: bool,
    /// Columns of the terminal, at least 60.
    pub width: usize,
}

/// Terminal page: the answer, its tables and the cautions. For a qualification, only the verdict and what was
/// not tested. Commands and the path of the result are never wrapped, so that they can be copyable.
#[must_use]
pub fn terminal(result: &Stored, style: Style) -> String {
    match result {
        Stored::Qualify(summary) => terminal::render_verdict_last(&blocks::brief(summary), style),
        Stored::QualifyFleet(summary) => {
            terminal::render_verdict_last(&kinds::fleet_verdict_last(summary), style)
        }
        other => terminal::render(&kinds::page(other, true), style),
    }
}

/// Terminal page with all blocks of a qualification. Same as [`terminal`] for other results.
#[must_use]
pub fn terminal_full(result: &Stored, style: Style) -> String {
    match result {
        Stored::Qualify(summary) => {
            let page = kinds::page(result, true);
            terminal::render_verdict_last(&blocks::full(summary, page.blocks), style)
        }
        other => terminal(other, style),
    }
}

/// Self-contained HTML file, with charts over time from the event log.
#[must_use]
pub fn html(result: &Stored, history: &History) -> String {
    html::render(&kinds::document(result, history))
}

/// The result in a few words with its tone: the verdict and its rate, or the test and its best figure.
#[must_use]
pub fn answer(result: &Stored) -> (String, Tone) {
    badge::answer(result)
}

/// SVG badge with the text of [`answer`].
#[must_use]
pub fn badge(result: &Stored) -> String {
    badge::render(result)
}

/// Markdown document with every trial and every figure.
#[must_use]
pub fn markdown(result: &Stored) -> String {
    markdown::render(&kinds::page(result, false))
}
