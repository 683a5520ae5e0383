//! `keepup trace record`: trace of another command's file I/O.
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Parser;
use keepup_error::Cause;
use keepup_measure::clock::SystemClock;
use keepup_trace::{Capture, Captured};

use crate::exit::{Exit, usage};
use crate::output::{log_cause, report_error, report_flags};
use crate::{Cli, Verb};

/// Run another keepup command and record a trace of its file I/O
///
/// Requests are recorded as the command submits them, above page cache and file system, with their submission
/// and completion times. The exit code is that of the command. Put OUT on a disk that is not measured.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup trace record run.trace -- disk sweep --volume /data --quick
  keepup trace record run.trace -- record --listen 0.0.0.0:7000 --volume /data")]
pub(super) struct Args {
    /// Output file, in keepup's format
    #[arg(value_name = "OUT")]
    out: PathBuf,
    /// Command with its arguments: record, sink, qualify, trial, disk, soak or replay
    #[arg(last = true, required = true, value_name = "COMMAND")]
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
        let what = format!("cannot record a trace of {name}: its file I/O cannot be captured");
        let hint = "use record, sink, qualify, trial, disk, soak or replay";
        return Err(usage(Cause::new(what).with_hint(hint)));
    }
    let capture = Capture::start(&args.out, Arc::new(SystemClock))?;
    let outcome = crate::run(&cli.verb);
    let captured = capture.finish();
    if let Ok(captured) = &captured {
        log_cause(&summary(captured, &args.out));
    }
    match (outcome, captured) {
        (Ok(Exit::Done), Err(error)) => Err(error.into()),
        (Ok(Exit::Done), Ok(Captured { records: 0, .. })) => Ok(Exit::Usage),
        (outcome, Err(error)) => {
            // The exit code is that of the command.
            report_error(&error.into());
            outcome
        }
        (outcome, Ok(_)) => outcome,
    }
}

/// Whether the file I/O of a command is captured: it must run in this process, through the engines.
fn is_seen(verb: &Verb) -> bool {
    match verb {
        Verb::Trial(_)
        | Verb::Record(_)
        | Verb::Sink(_)
        | Verb::Restore(_)
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
        #[cfg(feature = "fleet")]
        Verb::Fleet(_) => false,
    }
}

fn summary(captured: &Captured, out: &Path) -> Cause {
    let out = out.display();
    if captured.records == 0 {
        let what = format!("error: cannot record {out}: the command made no file I/O");
        return Cause::new(what).with_hint("null targets, dry runs and fio exports do no file I/O");
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
