//! Reports drawn from a result summary alone: the one-page verdict, on a terminal and in Markdown.
//!
//! `blocks` says what is shown and in which words, as a `page`; `terminal` and `markdown` say how it looks.
//! Invariants: the same summary gives the same text; colour never carries meaning that the words do not; what
//! was not measured is called so.

mod blocks;
mod chart;
mod format;
mod history;
mod html;
mod kinds;
mod markdown;
mod page;
mod terminal;

pub use history::History;

use keepup_results::ResultSummary;

/// Trials that fit on the terminal's one page; the Markdown report has all.
const TERMINAL_TRIALS_MAX: usize = 10;

/// How a terminal shows text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether ANSI colours may be used; the caller heeds NO_COLOR and whether this is a terminal at all.
    pub colour: bool,
    /// Columns of the terminal; taken as 60 when it has fewer.
    pub width: usize,
}

/// The one-page verdict for a terminal. Only the command and the directory may be wider than the terminal:
/// broken in two they could not be copied.
#[must_use]
pub fn terminal(summary: &ResultSummary, style: Style) -> String {
    terminal::render(&blocks::page(summary, TERMINAL_TRIALS_MAX), style)
}

/// The verdict as one HTML file that needs nothing else, with what the event log says of the time.
#[must_use]
pub fn qualify_html(summary: &ResultSummary, history: &History) -> String {
    html::render(&kinds::qualify::document(summary, history))
}

/// The verdict as a Markdown document, with every trial.
#[must_use]
pub fn markdown(summary: &ResultSummary) -> String {
    markdown::render(&blocks::page(summary, usize::MAX))
}
