//! Drain to an object store.
use keepup_archive::archive::{ArchivePlan, archive};
use keepup_archive::{ArchiveCounters, Location, PART_BYTES};
use keepup_measure::clock::SystemClock;
use keepup_report::listing;

use super::Args;
use crate::exit::Exit;
use crate::output::{json, print_listing};
use crate::signals::stop_flag;
use crate::transfer::{CONNECTIONS, with_progress};

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let stop = stop_flag()?;
    let plan = ArchivePlan {
        recording: args.recording.directories.clone(),
        to: Location::parse(&args.to)?,
        rate: args.rate,
        follow: args.follow,
        read_back: args.read_back,
        connections: args.connections.unwrap_or(CONNECTIONS).into(),
        part_bytes: PART_BYTES,
    };
    let live = ArchiveCounters::default();
    let outcome = with_progress("archived", &live, &|| archive(&plan, &SystemClock, &stop, &live));
    let Some(report) = outcome? else { return Ok(Exit::Interrupted) };
    if args.json {
        json(&serde_json::to_value(&report)?);
    } else {
        let state = match (report.is_archived, report.damaged_segments) {
            (false, _) if report.removed_segments > 0 => {
                "partial: segments were removed before this copy began (removed_segments in --json)"
            }
            (true, 0) => "archived: complete, all checksums confirmed",
            (true, _) => "archived: complete, but blocks of the recording are damaged (see keepup verify)",
            (false, _) => "not complete: the recording has not ended (--follow continues until then)",
        };
        let archived = listing::Archived {
            archive: &report.archive,
            files: report.files,
            bytes: report.bytes,
            known_bytes: report.known_bytes,
            segments: Some((report.sealed_segments, report.archived_segments, report.damaged_segments)),
            directory: None,
            state,
            seconds: report.seconds,
        };
        print_listing(|style| listing::archive(&archived, style));
    }
    let is_whole = report.is_archived && report.damaged_segments == 0;
    Ok(if is_whole { Exit::Done } else { Exit::Failed })
}
