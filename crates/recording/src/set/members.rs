//! Opens the recordings of a set that are on this machine.
//!
//! Invariant: a recording is used for a host only if its identity allows it. Paths are often the same on
//! several hosts, so a directory may have the recording of another host.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use keepup_error::Cause;

use super::account::{DigestRequest, DigestResult, Digests, digest};
use super::{RecordingSet, SET_FILE, SetEnd, SetRecording};
use crate::error::RecordingError;
use crate::id::Id;
use crate::manifest::{MANIFEST_FILE, Manifest};
use crate::merged::{About, MergedRecording};
use crate::reader::Recording;

/// Directories on this machine of the recordings of hosts, by host.
pub type LocalDirectories = BTreeMap<String, Vec<PathBuf>>;

/// A set with the recordings that are here.
#[derive(Clone, Debug)]
pub struct OpenSet {
    /// The set.
    pub set: RecordingSet,
    /// One for each entry of the set, in its order.
    pub members: Vec<SetMember>,
    /// Whether the set file has a checksum, as far as it was read here.
    pub has_checksum: bool,
}

/// An entry of a set, seen from this machine.
#[derive(Clone, Debug)]
pub struct SetMember {
    /// The entry.
    pub entry: SetRecording,
    /// Its directories that were found here.
    pub directories: Vec<PathBuf>,
    /// State on this machine.
    pub presence: Presence,
}

/// Whether the recording of a host can be read on this machine.
#[derive(Clone, Debug)]
pub enum Presence {
    /// It is here; volumes may be missing.
    Here(Box<Recording>),
    /// It is not here, with the reason.
    NotHere(String),
    /// It is here and cannot be opened.
    Unusable(Cause),
    /// The host made none.
    Absent,
}

/// The set file that `path` names: the file itself, or [`SET_FILE`] in a directory that is not a recording.
pub fn set_path(path: &Path) -> Option<PathBuf> {
    let exists = |path: &Path| fs::symlink_metadata(path).is_ok();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.ends_with(SET_FILE) && !path.is_dir() {
        return exists(path).then(|| path.to_path_buf());
    }
    let inside = path.join(SET_FILE);
    (exists(&inside) && !exists(&path.join(MANIFEST_FILE))).then_some(inside)
}

