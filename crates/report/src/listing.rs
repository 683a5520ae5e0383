//! Terminal pages of values that are not stored results, one file per kind.
//!
//! Invariants: the same value gives the same text; names that others choose are escaped; commands, paths and
//! messages that contain a path are never split.

mod campaign;
mod catalog;
mod counters;
mod doctor;
mod fleet_doctor;
mod loads;
mod record;
mod recording;
mod recording_set;
mod recordings;
mod recovery;
mod register_note;
mod run_status;
mod trace;
mod transfer;
mod verification;

pub use campaign::{campaign_cost, campaign_plan, campaign_status};
pub use catalog::{machines, part, parts, profiles};
pub use counters::counters;
pub use doctor::doctor;
pub use fleet_doctor::fleet_doctor;
pub use loads::loads;
pub use record::record;
pub use recording::recording;
pub use recording_set::{set_info, set_recovery, set_verification};
pub use recordings::recordings;
pub use recovery::recovery;
pub use register_note::register_note;
pub use run_status::run_status;
pub use trace::{converted, trace};
pub use transfer::{Archived, Drained, archive, drain, source};
pub use verification::{Verified, verification};

use std::collections::BTreeMap;
use std::path::Path;

use keepup_results::printable::visible;
use keepup_results::shell::quoted;
use keepup_stream::ledger::LossCause;
use keepup_stream::rejected::Rejected;

use crate::Style;
use crate::format::{digits, plural};
use crate::page::{Block, Fact, Item};
use crate::terminal::render_blocks;

/// Limit on listed streams, devices and faults.
const ROWS_SHOWN: usize = 20;

/// Renders blocks without their empty items. A block without a title is omitted if it is empty.
fn render(mut blocks: Vec<Block>, style: Style) -> String {
    blocks.iter_mut().for_each(|block| block.items.retain(|item| !item.is_empty()));
    blocks.retain(|block| !block.title.is_empty() || !block.items.is_empty());
    render_blocks(&blocks, style)
}

/// Missing events by cause. Counts of a repeated cause are added.
fn missing(causes: impl IntoIterator<Item = (LossCause, u64)>) -> Vec<Fact> {
    let mut sums = BTreeMap::new();
    for (cause, events) in causes {
        let sum: &mut u64 = sums.entry(cause).or_default();
        *sum = sum.saturating_add(events);
    }
    let fact = |(cause, events)| Fact::new("missing", format!("{}, {cause}", plural(events, "event")));
    sums.into_iter().map(fact).collect()
}

/// Data that arrived and are not recorded. Senders choose parts of the texts.
fn not_recorded(rejected: &[Rejected]) -> Vec<Fact> {
    let row = |row: &Rejected| Fact::new("REJECTED", visible(&row.to_string()));
    let mut facts: Vec<Fact> = rejected.iter().take(ROWS_SHOWN).map(row).collect();
    let hidden = rejected.len().saturating_sub(ROWS_SHOWN);
    if hidden > 0 {
        facts.push(Fact::new(
            "REJECTED",
            format!("... and {hidden} more sources or reasons (--json lists all)"),
        ));
    }
    facts
}

/// Note on rows that were left out, if any.
fn more(total: usize, noun: &str) -> Option<Item> {
    let hidden = total.saturating_sub(ROWS_SHOWN);
    (hidden > 0).then(|| Item::Text(format!("... and {hidden} more {noun} (--json lists all)")))
}

/// Formats bytes as MB with three decimals, for a column with the unit in its title.
fn megabytes(bytes: u64) -> String {
    format!("{:.3}", bytes as f64 / 1e6)
}

/// Command that recovers a recording.
fn recover(label: &str, directory: &Path) -> Fact {
    Fact::path(label, format!("keepup recover {}", quoted(&directory.display().to_string())))
}

/// CPU time in seconds for each GB.
fn per_gb(cpu_s: f64, bytes: u64) -> String {
    format!("{} s/GB", digits(cpu_s / (bytes as f64 / 1e9)))
}

#[cfg(test)]
#[path = "listing_tests.rs"]
mod tests;
