//! Recordings that a recorder, or `keepup serve`, can see: which there are, what one has, and single
//! events of it.
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use keepup_catalog::{LAST, find_recording};
use keepup_error::Cause;
use keepup_live::{Entries, RecordingEntry, RecordingState};
use keepup_recording::export::create;

use super::client::{Client, CtlError};
use crate::exit::Exit;
use crate::output::{json, result, say};
use crate::verbs::info;

/// Which events are asked for.
#[derive(clap::Args)]
pub(super) struct CatArgs {
    /// Id or name of the recording, or "last"
    #[arg(default_value = LAST)]
    recording: String,
    /// Id of the stream
    #[arg(long, value_name = "ID", default_value_t = 0)]
    stream: u32,
    /// Sequence number of the first event
    #[arg(long, value_name = "N", default_value_t = 0)]
    from: u64,
    /// So many events; exit code 1 when there are fewer
    #[arg(long, value_name = "M", default_value_t = 1)]
    count: u64,
    /// File to write to, which must not exist [default: stdout]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Tells which recordings there are, the newest first.
pub(super) fn list(client: &Client, as_json: bool) -> anyhow::Result<Exit> {
    let list = client.recordings()?;
    match as_json {
        true => json(&serde_json::to_value(&list).context("cannot encode the list")?),
        false => result(&table(&list)),
    }
    Ok(Exit::Done)
}

/// Tells what a recording has.
pub(super) fn show(client: &Client, which: &str, as_json: bool) -> anyhow::Result<Exit> {
    let info = client.info(&found(client, which)?)?;
    match as_json {
        true => json(&serde_json::to_value(&info).context("cannot encode what was found")?),
        false => result(&info::page(&info)),
    }
    Ok(if info.damaged_lines.is_empty() { Exit::Done } else { Exit::Failed })
}

/// Writes events as they are.
pub(super) fn cat(client: &Client, args: &CatArgs) -> anyhow::Result<Exit> {
    let id = found(client, &args.recording)?;
    match &args.out {
        None => copy(client, &id, args, &mut std::io::stdout().lock()),
        Some(path) => copy(client, &id, args, &mut create(path)?),
    }
}

fn copy(client: &Client, id: &str, args: &CatArgs, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let (mut from, mut events, mut bytes) = (args.from, 0, 0);
    while events < args.count {
        let (card, payload) = match client.event(id, args.stream, from) {
            Ok(event) => event,
            // There are no more.
            Err(CtlError::Refused { .. }) if events > 0 => break,
            Err(e) => return Err(e.into()),
        };
        match out.write_all(&payload).and_then(|()| out.flush()) {
            // A reader that went away has seen what it wanted.
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => return Ok(Exit::Done),
            written => written.context("cannot write the events")?,
        }
        (from, events, bytes) = (card.sequence.saturating_add(1), events + 1, bytes + payload.len());
    }
    say(&format!("{events} events, up to {}, {bytes} bytes", from.saturating_sub(1)));
    Ok(if events < args.count { Exit::Failed } else { Exit::Done })
}

/// The id of the recording that is meant.
fn found(client: &Client, which: &str) -> Result<String, CtlError> {
    let list = client.recordings()?;
    let meant = find_recording(&list, which);
    meant.map(|entry| entry.id.clone()).ok_or_else(|| CtlError::Refused {
        why: Cause::new(format!("cannot find recording {which:?}: the recorder has none of that name"))
            .with_hint("keepup ctl recordings lists them"),
    })
}

fn table(list: &Entries<RecordingEntry>) -> String {
    let mut lines = vec![format!(
        "{:<32} {:<24} {:>5} {:<14} {:<20} {:>7} {:>12} {:>10} {:>8}",
        "recording", "name", "run", "is", "begun", "streams", "events", "GB", "missing"
    )];
    lines.extend(list.entries.iter().map(row));
    lines.extend(
        list.unreadable.iter().map(|one| {
            format!("cannot be read: {}: {}", one.directory.escape_debug(), one.why.escape_debug())
        }),
    );
    lines.extend(list.left_out.clone());
    lines.join("\n")
}

fn row(entry: &RecordingEntry) -> String {
    let is = match entry.state {
        RecordingState::Sealed => "sealed",
        RecordingState::BeingWritten => "being written",
        RecordingState::NeedsRecovery => "NOT RECOVERED",
    };
    let number = |known: Option<u64>| known.map_or("-".to_owned(), |n| n.to_string());
    // A name may have anything in it that somebody put there.
    let name = entry.name.escape_debug().to_string();
    format!(
        "{:<32} {name:<24} {:>5} {is:<14} {:<20} {:>7} {:>12} {:>10.3} {:>8}",
        entry.id,
        number(entry.run),
        entry.created,
        entry.streams,
        number(entry.events),
        entry.bytes as f64 / 1e9,
        entry.missing_events
    )
}

#[cfg(test)]
#[path = "stored_tests.rs"]
mod tests;
