//! `keepup recover`: makes a recording whole that was cut off.

use anyhow::Context;
use keepup_recording::recover::{RecoverReport, StreamRecovery, recover, recover_without_locks};

use crate::args::Directories;
use crate::exit::Exit;
use crate::output::{json, missing, result};

/// Make a recording whole that a crash, a full disk or a lost volume cut off
///
/// Seals every segment with all blocks that are provably whole, enters what is missing in the journals, and
/// writes the NeXus master. Sealed segments are not touched; a second time there is nothing to do.
#[derive(clap::Args)]
#[command(after_help = "Example:
  keepup recover keepup-data/run1")]
pub(crate) struct Args {
    #[command(flatten)]
    recording: Directories,
    /// Recover also where the file system has no locks that would show a recorder at work
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
                "sealed {}: {} blocks, {} of them behind the last watermark, {} bytes",
                segment.path.display(),
                segment.blocks,
                segment.blocks_behind,
                segment.data_bytes
            ));
            if segment.duplicates > 0 {
                let (count, path) = (segment.duplicates, segment.path.display());
                lines.push(format!("left {count} blocks out of {path}: another volume has the same ones"));
            }
        }
        lines.extend(volume.removed.iter().map(|path| format!("removed {}, never begun", path.display())));
        if volume.journal_cut_bytes > 0 {
            let (bytes, place) = (volume.journal_cut_bytes, volume.directory.display());
            lines.push(format!("cut a torn line of {bytes} bytes off the journal in {place}"));
        }
        lines.extend(volume.faults.iter().map(|fault| match fault.split_once('\n') {
            Some((what, hints)) => format!("FAULT {what}; left as it is\n{hints}"),
            None => format!("FAULT {fault}; left as it is"),
        }));
    }
    lines.extend(report.streams.iter().flat_map(|(id, stream)| streams(*id, stream)));
    lines.extend(report.missing_volumes.iter().map(|v| format!("MISSING volume {}", v.display())));
    lines.extend(report.master.iter().map(|path| format!("wrote {}", path.display())));
    lines.push(match (report.complete, report.changed) {
        (true, false) => "nothing to do: the recording is sealed and accounted for".into(),
        (true, true) => "recovered; what came after the last event recorded is not known of".into(),
        (false, _) if !report.missing_volumes.is_empty() => {
            "not complete: mount the missing volume and recover again".into()
        }
        (false, _) => "not complete: keepup verify tells what is damaged, and what can still be read".into(),
    });
    lines.join("\n")
}

fn streams(id: u32, stream: &StreamRecovery) -> Vec<String> {
    let StreamRecovery { name, recorded, removed, missing: causes } = stream;
    let first = format!("stream {id} {name:?}: {} events, {} bytes", recorded.events, recorded.bytes);
    let gone = (removed.events > 0).then(|| format!("  removed: {} events, as --keep asked", removed.events));
    let causes = missing(causes.clone()).map(|line| format!("  {line}"));
    std::iter::once(first).chain(gone).chain(causes).collect()
}
