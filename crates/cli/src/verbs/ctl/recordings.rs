//! Recordings of a recorder or of `keepup serve`: list, description and single events.
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use keepup_catalog::{LAST, find_recording};
use keepup_error::Cause;
use keepup_live::{Entries, RecordingEntry, RecordingState};
use keepup_recording::export::create;

use super::client::{Client, CtlError};
use crate::exit::Exit;
use crate::output::{json, log, result};
use crate::verbs::info;

/// Selection of events.
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
    /// Number of events; exit code 1 if there are fewer
    #[arg(long, value_name = "M", default_value_t = 1)]
    count: u64,
    /// Output file, which must not exist [default: stdout]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Lists the recordings, newest first.
pub(super) fn list(client: &Client, as_json: bool) -> anyhow::Result<Exit> {
    let list = client.recordings()?;
    match as_json {
        true => json(&serde_json::to_value(&list).context("cannot encode the list")?),
        false => result(&table(&list)),
    }
    Ok(Exit::Done)
}

/// Describes a recording.
pub(super) fn show(client: &Client, which: &str, as_json: bool) -> anyhow::Result<Exit> {
    let info = client.info(&find_id(client, which)?)?;
    match as_json {
        true => json(&serde_json::to_value(&info).context("cannot encode the description")?),
        false => result(&info::page(&info)),
    }
    Ok(if info.damaged_lines.is_empty() { Exit::Done } else { Exit::Failed })
}

/// Writes raw events.
pub(super) fn cat(client: &Client, args: &CatArgs) -> anyhow::Result<Exit> {
    let id = find_id(client, &args.recording)?;
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
            // The stream has no more events.
            Err(CtlError::Refused { .. }) if events > 0 => break,
            Err(e) => return Err(e.into()),
        };
        match out.write_all(&payload).and_then(|()| out.flush()) {
            // The reader closed the pipe on purpose.
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => return Ok(Exit::Done),
            written => written.context("cannot write the events")?,
        }
        (from, events, bytes) = (card.sequence.saturating_add(1), events + 1, bytes + payload.len());
    }
    log(&format!("{events} events, up to {}, {bytes} bytes", from.saturating_sub(1)));
    Ok(if events < args.count { Exit::Failed } else { Exit::Done })
}

/// Finds the id of a recording by id, name or "last".
fn find_id(client: &Client, which: &str) -> Result<String, CtlError> {
    let list = client.recordings()?;
    let found = find_recording(&list, which);
    found.map(|entry| entry.id.clone()).ok_or_else(|| CtlError::Refused {
        why: Cause::new(format!("cannot find recording {which:?}: the recorder has no such recording"))
            .with_hint("keepup ctl recordings lists them"),
    })
}

fn table(list: &Entries<RecordingEntry>) -> String {
    let mut lines = vec![format!(
        "{:<32} {:<24} {:>5} {:<14} {:<20} {:>7} {:>12} {:>10} {:>8}",
        "recording", "name", "run", "state", "started", "streams", "events", "GB", "missing"
    )];
    lines.extend(list.entries.iter().map(row));
    lines.extend(
        list.unreadable
            .iter()
            .map(|one| format!("cannot read {}: {}", one.directory.escape_debug(), one.why.escape_debug())),
    );
    lines.extend(list.left_out.clone());
    lines.join("\n")
}

fn row(entry: &RecordingEntry) -> String {
    let state = match entry.state {
        RecordingState::Sealed => "sealed",
        RecordingState::BeingWritten => "recording",
        RecordingState::NeedsRecovery => "NOT RECOVERED",
    };
    let number = |known: Option<u64>| known.map_or("-".to_owned(), |n| n.to_string());
    // Names are escaped, because clients choose them.
    let name = entry.name.escape_debug().to_string();
    format!(
        "{:<32} {name:<24} {:>5} {state:<14} {:<20} {:>7} {:>12} {:>10.3} {:>8}",
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
#[path = "recordings_tests.rs"]
mod tests;
