//! Recordings of a recorder or of `keepup serve`: list, description and single events.
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use keepup_catalog::{LAST, find_recording};
use keepup_error::Cause;
use keepup_recording::export::create;
use keepup_report::listing;
use keepup_sys::output::sync;

use super::client::Client;
use crate::ctl_error::CtlError;
use crate::exit::Exit;
use crate::output::{json, log, print_listing};
use crate::stdout;
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
        false => print_listing(|style| listing::recordings(&list, style)),
    }
    Ok(Exit::Done)
}

/// Describes a recording.
pub(super) fn show(client: &Client, which: &str, as_json: bool) -> anyhow::Result<Exit> {
    info::print(&client.info(&find_id(client, which)?)?, as_json)
}

/// Writes raw events.
pub(super) fn cat(client: &Client, args: &CatArgs) -> anyhow::Result<Exit> {
    let id = find_id(client, &args.recording)?;
    match &args.out {
        None => copy(client, &id, args, &mut stdout::lock()),
        Some(path) => {
            let mut out = create(path)?;
            let exit = copy(client, &id, args, &mut out)?;
            sync(&out).with_context(|| format!("cannot write {}", path.display()))?;
            Ok(exit)
        }
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
