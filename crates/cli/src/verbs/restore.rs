//! `keepup restore`: a recording from an archive.
use std::path::PathBuf;

use keepup_archive::restore::{RestorePlan, restore};
use keepup_archive::{ArchiveCounters, CONNECTIONS_MAX, Location, PART_BYTES};
use keepup_measure::clock::SystemClock;
use keepup_report::listing;

use crate::args::byte_rate;
use crate::exit::Exit;
use crate::output::{json, print_listing};
use crate::signals::stop_flag;
use crate::transfer::{CONNECTIONS, with_progress};

/// Restore a recording from an object store
///
/// Checks every file against the SHA-256 in the archive's inventory. An interrupted restore continues: files
/// that are already there and intact are not received again.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup restore s3://bucket/beamline/run1 /data/a/run1
  keepup restore file:///tape/run1 run1 --rate '200 MB/s'")]
pub(crate) struct Args {
    /// Address of the archive: s3://BUCKET/PREFIX/NAME, or gs://, az://, file://
    #[arg(value_name = "ARCHIVE")]
    from: String,
    /// Directory of the recording; new, empty, or left by an interrupted restore
    ///
    /// The first volume's files are put here, those of further volumes in subdirectories. Every command
    /// accepts this directory as the recording.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Limit on the rate, such as "20 MB/s" [default: none]
    #[arg(long, value_parser = byte_rate, value_name = "RATE")]
    rate: Option<f64>,
    /// Requests of 8 MiB in flight [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=CONNECTIONS_MAX as i64))]
    connections: Option<u16>,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let stop = stop_flag()?;
    let plan = RestorePlan {
        from: Location::parse(&args.from)?,
        to: args.directory.clone(),
        rate: args.rate,
        connections: args.connections.unwrap_or(CONNECTIONS).into(),
        part_bytes: PART_BYTES,
    };
    let live = ArchiveCounters::default();
    let outcome = with_progress("restored", &live, &|| restore(&plan, &SystemClock, &stop, &live));
    let Some(report) = outcome? else { return Ok(Exit::Interrupted) };
    if args.json {
        json(&serde_json::to_value(&report)?);
        return Ok(Exit::Done);
    }
    let archived = listing::Archived {
        archive: &args.from,
        files: report.files,
        bytes: report.bytes,
        known_bytes: report.known_bytes,
        segments: None,
        directory: Some(&report.directory),
        state: "restored: complete, all checksums confirmed",
        seconds: report.seconds,
    };
    print_listing(|style| listing::archive(&archived, style));
    Ok(Exit::Done)
}
