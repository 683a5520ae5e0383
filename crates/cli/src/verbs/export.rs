//! `keepup export`: conversion of a recording.
use std::collections::BTreeMap;
use std::path::PathBuf;

use keepup_archive::ArchiveCounters;
use keepup_archive::bag::bag;
use keepup_error::Cause;
use keepup_measure::clock::{Clock as _, SystemClock};
use keepup_recording::export::{Exported, files, nexus, one_file, raw, zarr_reference};
use keepup_recording::merged::MergedRecording;
use keepup_recording::reader::Recording;
use keepup_recording::set::OpenSet;
use keepup_report::plural;
use keepup_results::rfc3339;
use keepup_stream::ledger::{Gap, LossCause};

use super::recording_set::{FoundSet, RecordingOrSet, warn_of_absent};
use crate::exit::{Exit, usage};
use crate::output::{log, result, warn_of_damage};
use crate::progress::ReadingLine;
use crate::signals::stop_flag;
use crate::transfer::with_progress;

/// Convert a sealed recording to another format
///
/// The payload of events does not change. Existing files are never overwritten.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup export keepup-data/run1 --to mcap --out run1.mcap
  keepup export keepup-data/run1 --to raw --out run1.raw --stream 0
  keepup export keepup-data/run1 --to zarr-reference --out run1.json
  keepup export keepup-data/run1 --to bagit --out run1-bag
  keepup export run-17/keepup-set.json --to nexus --out run-17.nxs")]
pub(crate) struct Args {
    #[command(flatten)]
    recording: RecordingOrSet,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Format,
    /// Output file, or directory for `raw`, `files` and `bagit`; must not exist
    #[arg(long, value_name = "PATH")]
    out: PathBuf,
    /// Id of a stream, not for `bagit` [default: all streams]
    #[arg(long, value_name = "ID")]
    stream: Option<u32>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    /// Directory with one payload file and one event index per stream
    Raw,
    /// One file, valid MCAP and HDF5; shares extents if the file system supports it
    Mcap,
    /// Directory with the files of `record --from dir:`, under their names
    Files,
    /// Zarr references (kerchunk) without a copy; for uncompressed streams with a shape
    ZarrReference,
    /// NeXus master file without a copy of the data
    Nexus,
    /// BagIt bag (RFC 8493): the recording's own files with their SHA-256
    Bagit,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    match args.recording.set()? {
        Some(FoundSet::Here(set)) => return export_set(&set, args),
        #[cfg(feature = "fleet")]
        Some(FoundSet::Fleet(..)) => {
            let why = "cannot export through agents: they do not send the events of a recording";
            let hint = "copy or mount the recordings of the hosts, and use --at HOST=DIR";
            return Err(usage(Cause::new(why).with_hint(hint)));
        }
        None => {}
    }
    let recording = Recording::open(&args.recording.directories)?;
    let exit = if warn_of_damage(&recording) { Exit::Failed } else { Exit::Done };
    let merged = (&recording).into();
    check_stream(&merged, args)?;
    match args.to {
        Format::Bagit => export_bag(&recording, args, exit),
        _ => export(&merged, args, exit),
    }
}

/// Exports the recordings of a set that are here as one.
fn export_set(set: &OpenSet, args: &Args) -> anyhow::Result<Exit> {
    let is_incomplete = warn_of_absent(set);
    let is_damaged =
        set.recordings().fold(false, |damaged, (_, recording)| warn_of_damage(recording) | damaged);
    if set.recordings().next().is_none() {
        let why = Cause::new("cannot export the recording set: none of its recordings is here");
        return Err(usage(why.with_hint("--at HOST=DIR gives the directories of a host")));
    }
    let exit = if is_incomplete || is_damaged { Exit::Failed } else { Exit::Done };
    let merged = set.merged()?;
    check_stream(&merged, args)?;
    export(&merged, args, exit)
}

fn check_stream(recording: &MergedRecording<'_>, args: &Args) -> anyhow::Result<()> {
    if let Some(id) = args.stream.filter(|id| !recording.streams().contains_key(id)) {
        let why = Cause::new(format!("cannot export stream {id}: the recording has no such stream"));
        return Err(usage(why.with_hint("keepup info lists its streams")));
    }
    Ok(())
}

fn export(recording: &MergedRecording<'_>, args: &Args, exit: Exit) -> anyhow::Result<Exit> {
    let (stream, out) = (args.stream, args.out.as_path());
    let line = ReadingLine::new();
    let mut show = |progress| line.show(progress);
    let exported = match args.to {
        Format::Raw => raw(recording, stream, out, &mut show)?,
        Format::Mcap => one_file(recording, stream, out, &mut show)?,
        Format::Files => files(recording, stream, out, &mut show)?,
        Format::ZarrReference => zarr_reference(recording, stream, out)?,
        Format::Nexus => nexus(recording, out)?,
        Format::Bagit => {
            let why = "cannot export a recording set to bagit: a bag has the files of one recording";
            return Err(usage(Cause::new(why).with_hint("export each of its recordings")));
        }
    };
    drop(line);
    let Exported { streams, events, payload_bytes, left_out, missing } = exported;
    if left_out > 0 {
        let streams = plural(left_out, "stream");
        log(&match args.to {
            Format::Nexus => {
                format!("warning: no data or length of {streams}: events of one size in some segments only")
            }
            _ => format!("warning: skipped {streams}: not arrays of one size"),
        });
    }
    let [streams, events, bytes] =
        [plural(streams, "stream"), plural(events, "event"), plural(payload_bytes, "byte")];
    match args.to {
        Format::Nexus => result(&format!("wrote {}: {streams}, {events}", out.display())),
        _ => result(&format!("wrote {}: {streams}, {events}, {bytes}", out.display())),
    }
    show_missing(recording, &missing);
    Ok(exit)
}

/// Prints the missing events of each stream by cause. Clients choose the names of streams.
fn show_missing(recording: &MergedRecording<'_>, missing: &[Gap]) {
    let mut streams: BTreeMap<u32, BTreeMap<LossCause, u64>> = BTreeMap::new();
    for gap in missing {
        let events = streams.entry(gap.stream).or_default().entry(gap.cause).or_default();
        *events = events.saturating_add(gap.events);
    }
    let declared = recording.streams();
    for (id, causes) in streams {
        let name =
            declared.get(&id).map_or_else(String::new, |stream| stream.name.escape_debug().to_string());
        for (cause, events) in causes {
            result(&format!("missing in stream {id} ({name}): {}, {cause}", plural(events, "event")));
        }
    }
}

/// Copies the whole recording to a bag.
fn export_bag(recording: &Recording, args: &Args, exit: Exit) -> anyhow::Result<Exit> {
    if args.stream.is_some() {
        return Err(usage("cannot use --stream with --to bagit: a bag has the whole recording"));
    }
    let (stop, live) = (stop_flag()?, ArchiveCounters::default());
    let now = rfc3339(SystemClock.unix_ns());
    let date = now.split('T').next().unwrap_or_default();
    let outcome = with_progress("copied", &live, &|| bag(recording, &args.out, date, &stop, &live));
    let Some(report) = outcome? else { return Ok(Exit::Interrupted) };
    let files = plural(report.files, "file");
    result(&format!("wrote {}: {files}, {}", args.out.display(), plural(report.bytes, "byte")));
    Ok(if report.damaged_segments > 0 { Exit::Failed } else { exit })
}
