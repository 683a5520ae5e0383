//! Compares the scan's results with the journals' end records.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use keepup_error::Cause;

use super::coverage::{Coverage, Location};
use super::report::{Ending, Fault, Faults, Stop, StreamReport};
use crate::info::archives;
use crate::journal::{DamagedLine, JOURNAL_FILE};
use crate::manifest::{MANIFEST_FILE, Placement};
use crate::master::check_master;
use crate::reader::Recording;
use crate::retention::{DRAINED_FILE, Drained};
use crate::volume::{Segment, Volume};

/// How the run ended.
pub(super) fn ending(recording: &Recording) -> Ending {
    let ends = || recording.volumes().iter().map(Volume::end);
    if !recording.is_ended() {
        let open = recording.volumes().iter().flat_map(Volume::segments).filter(|s| !s.is_ended());
        let stop = |s: &Segment| Stop { file: s.path.clone(), durable_bytes: s.readable_bytes() };
        return Ending::NotEnded { stops: open.map(stop).collect() };
    }
    match ends().flatten().find(|end| !end.clean) {
        Some(end) => Ending::Unclean { reason: end.reason.clone() },
        None => Ending::Clean,
    }
}

/// Checks the files beside segments and journals. Returns those without a checksum, of earlier versions.
pub(super) fn check_other_files(recording: &Recording, faults: &mut Faults) -> Vec<PathBuf> {
    let mut fault = |file: PathBuf, what: String| {
        faults.push(Fault { file, offset: 0, stream: None, event: None, what });
    };
    let mut unchecked = Vec::new();
    for volume in recording.volumes() {
        if volume.has_begun() && !volume.has_manifest_sum() {
            unchecked.push(volume.dir().join(MANIFEST_FILE));
        }
        if let Err(error) = Drained::read(volume.dir(), volume.manifest().recording) {
            fault(volume.dir().join(DRAINED_FILE), Cause::of(&error).to_text());
        }
    }
    for (path, what) in archives(recording).faults() {
        fault(path.to_path_buf(), what.to_owned());
    }
    let master = recording.master_path();
    if recording.has_master() {
        match check_master(&master) {
            Ok(Some(())) => {}
            Ok(None) if recording.volumes().iter().any(Volume::has_manifest_sum) => {
                fault(master, "its checksum is missing".to_owned());
            }
            Ok(None) => unchecked.push(master),
            Err((file, what)) => fault(file, what),
        }
    }
    unchecked
}

/// First block number of a stream from which blocks may have been lost with a volume while later
/// ones are durable on another. `None` if the run has ended on every volume with blocks of the
/// stream.
pub(super) fn settled_blocks(recording: &Recording, coverage: &Coverage) -> Option<u64> {
    let ends = coverage.block_ends();
    let is_free = recording.manifest().placement == Placement::Free;
    let open = recording.volumes().iter().filter(|volume| volume.end().is_none());
    let open = open.map(|volume| volume.manifest().volume_index);
    // A pinned stream is on one volume; which one is unknown while no block of it is durable.
    let may_have = open.filter(|volume| is_free || ends.is_empty() || ends.contains_key(volume));
    may_have.map(|volume| ends.get(&volume).copied().unwrap_or(0)).min()
}

/// The file of a location; the first journal when a finding has none.
pub(super) fn location_path(recording: &Recording, place: Option<Location>) -> PathBuf {
    let volumes = recording.volumes();
    let segment = place.and_then(|place| {
        let volume = volumes.get(place.volume as usize)?;
        volume.segment(place.segment)
    });
    segment.map_or_else(|| volumes[0].dir().join(JOURNAL_FILE), |segment| segment.path.clone())
}

/// Checks end records, counts, and files without a journal entry.
pub(super) fn check_endings(
    recording: &Recording,
    streams: &BTreeMap<u32, StreamReport>,
    faults: &mut Faults,
) {
    for DamagedLine { file, line, offset, what } in recording.damaged_lines() {
        let what = if *line == 0 { what.clone() } else { format!("line {line} cannot be used: {what}") };
        faults.push(Fault { file: file.clone(), offset: *offset, stream: None, event: None, what });
    }
    for volume in recording.volumes() {
        check_files(volume, faults);
    }
    let mut segments = recording.volumes().iter().flat_map(Volume::segments);
    if !recording.is_ended() || !segments.all(Segment::is_ended) {
        return;
    }
    for volume in recording.volumes() {
        check_counts(volume, streams, faults);
    }
}

/// After a clean end every segment of a working volume has ended, and no other file exists.
fn check_files(volume: &Volume, faults: &mut Faults) {
    let Some(end) = volume.end() else {
        return;
    };
    let mut fault = |file: PathBuf, what: String| {
        faults.push(Fault { file, offset: 0, stream: None, event: None, what });
    };
    if let Some(tail) = volume.torn_tail() {
        let what = format!("{} bytes stand behind the end record", tail.bytes);
        fault(volume.dir().join(JOURNAL_FILE), what);
    }
    if !end.clean {
        return;
    }
    let open = volume.segments().iter().filter(|segment| !segment.is_ended() && !volume.has_failed());
    for segment in open {
        fault(segment.path.clone(), "the run ended cleanly, and the segment did not".to_owned());
    }
    let entries = match fs::read_dir(volume.dir()) {
        Ok(entries) => entries,
        Err(error) => return fault(volume.dir().to_path_buf(), format!("cannot list it: {error}")),
    };
    let mut unknown: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    unknown.retain(|path| {
        let is_segment = path.extension().is_some_and(|extension| extension == "mcap");
        is_segment && !volume.segments().iter().any(|segment| segment.path == *path)
    });
    unknown.sort();
    for path in unknown {
        fault(path, "no journal names this segment".to_owned());
    }
}

/// Compares the end record's counts with the blocks found.
fn check_counts(volume: &Volume, streams: &BTreeMap<u32, StreamReport>, faults: &mut Faults) {
    let ends = volume.end().map(|end| &end.streams[..]).unwrap_or_default();
    let stored: BTreeMap<u32, _> = ends.iter().map(|end| (end.id, end.durable)).collect();
    for &stream in streams.keys().chain(stored.keys().filter(|id| !streams.contains_key(id))) {
        let mut found = streams.get(&stream).map(|report| report.recorded).unwrap_or_default();
        found += streams.get(&stream).map(|report| report.removed).unwrap_or_default();
        let stored = stored.get(&stream).copied().unwrap_or_default();
        if found != stored {
            let what = format!(
                "the journal's end record has {} events, {} bytes; the segments have {} events, {} bytes",
                stored.events, stored.bytes, found.events, found.bytes
            );
            let file = volume.dir().join(JOURNAL_FILE);
            faults.push(Fault { file, offset: 0, stream: Some(stream), event: None, what });
        }
    }
}
