//! Recovery: makes a recording complete after a crash, a full disk or a removed volume.
//!
//! Unsealed segments are sealed with every block that is provably intact; missing events are
//! entered in the journals with their cause; then the run gets its end record. Invariants: a
//! sealed segment is never changed; nothing that was acknowledged is cut off; a second recovery
//! has nothing to do; a recording in progress is refused, and nothing is read while writes are in flight.
mod account;
mod copies;
mod volume;

use std::collections::BTreeMap;
use std::path::PathBuf;

use keepup_error::Cause;
use keepup_stream::ledger::{Count, Gap, LossCause};
use serde::{Deserialize, Serialize};

use self::account::{Account, account};
use self::volume::OpenVolume;
use crate::error::RecordingError;
use crate::id::Id;
use crate::journal::{JournalRecord, StreamEnd};
use crate::master::write_master;
use crate::progress::Progress;
use crate::reader::{Recording, locate_present};
use crate::volume::End;

/// Reason in the end record of a recovered recording.
const REASON: &str = "cut off, and recovered";

/// Report of a recovery.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecoverReport {
    /// Name of the recording.
    pub name: String,
    /// Its identity.
    pub recording: Id,
    /// Whether anything had to be done.
    pub changed: bool,
    /// Whether everything is now sealed, accounted for and undamaged, as far as recovery has
    /// checked.
    pub complete: bool,
    /// Volumes that were not found, as given at recording time.
    pub missing_volumes: Vec<PathBuf>,
    /// Changes on each volume.
    pub volumes: Vec<VolumeRecovery>,
    /// Totals of each stream, by id; empty when a volume is missing or blocks are damaged.
    pub streams: BTreeMap<u32, StreamRecovery>,
    /// NeXus master, if it was written.
    pub master: Option<PathBuf>,
}

/// Changes on one volume.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct VolumeRecovery {
    /// The recording's directory on it.
    pub directory: PathBuf,
    /// Segments sealed by this recovery.
    pub sealed: Vec<SegmentRecovery>,
    /// Removed files of empty segments.
    pub removed: Vec<PathBuf>,
    /// Bytes of a torn line cut off from the journal.
    pub journal_cut_bytes: u64,
    /// Damage that was left unchanged.
    pub faults: Vec<String>,
}

/// One segment sealed by recovery.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SegmentRecovery {
    /// Its file.
    pub path: PathBuf,
    /// Intact blocks in it.
    pub blocks: u64,
    /// Of these, blocks above the journal's last watermark.
    pub blocks_behind: u64,
    /// Blocks at the end that were dropped because another volume has them too: their writes were
    /// reported failed, were repeated there, and reached this disk after all.
    pub duplicates: u64,
    /// End of the blocks, bytes.
    pub data_bytes: u64,
}

/// Totals of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamRecovery {
    /// Its name.
    pub name: String,
    /// Events in the recording.
    pub recorded: Count,
    /// Events removed by the retention limit.
    pub removed: Count,
    /// Missing events, by cause. Events after the last recorded one are unknown.
    pub missing: BTreeMap<LossCause, u64>,
}

/// Options of a recovery.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecoverOptions {
    /// Recover on a file system without locks; the caller knows that nobody is recording there.
    pub without_locks: bool,
}

/// Recovers the recording that `dirs` belong to, located as in [`Recording::open`]; missing
/// volumes are listed, and the others are sealed. `progress` is called often while unsealed segments
/// are read.
///
/// # Errors
/// The recording is or may be in progress, a manifest cannot be used, or a journal is missing or
/// belongs to another volume. No data is lost then.
pub fn recover(
    dirs: &[PathBuf],
    options: RecoverOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<RecoverReport, RecordingError> {
    let (places, missing_volumes) = locate_present(dirs)?;
    let mut volumes = Vec::new();
    for (dir, manifest) in places {
        volumes.push(OpenVolume::open(&dir, manifest, options.without_locks)?);
    }
    scan_all(&mut volumes, progress)?;
    for ((volume, segment), count) in copies::trailing_copies(&volumes) {
        volumes[volume].leave_out(segment, count);
    }
    for volume in &mut volumes {
        volume.seal_all()?;
    }
    let first = &volumes[0].volume;
    let (name, recording) = (first.manifest().name.clone(), first.manifest().recording);
    let mut is_whole = missing_volumes.is_empty() && !volumes.iter().any(|volume| volume.is_blocked);
    let mut streams = BTreeMap::new();
    if is_whole {
        match account(&volumes) {
            Ok(account) => {
                conclude(&mut volumes, &account)?;
                streams = account.streams;
                for (volume, what) in account.damage {
                    volumes[volume].report.faults.push(what);
                }
            }
            Err((volume, error)) => {
                is_whole = false;
                volumes[volume].report.faults.push(Cause::of(&error).to_text());
            }
        }
    }
    let complete = is_whole && volumes.iter().all(|volume| volume.report.faults.is_empty());
    let changed = volumes.iter().any(|volume| volume.is_changed);
    let reports = volumes.into_iter().map(|volume| volume.report).collect();
    let mut master = None;
    if is_whole {
        let recording = Recording::open(dirs)?;
        if changed || !recording.has_master() {
            master = Some(write_master(&recording)?);
        }
    }
    Ok(RecoverReport {
        name,
        recording,
        changed: changed || master.is_some(),
        complete,
        missing_volumes,
        volumes: reports,
        streams,
        master,
    })
}

/// Scans every unsealed segment. Blocks above the watermark add to the total when they are found.
fn scan_all(volumes: &mut [OpenVolume], progress: &mut dyn FnMut(Progress)) -> Result<(), RecordingError> {
    let durable_bytes = volumes.iter().map(OpenVolume::unsealed_bytes).fold(0, u64::saturating_add);
    let mut state = Progress { total_bytes: durable_bytes, ..Progress::default() };
    for volume in volumes {
        volume.scan_all(&mut |bytes| {
            state.done_bytes = state.done_bytes.saturating_add(bytes);
            state.total_bytes = state.total_bytes.max(state.done_bytes);
            progress(state);
        })?;
    }
    Ok(())
}

/// Enters gaps and the end record in every journal that lacks them.
fn conclude(volumes: &mut [OpenVolume], account: &Account) -> Result<(), RecordingError> {
    // A recorder that panicked at the end may have written one without the counts.
    let is_counted = |end: &End| !end.streams.is_empty() || account.streams.is_empty();
    let has_end = |volume: &OpenVolume| volume.volume.end().is_some_and(is_counted);
    let ends = volumes.iter().all(|volume| has_end(volume) && !volume.is_changed);
    if ends && account.new_gaps.is_empty() && account.found_again.is_empty() {
        return Ok(());
    }
    let streams: Vec<StreamEnd> = account
        .streams
        .iter()
        .map(|(&id, stream)| {
            let ever = stream.recorded + stream.removed;
            StreamEnd { id, received: ever, durable: ever }
        })
        .collect();
    for volume in volumes {
        for &gap in &account.new_gaps {
            volume.append(JournalRecord::Gap(gap))?;
        }
        for &Gap { stream, first_sequence, events, .. } in &account.found_again {
            volume.append(JournalRecord::Found { stream, first_sequence, events })?;
        }
        volume.append(JournalRecord::End {
            clean: false,
            reason: REASON.into(),
            streams: streams.clone(),
        })?;
        volume.flush()?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "recover_tests.rs"]
mod tests;
