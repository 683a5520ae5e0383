//! Rules for the content of a set.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use keepup_error::Cause;

use super::{RecordingSet, SetEnd, SetRecording};
use crate::manifest::is_file_name;

const RECORDINGS_MAX: usize = 4096;
const DIRECTORIES_MAX: usize = 256;
const MOVES_MAX: usize = 65_536;
/// Longest name of a host or a fleet, bytes: as in a fleet file.
const HOST_BYTES_MAX: usize = 63;
/// Longest path of Linux without its final zero, bytes.
const PATH_BYTES_MAX: usize = 4095;
const WHY_BYTES_MAX: usize = 4096;

pub(super) fn check(set: &RecordingSet) -> Result<(), Cause> {
    if !is_file_name(&set.name) {
        return Err("its name is not a file name".into());
    }
    if !is_host(&set.fleet) {
        return Err(invalid("fleet", &set.fleet));
    }
    limit("recordings", set.recordings.len(), RECORDINGS_MAX)?;
    limit("moves", set.moves.len(), MOVES_MAX)?;
    if set.recordings.is_empty() {
        return Err("it has no recordings".into());
    }
    let (mut hosts, mut ids) = (BTreeSet::new(), BTreeSet::new());
    for recording in &set.recordings {
        check_recording(recording)?;
        if !hosts.insert(recording.host.as_str()) {
            return Err(format!("two recordings have the host {:?}", recording.host).into());
        }
        if recording.id.is_some_and(|id| !ids.insert(id)) {
            return Err(format!("host {}: its recording is also of another host", recording.host).into());
        }
    }
    for change in &set.moves {
        let unknown = [Some(&change.from), change.to.as_ref()].into_iter().flatten();
        if let Some(host) = unknown.into_iter().find(|host| !hosts.contains(host.as_str())) {
            return Err(format!("a move names the host {host:?}, which has no entry").into());
        }
        if change.to.as_ref() == Some(&change.from) {
            return Err(format!("a move goes from the host {:?} to itself", change.from).into());
        }
    }
    Ok(())
}

fn check_recording(recording: &SetRecording) -> Result<(), Cause> {
    let SetRecording { host, directories, end, why, .. } = recording;
    if !is_host(host) {
        return Err(invalid("host", host));
    }
    limit(&format!("directories of host {host}"), directories.len(), DIRECTORIES_MAX)?;
    if directories.is_empty() && *end != SetEnd::Absent {
        return Err(format!("host {host}: it has no directories").into());
    }
    if let Some(directory) = directories.iter().find(|directory| !is_path(directory)) {
        return Err(format!("host {host}: {directory:?} is not a valid path").into());
    }
    if why.as_ref().is_some_and(|why| why.len() > WHY_BYTES_MAX) {
        return Err(format!("host {host}: the reason is longer than {WHY_BYTES_MAX} bytes").into());
    }
    Ok(())
}

fn limit(what: &str, count: usize, max: usize) -> Result<(), Cause> {
    if count > max { Err(format!("{count} {what}, limit {max}").into()) } else { Ok(()) }
}

/// Whether this may be the name of a host or fleet, as in a fleet file.
fn is_host(name: &str) -> bool {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_good = name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(is_inside);
    is_good && name.len() <= HOST_BYTES_MAX
}

fn invalid(what: &str, name: &str) -> Cause {
    let hint = format!(
        "1 to {HOST_BYTES_MAX} letters, digits, dots, underscores and hyphens, with a letter or digit first"
    );
    Cause::new(format!("{name:?} is not a valid name of a {what}")).with_hint(hint)
}

fn is_path(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    (1..=PATH_BYTES_MAX).contains(&bytes.len()) && !bytes.contains(&0)
}