impl OpenSet {
    /// Reads the set file `path` and opens the recordings that are here: in the directories of `at`, and for
    /// other hosts in those of the file.
    ///
    /// # Errors
    /// The set file cannot be read. Recordings that cannot be opened are listed.
    pub fn open(path: &Path, at: &LocalDirectories) -> Result<OpenSet, RecordingError> {
        let (set, has_checksum) = RecordingSet::read_checked(path)?;
        let home = path.parent().filter(|home| !home.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(OpenSet { has_checksum, ..OpenSet::open_in(home, set, at, &[]) })
    }

    /// The same for a set in the directory `home`. Recordings with an identity of `taken` are those of other
    /// hosts.
    pub fn open_in(home: &Path, set: RecordingSet, at: &LocalDirectories, taken: &[Id]) -> OpenSet {
        let directories = |entry: &SetRecording| match at.get(&entry.host) {
            Some(local) => local.clone(),
            None => entry.directories.iter().map(|directory| home.join(directory)).collect(),
        };
        // Those with a known identity first: the others get what is left.
        let mut order: Vec<usize> = (0..set.recordings.len()).collect();
        order.sort_by_key(|at| set.recordings[*at].id.is_none());
        let known = set.recordings.iter().filter_map(|entry| entry.id);
        let mut taken: BTreeSet<Id> = known.chain(taken.iter().copied()).collect();
        let mut members: BTreeMap<usize, SetMember> = BTreeMap::new();
        for at in order {
            let entry = &set.recordings[at];
            let member = SetMember::open(entry, &directories(entry), &set, &taken);
            taken.extend(member.recording().map(|recording| recording.manifest().recording));
            members.insert(at, member);
        }
        OpenSet { members: members.into_values().collect(), set, has_checksum: true }
    }

    /// The recordings that are here, with their hosts.
    pub fn recordings(&self) -> impl Iterator<Item = (&SetMember, &Recording)> {
        self.members.iter().filter_map(|member| Some((member, member.recording()?)))
    }

    /// Hosts with a recording that is not, or not completely, here.
    pub fn incomplete_hosts(&self) -> Vec<String> {
        let is_incomplete = |member: &&SetMember| match &member.presence {
            Presence::Here(recording) => !recording.missing().is_empty(),
            Presence::NotHere(_) | Presence::Unusable(_) => true,
            Presence::Absent => false,
        };
        self.members.iter().filter(is_incomplete).map(|member| member.entry.host.clone()).collect()
    }

    /// The recordings that are here as one, each with its host as the label.
    ///
    /// # Errors
    /// Two recordings declare a stream of the same id differently.
    pub fn merged(&self) -> Result<MergedRecording<'_>, RecordingError> {
        let RecordingSet { name, run, id, created_unix_ns, .. } = self.set.clone();
        let mut metadata = BTreeMap::new();
        for (_, recording) in self.recordings() {
            for (key, value) in &recording.manifest().metadata {
                metadata.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        let about = About { name, id, created_unix_ns, run, metadata };
        let parts = self.recordings().map(|(member, recording)| (member.entry.host.clone(), recording));
        MergedRecording::new(about, parts.collect())
    }
}

impl Digests for &OpenSet {
    fn digests(
        &mut self,
        requests: &BTreeMap<&str, Vec<DigestRequest>>,
    ) -> BTreeMap<String, Vec<DigestResult>> {
        let found = self.recordings().filter_map(|(member, recording)| {
            let host = &member.entry.host;
            Some((host.clone(), digest(recording, requests.get(host.as_str())?)))
        });
        found.collect()
    }
}

impl SetMember {
    fn open(entry: &SetRecording, directories: &[PathBuf], set: &RecordingSet, taken: &BTreeSet<Id>) -> Self {
        let member = |directories, presence| SetMember { entry: entry.clone(), directories, presence };
        let (mut found, mut others) = (Vec::new(), Vec::new());
        for directory in directories {
            match fs::symlink_metadata(directory.join(MANIFEST_FILE)) {
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                    others.push(format!("no recording in {}", directory.display()));
                    continue;
                }
                Err(error) => {
                    others.push(format!("cannot inspect {}: {error}", directory.display()));
                    continue;
                }
            }
            let manifest = match Manifest::read(directory) {
                Ok(manifest) => manifest,
                Err(error) => return member(Vec::new(), Presence::Unusable(Cause::of(&error))),
            };
            match is_of(entry, &manifest, set, taken) {
                true => found.push(directory.clone()),
                false => others.push(format!("{} has another recording", directory.display())),
            }
        }
        let presence = match (found.is_empty(), entry.end) {
            (true, SetEnd::Absent) => Presence::Absent,
            (true, _) => Presence::NotHere(others.join("; ")),
            (false, _) => match Recording::open_present(&found) {
                Ok(recording) => Presence::Here(Box::new(recording)),
                Err(error) => Presence::Unusable(Cause::of(&error)),
            },
        };
        member(found, presence)
    }

    /// The recording, if it is here.
    pub fn recording(&self) -> Option<&Recording> {
        match &self.presence {
            Presence::Here(recording) => Some(recording),
            Presence::NotHere(_) | Presence::Unusable(_) | Presence::Absent => None,
        }
    }
}

/// Whether this can be the recording of the entry.
fn is_of(entry: &SetRecording, manifest: &Manifest, set: &RecordingSet, taken: &BTreeSet<Id>) -> bool {
    match entry.id {
        Some(id) => manifest.recording == id,
        None => {
            let is_of_run = set.run.is_none_or(|run| manifest.run == Some(run));
            is_of_run && manifest.name == set.name && !taken.contains(&manifest.recording)
        }
    }
}

#[cfg(test)]
#[path = "members_tests.rs"]
mod tests;
