//! Report pages, one file for each kind of result.

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
mod predict_charts;
mod predict_papers;
mod qualify;
mod qualify_fleet;
mod record;
mod register;
mod replay;
mod soak;
mod timeline;

use keepup_results::Stored;

pub(crate) use self::common::{format_quantity, name};
pub(crate) use self::loads::{amount as load_amount, problem as load_problem};
pub(crate) use self::qualify_fleet::verdict_last as fleet_verdict_last;

use crate::history::History;
use crate::page::{Block, Document, Item, Page};

/// Largest table printed in place of a chart.
const CHART_ROWS_MAX: usize = 40;
/// Most trials on the terminal page.
const TERMINAL_TRIALS_MAX: usize = 10;

/// Complete report of a result, with charts.
pub(crate) fn document(stored: &Stored, history: &History) -> Document {
    if let Stored::Campaign(summary) = stored
        && let Some(page) = &summary.paper
    {
        return paper::document(stored, summary, page);
    }
    match stored {
        Stored::Qualify(summary) => qualify::document(summary, history),
        Stored::QualifyFleet(summary) => qualify_fleet::document(stored, summary),
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

/// Text report of a result, in reading order.
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

/// Replaces each chart by its table, unless the table is too long or printed elsewhere. Drops empty blocks.
fn without_charts(blocks: Vec<Block>) -> Vec<Block> {
    let replace_chart = |item: Item| match item {
        Item::Chart(chart) if !chart.is_in_table && chart.table.rows.len() <= CHART_ROWS_MAX => {
            Some(Item::Table(chart.table))
        }
        Item::Chart(_) => None,
        other => Some(other),
    };
    let blocks = blocks
        .into_iter()
        .map(|block| Block { items: block.items.into_iter().filter_map(replace_chart).collect(), ..block });
    blocks.filter(|block| !block.items.is_empty()).collect()
}

#[cfg(test)]
#[path = "kinds_tests.rs"]
mod tests;
