//! Recovery: what a crash, a full disk or a pulled volume left becomes a whole recording again.
//!
//! Segments that were not sealed are sealed with every block that is provably whole; what is missing is
//! entered in the journals, with its cause; then the run gets its end. Invariants: a sealed segment is
//! never touched; nothing that was acknowledged is cut off; a second recovery finds nothing to do; while
//! the recorder is still at work nothing is done at all.
mod account;
mod copies;
pub(crate) mod scan;
mod volume;

use std::collections::BTreeMap;
use std::path::PathBuf;

use keepup_stream::ledger::{Count, Gap, LossCause};
use serde::Serialize;

use self::account::{Account, account};
use self::volume::OpenVolume;
use crate::error::RecordingError;
use crate::id::Id;
use crate::journal::{JournalRecord, StreamEnd};
use crate::master::write_master;
use crate::reader::{Recording, locate_present};

/// Reason that the end record of a recovered recording gives.
const REASON: &str = "cut off, and recovered";

/// What recovery found and did.
#[derive(Clone, Debug, Serialize)]
pub struct RecoverReport {
    /// Name of the recording.
    pub name: String,
    /// Its identity.
    pub recording: Id,
    /// Whether anything had to be done.
    pub changed: bool,
    /// Whether all of it is sealed, accounted for and undamaged now, as far as recovery has looked.
    pub complete: bool,
    /// Volumes that were not found, as they were given when it was recorded.
    pub missing_volumes: Vec<PathBuf>,
    /// What was done on each volume.
    pub volumes: Vec<VolumeRecovery>,
    /// What there is of each stream, by id; empty when a volume is missing, or blocks are damaged.
    pub streams: BTreeMap<u32, StreamRecovery>,
    /// The NeXus master, when it was written.
    pub master: Option<PathBuf>,
}

/// What was done on one volume.
#[derive(Clone, Debug, Default, Serialize)]
pub struct VolumeRecovery {
    /// The recording's directory on it.
    pub directory: PathBuf,
    /// Segments sealed now.
    pub sealed: Vec<SegmentRecovery>,
    /// Files of segments in which nothing was written, removed.
    pub removed: Vec<PathBuf>,
    /// Bytes of a torn line cut off from the journal.
    pub journal_cut_bytes: u64,
    /// What is damaged, and was left as it is.
    pub faults: Vec<String>,
}

/// One segment sealed by recovery.
#[derive(Clone, Debug, Serialize)]
pub struct SegmentRecovery {
    /// Its file.
    pub path: PathBuf,
    /// Whole blocks in it.
    pub blocks: u64,
    /// Of these, blocks behind the journal's last watermark.
    pub blocks_behind: u64,
    /// Blocks behind those that were left out, because another volume has them as well: their writes had
    /// failed, were done again there, and got here after all.
    pub duplicates: u64,
    /// Where the blocks end, bytes.
    pub data_bytes: u64,
}

/// What there is of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamRecovery {
    /// Its name.
    pub name: String,
    /// Events in the recording.
    pub recorded: Count,
    /// Events that were removed because no more was to be kept.
    pub removed: Count,
    /// Events that are not there, by cause. Those after the last one recorded are not known of.
    pub missing: BTreeMap<LossCause, u64>,
}

/// Recovers the recording that `dirs` belong to, found as in [`Recording::open`]; volumes that are not
/// found are told of, and the others are sealed.
///
/// # Errors
/// When the recording is still being made or may be, a manifest cannot be used, or a journal is missing or
/// of another volume. Nothing is lost then.
pub fn recover(dirs: &[PathBuf]) -> Result<RecoverReport, RecordingError> {
    recover_at(dirs, false)
}

/// The same where the file system has no locks, and the caller knows that nobody records there.
///
/// # Errors
/// As [`recover`].
pub fn recover_without_locks(dirs: &[PathBuf]) -> Result<RecoverReport, RecordingError> {
    recover_at(dirs, true)
}

fn recover_at(dirs: &[PathBuf], without_locks: bool) -> Result<RecoverReport, RecordingError> {
    let (places, missing_volumes) = locate_present(dirs)?;
    let mut volumes = Vec::new();
    for (dir, manifest) in places {
        volumes.push(OpenVolume::open(&dir, manifest, without_locks)?);
    }
    volumes.iter_mut().for_each(OpenVolume::scan_all);
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
                volumes[volume].report.faults.push(error.to_string());
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

/// Enters what is missing and the end in every journal that lacks them.
fn conclude(volumes: &mut [OpenVolume], account: &Account) -> Result<(), RecordingError> {
    let ends = volumes.iter().all(|volume| volume.volume.end().is_some() && !volume.is_changed);
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
