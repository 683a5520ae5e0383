//! Event ledger: one row per stage, and the losses by cause.

use keepup_results::{Count, LedgerSummary};

use crate::format::{NOT_MEASURED, bytes, count, number};
use crate::page::{Block, Item};
use crate::table::{Cell, Table, Tone, left, right};

const TITLE: &str = "Event ledger";

pub(crate) fn block(ledger: &LedgerSummary) -> Block {
    let due = Count {
        events: ledger.sent.events.saturating_add(ledger.lost_at_source.events),
        bytes: ledger.sent.bytes.saturating_add(ledger.lost_at_source.bytes),
    };
    if due.events == 0 {
        let nothing = "No event was sent.".to_owned();
        return Block::new(TITLE, vec![Item::Text(nothing)]);
    }
    // Reduction changes the number of bytes, and of events if both forms are kept.
    let stored = ledger.stored.unwrap_or(due);
    let mut rows = vec![
        row("due at the source", Some(due), due),
        row("sent by the source", Some(ledger.sent), due),
        row("received", Some(ledger.received), due),
        row("written (kernel confirmed)", Some(ledger.written), due),
        row("durable (flushed)", Some(ledger.durable), due),
    ];
    rows.extend(ledger.stored.map(|reduced| row("on the volumes, reduced", Some(reduced), stored)));
    rows.extend([
        later("read back and intact", ledger.verified, stored, ledger.unread_segments > 0, "not read"),
        later("drained", ledger.drained, stored, true, "not drained yet"),
    ]);
    let columns = vec![left("stage"), right("events"), right("bytes"), right("missing")];
    let items = vec![Item::Table(Table { columns, rows }), Item::Text(losses(ledger))];
    Block::new(TITLE, items)
}

fn losses(ledger: &LedgerSummary) -> String {
    if ledger.lost.events == 0 {
        return "No event was lost at any stage.".to_owned();
    }
    let causes: Vec<String> = ledger
        .lost_by_cause
        .iter()
        .map(|(cause, lost)| format!("{} {}", cause.replace('_', " "), count(*lost)))
        .collect();
    format!("Lost in total: {}. By cause: {}.", count(ledger.lost), causes.join("; "))
}

/// Row of a later stage. What it has not reached yet, as `reason` says, is on disk, not missing.
fn later(stage: &str, here: Option<Count>, due: Count, is_partial: bool, reason: &str) -> Vec<Cell> {
    let mut cells = row(stage, here, due);
    let waiting = here.map_or(0, |here| due.events.saturating_sub(here.events));
    if let (Some(missing), true) = (cells.last_mut(), is_partial && waiting > 0) {
        *missing = reason.into();
    }
    cells
}

fn row(stage: &str, here: Option<Count>, due: Count) -> Vec<Cell> {
    let Some(here) = here else {
        return vec![stage.into(), NOT_MEASURED.into(), "".into(), "".into()];
    };
    let missing = due.events.saturating_sub(here.events);
    let tone = if missing == 0 { Tone::Plain } else { Tone::Bad };
    vec![
        stage.into(),
        number(here.events).into(),
        bytes(here.bytes).into(),
        Cell::toned(number(missing), tone),
    ]
}
