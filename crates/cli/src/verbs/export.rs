//! `keepup export`: a recording in another form.
use std::path::PathBuf;

use keepup_error::Cause;
use keepup_recording::export::{Exported, nexus, one_file, raw, zarr_reference};
use keepup_recording::reader::Recording;

use crate::args::Directories;
use crate::exit::{Exit, usage};
use crate::output::{result, say, warn_of_damage};

/// Write a sealed recording in another form; events keep their bytes, and nothing is overwritten
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup export keepup-data/run1 --to mcap --out run1.mcap
  keepup export keepup-data/run1 --to raw --out run1.raw --stream 0
  keepup export keepup-data/run1 --to zarr-reference --out run1.json")]
pub(crate) struct Args {
    #[command(flatten)]
    recording: Directories,
    /// The form
    #[arg(long, value_enum, value_name = "FORM")]
    to: Form,
    /// File, or for `raw` directory, to write; must not exist
    #[arg(long, value_name = "PATH")]
    out: PathBuf,
    /// Id of the only stream to write [default: all]
    #[arg(long, value_name = "ID")]
    stream: Option<u32>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Form {
    /// A directory with the payloads of each stream in one file, and a table of where each event is
    Raw,
    /// One file that is MCAP and HDF5, over all volumes; shares extents where the file system can
    Mcap,
    /// References for Zarr (kerchunk): nothing is copied; for streams with a shape, not compressed
    ZarrReference,
    /// The NeXus master at another place: nothing is copied
    Nexus,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let recording = Recording::open(&args.recording.directories)?;
    if let Some(id) = args.stream.filter(|id| !recording.streams().contains_key(id)) {
        let why = Cause::new(format!("cannot export stream {id}: the recording has no such stream"));
        return Err(usage(why.with_hint("keepup info lists its streams")));
    }
    let exit = if warn_of_damage(&recording) { Exit::Failed } else { Exit::Done };
    let (stream, out) = (args.stream, args.out.as_path());
    let exported = match args.to {
        Form::Raw => raw(&recording, stream, out)?,
        Form::Mcap => one_file(&recording, stream, out)?,
        Form::ZarrReference => zarr_reference(&recording, stream, out)?,
        Form::Nexus => {
            nexus(&recording, out)?;
            result(&format!("wrote {}", out.display()));
            return Ok(exit);
        }
    };
    let Exported { streams, events, payload_bytes, left_out } = exported;
    if left_out > 0 {
        say(&format!("warning: {left_out} streams are not arrays of one size and were left out"));
    }
    result(&format!("wrote {}: {streams} streams, {events} events, {payload_bytes} bytes", out.display()));
    Ok(exit)
}
