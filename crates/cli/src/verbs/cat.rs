//! `keepup cat`: raw events of a stream.
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::Context;
use keepup_error::Cause;
use keepup_recording::access::{From, StreamReader};
use keepup_recording::export::create;
use keepup_recording::reader::Recording;
use keepup_sys::output::finish;

use crate::args::RecordingDirs;
use crate::exit::{Exit, usage};
use crate::output::{log, warn_of_damage};
use crate::stdout;

/// Write raw events of a stream to stdout or a file
///
/// Works while the recording is in progress, up to the last durable event.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup cat keepup-data/run1 --stream 0 --from 1000 --count 1 > frame.raw
  keepup cat keepup-data/run1 --stream 3 --from-time 2026-11-21T10:15:00Z --count 100 --out some.raw")]
pub(crate) struct Args {
    #[command(flatten)]
    recording: RecordingDirs,
    /// Id of the stream (see `keepup info`)
    #[arg(long, value_name = "ID")]
    stream: u32,
    /// Sequence number of the first event
    #[arg(long, value_name = "N", default_value_t = 0)]
    from: u64,
    /// Time of the first event: 2026-11-21T10:15:00Z or ns since 1970
    #[arg(long, value_name = "TIME", conflicts_with = "from", value_parser = timestamp)]
    from_time: Option<u64>,
    /// Number of events; exit code 1 if there are fewer [default: all]
    #[arg(long, value_name = "M")]
    count: Option<u64>,
    /// Output file, which must not exist [default: stdout]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

fn timestamp(text: &str) -> Result<u64, String> {
    if let Ok(ns) = text.parse() {
        return Ok(ns);
    }
    keepup_results::unix_ns(text).ok_or_else(|| {
        format!("{text:?} is not a time such as 2026-11-21T10:15:00Z or 1795255200000000000 (ns since 1970)")
    })
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let recording = Recording::open_present(&args.recording.directories)?;
    for volume in recording.missing() {
        log(&format!("warning: volume {} and its events are missing", volume.display()));
    }
    let is_damaged = warn_of_damage(&recording);
    let Some(mut reader) = StreamReader::open(&recording, args.stream)? else {
        let why = Cause::new(format!("cannot read stream {}: the recording has no such stream", args.stream));
        return Err(usage(why.with_hint("keepup info lists its streams")));
    };
    let from = args.from_time.map_or(From::Sequence(args.from), From::Time);
    let exit = match &args.out {
        None => copy(&mut reader, from, args.count, &mut stdout::lock()),
        Some(path) => {
            let mut out = BufWriter::with_capacity(1 << 20, create(path)?);
            let exit = copy(&mut reader, from, args.count, &mut out)?;
            finish(out).with_context(|| format!("cannot write {}", path.display()))?;
            Ok(exit)
        }
    }?;
    Ok(if is_damaged { Exit::Failed } else { exit })
}

fn copy(
    reader: &mut StreamReader<'_>,
    from: From,
    count: Option<u64>,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let (mut left, mut outcome, mut bytes) = (count.unwrap_or(u64::MAX), Ok(()), 0);
    if left == 0 {
        return Ok(Exit::Done);
    }
    let (mut first, mut last) = (None, 0);
    let events = reader.read(from, &mut |event| {
        (first, last) = (first.or(Some(event.sequence)), event.sequence);
        outcome = out.write_all(event.payload);
        bytes += event.payload.len();
        left -= 1;
        if outcome.is_err() || left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    match outcome.and_then(|()| out.flush()) {
        // The reader closed the pipe on purpose.
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => return Ok(Exit::Done),
        outcome => outcome.context("cannot write the events")?,
    }
    match first {
        Some(first) => {
            let left_out = (last - first).saturating_add(1).saturating_sub(events);
            let note =
                if left_out > 0 { format!(", {left_out} between them missing") } else { String::new() };
            log(&format!("{events} events, {first} to {last}, {bytes} bytes{note}"));
        }
        None => log("no such events"),
    }
    Ok(if count.is_some_and(|count| events < count) { Exit::Failed } else { Exit::Done })
}
