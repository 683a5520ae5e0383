//! Counters, by `register serve-ipbus`.

use super::render;
use crate::Style;
use crate::page::{Block, Item};
use crate::table::{Table, left, right};

/// Lists counters with their labels.
#[must_use]
pub fn counters(rows: &[(&str, u64)], style: Style) -> String {
    let rows = rows.iter().map(|(label, count)| vec![(*label).into(), count.to_string().into()]).collect();
    let columns = vec![left(""), right("")];
    render(vec![Block::new("", vec![Item::Table(Table { columns, rows })])], style)
}
