//! List of recordings, by `ctl recordings`.

use keepup_results::printable::visible;
use keepup_results::{Entries, RecordingEntry, RecordingState, Unreadable};

use super::render;
use crate::Style;
use crate::format::{bytes, plural};
use crate::page::{Block, Fact, Item};

/// Lists recordings by id in the order given, then what cannot be read.
#[must_use]
pub fn recordings(list: &Entries<RecordingEntry>, style: Style) -> String {
    let unreadable = |one: &Unreadable| {
        let (directory, why) = (visible(&one.directory), visible(&one.why));
        Fact::path("cannot read", format!("{directory}: {why}"))
    };
    let mut items = vec![
        Item::Facts(list.entries.iter().map(recording).collect()),
        Item::Facts(list.unreadable.iter().map(unreadable).collect()),
    ];
    if list.entries.is_empty() {
        items.insert(0, Item::Text("No recordings.".to_owned()));
    }
    items.extend(list.left_out.iter().map(|text| Item::Text(text.clone())));
    render(vec![Block::new("", items)], style)
}

fn recording(entry: &RecordingEntry) -> Fact {
    let state = match entry.state {
        RecordingState::Sealed => "sealed",
        RecordingState::BeingWritten => "recording",
        RecordingState::NeedsRecovery => "NOT RECOVERED",
    };
    let events = entry.events.map_or("events not counted".to_owned(), |events| plural(events, "event"));
    // Names are escaped, because clients choose them.
    let mut parts = vec![visible(&entry.name)];
    parts.extend(entry.run.map(|run| format!("run {run}")));
    parts.extend([state.to_owned(), format!("started {}", entry.created), plural(entry.streams, "stream")]);
    parts.extend([events, bytes(entry.bytes), format!("{} missing", plural(entry.missing_events, "event"))]);
    Fact::new(&entry.id, parts.join(", "))
}

#[cfg(test)]
#[path = "recordings_tests.rs"]
mod tests;
