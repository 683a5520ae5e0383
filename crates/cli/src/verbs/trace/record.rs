//! `keepup trace record`: another verb, and the trace of what it asks of files.
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Parser;
use keepup_error::Cause;
use keepup_measure::clock::SystemClock;
use keepup_trace::{Capture, Captured};

use crate::exit::{Exit, usage};
use crate::output::{report_error, report_flags, tell};
use crate::{Cli, Verb};

/// Run another verb and write the trace of its requests to files
///
/// Requests are seen as the verb makes them, above page cache and file system, with the times when they were
/// begun and when their end was seen. The exit code is the verb's. OUT should lie on another disk than what
/// is measured.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup trace record run.trace -- disk sweep --volume /data --quick
  keepup trace record run.trace -- record --listen 0.0.0.0:7000 --volume /data")]
pub(super) struct Args {
    /// The new file, in keepup's own format
    #[arg(value_name = "OUT")]
    out: PathBuf,
    /// The verb with its arguments: record, sink, qualify, disk, soak or replay
    #[arg(last = true, required = true, value_name = "VERB")]
    verb: Vec<OsString>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let program = OsString::from("keepup");
    let cli = match Cli::try_parse_from(std::iter::once(&program).chain(&args.verb)) {
        Ok(cli) => cli,
        Err(error) => return Ok(report_flags(&error)),
    };
    if !is_seen(&cli.verb) {
        let name = args.verb.first().map(|name| name.to_string_lossy()).unwrap_or_default();
        let what = format!("cannot record a trace of {name}: none of its requests to files would be seen");
        let hint = "record, sink, qualify, disk, soak and replay can be recorded";
        return Err(usage(Cause::new(what).with_hint(hint)));
    }
    let capture = Capture::start(&args.out, Arc::new(SystemClock))?;
    let outcome = crate::run(&cli.verb);
    let captured = capture.finish();
    if let Ok(captured) = &captured {
        tell(&told(captured, &args.out));
    }
    match (outcome, captured) {
        (Ok(Exit::Done), Err(error)) => Err(error.into()),
        (Ok(Exit::Done), Ok(Captured { records: 0, .. })) => Ok(Exit::Usage),
        (outcome, Err(error)) => {
            // The verb's own end is what the exit code tells.
            report_error(&error.into());
            outcome
        }
        (outcome, Ok(_)) => outcome,
    }
}

/// Whether a verb moves data through what is listened to, in this process.
fn is_seen(verb: &Verb) -> bool {
    match verb {
        Verb::Trial(_)
        | Verb::Record(_)
        | Verb::Sink(_)
        | Verb::Qualify(_)
        | Verb::Disk(_)
        | Verb::Soak(_)
        | Verb::Replay(_)
        | Verb::ReplaySet(_) => true,
        Verb::Source(_)
        | Verb::Drain(_)
        | Verb::Verify(_)
        | Verb::Info(_)
        | Verb::Cat(_)
        | Verb::Recover(_)
        | Verb::Export(_)
        | Verb::Net(_)
        | Verb::Register(_)
        | Verb::Report(_)
        | Verb::Serve(_)
        | Verb::Trace(_)
        | Verb::Campaign(_)
        | Verb::Compare(_)
        | Verb::Predict(_)
        | Verb::Reproduce(_)
        | Verb::Doctor(_)
        | Verb::Load(_)
        | Verb::Profile(_)
        | Verb::Ctl(_)
        | Verb::Generate(_) => false,
    }
}

fn told(captured: &Captured, out: &Path) -> Cause {
    let out = out.display();
    if captured.records == 0 {
        let what = format!("error: cannot keep {out}: no request to a file was seen");
        return Cause::new(what)
            .with_hint("a null target, a dry run and a job file for fio ask nothing of files");
    }
    let mb = |bytes: u64| bytes as f64 / 1e6;
    let mut lines = vec![format!(
        "{out}: {} requests to {} files in {:.3} s, {:.3} MB read, {:.3} MB written; the trace has {:.3} MB",
        captured.records,
        captured.files,
        captured.span_ns as f64 / 1e9,
        mb(captured.read_bytes),
        mb(captured.written_bytes),
        mb(captured.trace_bytes)
    )];
    lines
        .extend(captured.corrections.describe().iter().map(|(count, what)| format!("{out}: {count} {what}")));
    Cause::new(lines.join("\n"))
}
