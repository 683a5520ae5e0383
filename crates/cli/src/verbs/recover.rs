//! `keepup recover`: seals an interrupted recording.

use anyhow::Context;
use keepup_recording::recover::{RecoverReport, StreamRecovery, recover, recover_without_locks};

use crate::args::RecordingDirs;
use crate::exit::Exit;
use crate::output::{json, missing, result};

/// Seal a recording that was interrupted by a crash, a full disk or a lost volume
///
/// Seals every segment with its intact blocks, records missing events in the journals and writes the NeXus
/// master. Sealed segments are not changed, and a second recovery does nothing.
#[derive(clap::Args)]
#[command(after_help = "Example:
  keepup recover keepup-data/run1")]
pub(crate) struct Args {
    #[command(flatten)]
    recording: RecordingDirs,
    /// Recover on a file system without locks; make sure that no recorder runs
    #[arg(long)]
    without_locks: bool,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let recover = if args.without_locks { recover_without_locks } else { recover };
    let report = recover(&args.recording.directories)?;
    match args.json {
        true => json(&serde_json::to_value(&report).context("cannot encode the report")?),
        false => result(&account(&report)),
    }
    Ok(if report.complete { Exit::Done } else { Exit::Failed })
}

fn account(report: &RecoverReport) -> String {
    let mut lines = vec![format!("recording {} ({})", report.name.escape_debug(), report.recording)];
    for volume in &report.volumes {
        for segment in &volume.sealed {
            lines.push(format!(
                "sealed {}: {} blocks, {} of them after the last watermark, {} bytes",
                segment.path.display(),
                segment.blocks,
                segment.blocks_behind,
                segment.data_bytes
            ));
            if segment.duplicates > 0 {
                let (count, path) = (segment.duplicates, segment.path.display());
                lines.push(format!("skipped {count} blocks of {path}: another volume has copies"));
            }
        }
        lines.extend(volume.removed.iter().map(|path| format!("removed empty segment {}", path.display())));
        if volume.journal_cut_bytes > 0 {
            let (bytes, directory) = (volume.journal_cut_bytes, volume.directory.display());
            lines.push(format!("removed a torn line of {bytes} bytes from the journal in {directory}"));
        }
        lines.extend(volume.faults.iter().map(|fault| match fault.split_once('\n') {
            Some((what, hints)) => format!("FAULT {what}; not changed\n{hints}"),
            None => format!("FAULT {fault}; not changed"),
        }));
    }
    lines.extend(report.streams.iter().flat_map(|(id, stream)| streams(*id, stream)));
    lines.extend(report.missing_volumes.iter().map(|v| format!("MISSING volume {}", v.display())));
    lines.extend(report.master.iter().map(|path| format!("wrote {}", path.display())));
    lines.push(match (report.complete, report.changed) {
        (true, false) => "nothing to do: the recording is sealed".into(),
        (true, true) => "recovered; events after the last recorded one are unknown".into(),
        (false, _) if !report.missing_volumes.is_empty() => {
            "not complete: mount the missing volume and run keepup recover again".into()
        }
        (false, _) => "not complete: keepup verify lists damaged and readable events".into(),
    });
    lines.join("\n")
}

fn streams(id: u32, stream: &StreamRecovery) -> Vec<String> {
    let StreamRecovery { name, recorded, removed, missing: causes } = stream;
    let first = format!("stream {id} {name:?}: {} events, {} bytes", recorded.events, recorded.bytes);
    let removed = (removed.events > 0).then(|| format!("  removed: {} events, by --keep", removed.events));
    let causes = missing(causes.clone()).map(|line| format!("  {line}"));
    std::iter::once(first).chain(removed).chain(causes).collect()
}
