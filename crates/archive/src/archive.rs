//! Copies a recording to an archive, also while it is being recorded.
//!
//! Sealed segments are sent as they appear ([`run`]), the other files once the recording has ended, and the
//! inventory last ([`conclusion`]). A later copy continues an interrupted one ([`resumption`]).
mod conclusion;
mod resumption;
mod run;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use keepup_error::Cause;
use keepup_measure::clock::Clock;
use keepup_recording::error::RecordingError;
use keepup_recording::follow::Follower;
use keepup_recording::manifest::Manifest;
use keepup_recording::retention::KeepUntil;
use serde::Serialize;

use self::run::ArchiveRun;
use crate::claim::{check_owner, claim};
use crate::counters::ArchiveCounters;
use crate::error::ArchiveError;
use crate::inventory::INVENTORY_FILE;
use crate::local::remove_leftovers;
use crate::pace::{Pace, wait_until};
use crate::reading::PartReader;
use crate::state::ArchiveState;
use crate::store::{Location, Store};
use crate::upload::Uploader;

/// Interval between polls of the journals, in nanoseconds.
const POLL_NS: u64 = 200_000_000;
/// How long a following copy waits for its recording to appear, in nanoseconds.
const OPEN_TIMEOUT_NS: u64 = 10_000_000_000;

/// Settings of a copy to an archive.
#[derive(Clone, Debug)]
pub struct ArchivePlan {
    /// Directories of the recording; one is enough when the others are where the manifest says.
    pub recording: Vec<PathBuf>,
    /// Where the archive is made, as the directory with the recording's name.
    pub to: Location,
    /// Rate limit in bytes per second; `None` means unlimited.
    pub rate: Option<f64>,
    /// Continue until the recording has ended; otherwise copy what is sealed now.
    pub follow: bool,
    /// Read every object back, even if the store has confirmed its checksum.
    pub read_back: bool,
    /// Most parts in flight, each of `part_bytes`.
    pub connections: usize,
    /// Size of a part, bytes: [`PART_BYTES`](crate::PART_BYTES).
    pub part_bytes: u64,
}

/// Result of a copy to an archive.
#[derive(Clone, Debug, Serialize)]
pub struct ArchiveReport {
    /// Address of the archive.
    pub archive: String,
    /// Files in the archive.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of those that an interrupted copy had sent.
    pub known_bytes: u64,
    /// Sealed segments on the volumes.
    pub sealed_segments: u64,
    /// Segments in the archive, confirmed by the store.
    pub archived_segments: u64,
    /// Of these, segments with a damaged block.
    pub damaged_segments: u64,
    /// Segments of an ended recording that the archive lacks, because they were removed before.
    pub removed_segments: u64,
    /// Whether the archive is complete: the whole recording, with its inventory. Disposable data that was
    /// removed before is no part of it.
    #[serde(rename = "archived")]
    pub is_archived: bool,
    /// Total elapsed time, seconds.
    pub seconds: f64,
}

/// Copies a recording until its end (`follow`), what is sealed now, or until `stop`.
///
/// # Errors
/// The recording cannot be opened or read or was cut off, the store refuses or holds other bytes than were
/// sent, or `stop` was set. What the store has confirmed until then is not sent again.
pub fn archive(
    plan: &ArchivePlan,
    clock: &dyn Clock,
    stop: &AtomicBool,
    live: &ArchiveCounters,
) -> Result<ArchiveReport, ArchiveError> {
    // Not every scheduler supports I/O priorities; the rate limit holds without them.
    let _ = keepup_sys::thread::yield_disk();
    let begin_ns = clock.now_ns();
    let follower = open(plan, clock, stop)?;
    let first = &follower.volumes()[0];
    let (dir, manifest) = (first.dir().to_path_buf(), first.manifest().clone());
    refuse_itself(plan, &follower, &manifest.name)?;
    let mut store = Store::open(&plan.to, Some(&manifest.name))?;
    // A copy that an earlier version began is continued where it is.
    if let Some(earlier) = Store::open(&plan.to, Some(&manifest.name))?.with_earlier_name(&manifest.name)
        && check_owner(&earlier, manifest.recording).is_ok()
    {
        store = earlier;
    }
    claim(&store, &manifest)?;
    let state = ArchiveState::open(&dir, manifest.recording, &store.location.to_string())?;
    if !state.is_kept() {
        live.warn(cannot_keep_state(&dir, &manifest));
    }
    if let (Some(archive), true) = (store.location.directory(), state.is_kept()) {
        remove_leftovers(&archive, follower.volumes().len())?;
    }
    let uploader = Uploader {
        store: &store,
        clock,
        stop,
        live,
        pace: Pace::new(plan.rate, begin_ns),
        connections: plan.connections.clamp(1, crate::CONNECTIONS_MAX),
        part_bytes: plan.part_bytes,
        read_back: plan.read_back,
        reader: PartReader::new()?,
        has_inventory: store.head(INVENTORY_FILE)?.is_some(),
        receipts: is_kept_until_archived(&manifest).then_some(manifest.recording),
    };
    let mut run = ArchiveRun::new(plan, follower, manifest, state, uploader);
    run.resume()?;
    let is_archived = run.send_segments()? && run.conclude()?;
    Ok(run.report(is_archived, clock.now_ns().saturating_sub(begin_ns)))
}

/// Opens the recording; a following copy waits for its manifest.
fn open(plan: &ArchivePlan, clock: &dyn Clock, stop: &AtomicBool) -> Result<Follower, ArchiveError> {
    let deadline_ns = clock.now_ns() + OPEN_TIMEOUT_NS;
    loop {
        match Follower::open(&plan.recording) {
            Err(
                RecordingError::NotARecording { .. }
                | RecordingError::Unborn { .. }
                | RecordingError::VolumeMissing { .. },
            ) if plan.follow && clock.now_ns() < deadline_ns => {
                wait_until(clock, clock.now_ns() + POLL_NS, stop)?;
            }
            outcome => return Ok(outcome?),
        }
    }
}

/// Whether the recorder removes segments that an archive has.
fn is_kept_until_archived(manifest: &Manifest) -> bool {
    manifest.keep.is_some_and(|keep| !keep.disposable && keep.until == KeepUntil::Archived)
}

/// Warning about a directory without a state file.
fn cannot_keep_state(dir: &Path, manifest: &Manifest) -> String {
    let no_removal = match is_kept_until_archived(manifest) {
        true => ", and the recorder removes no segment (--keep-until archived)",
        false => "",
    };
    format!("cannot write a state file in {}: an interrupted copy will start over{no_removal}", dir.display())
}

/// Refuses an archive in the recording's own directory.
fn refuse_itself(plan: &ArchivePlan, follower: &Follower, name: &str) -> Result<(), ArchiveError> {
    let Some(archive) = plan.to.below(name).directory().and_then(|path| path.canonicalize().ok()) else {
        return Ok(());
    };
    let is_same = |dir: &Path| dir.canonicalize().is_ok_and(|dir| dir == archive);
    if follower.volumes().iter().any(|part| is_same(part.dir())) {
        let what = Cause::new("it is the recording itself").with_hint("another directory");
        return Err(ArchiveError::Url { url: plan.to.below(name).to_string(), what });
    }
    Ok(())
}

#[cfg(test)]
#[path = "archive_fault_tests.rs"]
mod fault_tests;
#[cfg(test)]
#[path = "archive_tests.rs"]
mod tests;
