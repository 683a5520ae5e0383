//! `keepup-set.json`: the recordings that belong to one run on several hosts.
//!
//! Invariants: the file is replaced as a whole; a file with any other content, or one that was changed after
//! it was written, is refused; host names and paths are checked before they are used.

mod account;
mod check;
mod members;
mod report;

pub use account::{
    Digest, DigestRequest, DigestResult, Digests, RecordingFacts, SetAccount, SetStream, digest,
};
pub use members::{LocalDirectories, OpenSet, Presence, SetMember, set_path};
pub use report::{
    MemberState, SetInfo, SetMemberInfo, SetMemberRecovery, SetMemberVerification, SetRecovery,
    SetVerification, describe_member, describe_set, recover_member, recover_set, verify_member,
    verify_options, verify_set,
};

use std::io::Write;
use std::path::{Path, PathBuf};

use keepup_error::Cause;
use serde::{Deserialize, Serialize};

use crate::crc::crc32;
use crate::error::RecordingError;
use crate::files::replace;
use crate::id::Id;

/// Name of the file.
pub const SET_FILE: &str = "keepup-set.json";

/// Value of `format` in the file.
const FORMAT: &str = "keepup-set";

/// Version of the format.
const VERSION: u16 = 1;

/// Longest file, bytes.
const SET_BYTES_MAX: u64 = 4 << 20;

/// Recordings of one run on several hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingSet {
    /// Name of the run: a file name of 1 to 200 bytes.
    pub name: String,
    /// Run number, where runs are numbered.
    pub run: Option<u64>,
    /// Identity of the set.
    pub id: Id,
    /// Creation time, ns since the Unix epoch.
    pub created_unix_ns: u64,
    /// Name of the fleet, as in its fleet file.
    pub fleet: String,
    /// One entry for each recorder of the run, also for those without a recording. 1 to 4096; host names are
    /// unique.
    pub recordings: Vec<SetRecording>,
    /// Streams that moved from one recorder to another during the run, in order. At most 65,536.
    pub moves: Vec<SetMove>,
}

/// The recording of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetRecording {
    /// Name of the host, as in the fleet file: 1 to 63 ASCII letters, digits, `.`, `_` and `-`, with a letter
    /// or digit first.
    pub host: String,
    /// Identity of the recording; `None` if the controller never learned it, or there is none.
    pub id: Option<Id>,
    /// Directory of the recording on each volume of the host, in the order of the volumes. A relative path
    /// starts at the directory of the set file. Empty only if `end` is [`SetEnd::Absent`]; at most 256.
    pub directories: Vec<PathBuf>,
    /// End of the recording, as known to the controller.
    pub end: SetEnd,
    /// Reason for an end that is not [`SetEnd::Finished`]: at most 4096 bytes.
    pub why: Option<String>,
}

/// End of a recording, as known to the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SetEnd {
    /// The recorder ended as requested.
    Finished,
    /// The recorder ended with an error.
    Failed,
    /// The controller lost the recorder during the run.
    Lost,
    /// The host made no recording.
    Absent,
}

/// Move of the streams of a lost recorder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetMove {
    /// Host that had the streams; one of the set's.
    pub from: String,
    /// Host that took them, another one of the set's; `None`: they were distributed over the remaining
    /// recorders.
    pub to: Option<String>,
    /// Epoch of the fleet that began with the move.
    pub epoch: u64,
    /// Time of the move, ns since the Unix epoch.
    pub at_unix_ns: u64,
}

/// Content of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    format: String,
    version: u16,
    name: String,
    run: Option<u64>,
    id: Id,
    created_unix_ns: u64,
    fleet: String,
    recordings: Vec<SetRecording>,
    moves: Vec<SetMove>,
    /// CRC-32 of the other fields, as compact JSON; earlier versions wrote none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
}

impl Form {
    /// Checksum of the other fields. White space and the order of the fields in the file do not matter.
    fn checksum_of_content(&self) -> serde_json::Result<String> {
        let Form { format, version, name, run, id, created_unix_ns, fleet, recordings, moves, .. } = self;
        let content = (format, version, name, run, id, created_unix_ns, fleet, recordings, moves);
        Ok(format!("crc32:{:08x}", crc32(&serde_json::to_vec(&content)?)))
    }
}

