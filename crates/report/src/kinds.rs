//! The pages of the kinds of results: one file for each says what is shown of it.

mod campaign;
mod common;
mod compare;
mod disk;
mod forest;
mod latency;
mod loads;
mod net;
mod paper;
mod predict;
mod predict_papers;
mod qualify;
mod record;
mod register;
mod replay;
mod soak;
mod timeline;

use keepup_results::Stored;

pub(crate) use self::common::{name, told};

use crate::history::History;
use crate::page::{Block, Document, Item, Page};

/// Most rows of a chart's numbers where it cannot be drawn.
const CHART_ROWS_MAX: usize = 40;
/// Trials that fit on the terminal's one page; every other page has all.
const TERMINAL_TRIALS_MAX: usize = 10;

/// All that is shown of a result where there is room and where it can be drawn.
pub(crate) fn document(stored: &Stored, history: &History) -> Document {
    if let Stored::Campaign(summary) = stored
        && let Some(page) = &summary.paper
    {
        return paper::document(stored, summary, page);
    }
    match stored {
        Stored::Qualify(summary) => qualify::document(summary, history),
        Stored::Disk(summary) => disk::document(stored, summary),
        Stored::Net(summary) => net::document(stored, summary),
        Stored::Register(summary) => register::document(stored, summary),
        Stored::Replay(summary) => replay::document(stored, summary),
        Stored::Soak(summary) => soak::document(stored, summary),
        Stored::Record(summary) => record::document(stored, summary, history),
        Stored::Campaign(summary) => campaign::document(stored, summary),
        Stored::Compare(summary) => compare::document(stored, summary),
        Stored::Predict(summary) => predict::document(stored, summary),
    }
}

/// The same as text, in the order in which it is read.
pub(crate) fn page(stored: &Stored, is_terminal: bool) -> Page {
    if let Stored::Qualify(summary) = stored {
        let trials_max = if is_terminal { TERMINAL_TRIALS_MAX } else { usize::MAX };
        return crate::blocks::page(summary, trials_max);
    }
    let document = document(stored, &History::default());
    let mut page = document.page;
    let all = document.glance.into_iter().chain(page.blocks);
    page.blocks = without_charts(all.filter(|block| !(is_terminal && block.is_detail)).collect());
    page
}

/// Where nothing can be drawn, the numbers behind a figure stand in its place, unless they are too many; what
/// is empty then goes.
fn without_charts(blocks: Vec<Block>) -> Vec<Block> {
    let undrawn = |item: Item| match item {
        Item::Chart(chart) if !chart.is_told && chart.table.rows.len() <= CHART_ROWS_MAX => {
            Some(Item::Table(chart.table))
        }
        Item::Chart(_) => None,
        other => Some(other),
    };
    let blocks = blocks
        .into_iter()
        .map(|block| Block { items: block.items.into_iter().filter_map(undrawn).collect(), ..block });
    blocks.filter(|block| !block.items.is_empty()).collect()
}

#[cfg(test)]
#[path = "kinds_tests.rs"]
mod tests;