impl RecordingSet {
    /// Writes the set to the file `path`, usually [`SET_FILE`] in a directory of the run. Replaces an
    /// existing file atomically; the new one is on stable storage when this returns.
    ///
    /// # Errors
    /// The set is invalid, as by [`validate`](Self::validate), or the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), RecordingError> {
        let fault = |what: Cause| RecordingError::Manifest { path: path.to_path_buf(), what };
        let text = self.to_text().map_err(fault)?;
        replace(path, |mut file| file.write_all(text.as_bytes())).map_err(RecordingError::io("write", path))
    }

    /// Text of the file.
    ///
    /// # Errors
    /// The set is invalid, as by [`validate`](Self::validate), or too long.
    pub fn to_text(&self) -> Result<String, Cause> {
        self.validate()?;
        let mut form = self.to_form();
        form.checksum = Some(form.checksum_of_content().map_err(|error| error.to_string())?);
        let mut text = serde_json::to_string_pretty(&form).map_err(|error| error.to_string())?;
        text.push('\n');
        if text.len() as u64 > SET_BYTES_MAX { Err(too_long()) } else { Ok(text) }
    }

    /// Reads the file `path`.
    ///
    /// # Errors
    /// There is no such regular file, it is longer than 4 MiB, or it is not a valid set of this version.
    pub fn read(path: &Path) -> Result<RecordingSet, RecordingError> {
        RecordingSet::read_checked(path).map(|(set, _)| set)
    }

    /// The same, and whether the file has a checksum.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_checked(path: &Path) -> Result<(RecordingSet, bool), RecordingError> {
        let text = keepup_sys::regular::read_text(path, SET_BYTES_MAX)
            .map_err(RecordingError::open("read the recording set", path))?;
        let fault = |what| RecordingError::Manifest { path: path.to_path_buf(), what };
        RecordingSet::parse_checked(&text).map_err(fault)
    }

    /// Parses and checks the text of a set file.
    ///
    /// # Errors
    /// The problem.
    pub fn parse(text: &str) -> Result<RecordingSet, Cause> {
        RecordingSet::parse_checked(text).map(|(set, _)| set)
    }

    fn parse_checked(text: &str) -> Result<(RecordingSet, bool), Cause> {
        if text.len() as u64 > SET_BYTES_MAX {
            return Err(too_long());
        }
        let form: Form = match serde_json::from_str(text) {
            Ok(form) => form,
            Err(error) => return Err(other_format(text).unwrap_or_else(|| error.to_string().into())),
        };
        if let Some(what) = other_format(text) {
            return Err(what);
        }
        let sum = form.checksum_of_content().map_err(|error| error.to_string())?;
        if form.checksum.as_ref().is_some_and(|written| *written != sum) {
            let hint = "restore it from a copy, or remove its field `checksum` to use it as it is";
            let what = "it was changed after it was written, its checksum does not match";
            return Err(Cause::new(what).with_hint(hint));
        }
        let has_checksum = form.checksum.is_some();
        let Form { name, run, id, created_unix_ns, fleet, recordings, moves, .. } = form;
        let set = RecordingSet { name, run, id, created_unix_ns, fleet, recordings, moves };
        set.validate()?;
        Ok((set, has_checksum))
    }

    /// Checks names, paths, lengths and references.
    ///
    /// # Errors
    /// The problem.
    pub fn validate(&self) -> Result<(), Cause> {
        check::check(self)
    }

    fn to_form(&self) -> Form {
        let RecordingSet { name, run, id, created_unix_ns, fleet, recordings, moves } = self.clone();
        let (format, version) = (FORMAT.to_owned(), VERSION);
        Form { format, version, name, run, id, created_unix_ns, fleet, recordings, moves, checksum: None }
    }
}

fn too_long() -> Cause {
    format!("it is longer than {SET_BYTES_MAX} bytes").into()
}

/// The problem of a file of another format or version, whatever else it contains.
fn other_format(text: &str) -> Option<Cause> {
    #[derive(Deserialize)]
    struct Head {
        format: Option<String>,
        version: Option<u64>,
    }
    let head: Head = serde_json::from_str(text).ok()?;
    if head.format.as_deref() != Some(FORMAT) {
        Some("it is not a recording set".into())
    } else if head.version != Some(u64::from(VERSION)) {
        let hint = "use the keepup that wrote this recording set";
        Some(Cause::new("it has another format version").with_hint(hint))
    } else {
        None
    }
}

#[cfg(test)]
mod export_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
#[path = "set_tests.rs"]
mod tests;
