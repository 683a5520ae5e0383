//! Why a recording cannot be archived or restored.
use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use keepup_error::{Cause, Diagnostic, ErrorClass};
use keepup_recording::error::RecordingError;
use keepup_sys::SysError;

/// Longest part of a server's answer that is quoted, characters.
const QUOTED_MAX: usize = 300;
/// Codes of a server that refuses the credentials with another status than 401 or 403.
const CREDENTIAL_CODES: [&str; 3] = ["ExpiredToken", "InvalidToken", "TokenRefreshRequired"];
/// Codes of a server that finds the time of a request wrong.
const TIME_CODES: [&str; 3] = ["RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture"];

/// An error of a transfer to or from an archive.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// An address that names no archive.
    #[error("cannot use {url} as an archive: {what}")]
    Url {
        /// The address.
        url: String,
        /// Problem.
        what: Cause,
    },
    /// The store refuses a request or does not answer.
    #[error("cannot {doing} {object}: {what}")]
    Store {
        /// Operation that failed.
        doing: &'static str,
        /// Address of the object.
        object: String,
        /// Answer of the server.
        what: Cause,
    },
    /// The store holds other bytes than were sent.
    #[error("cannot {doing} {object}: checksum mismatch: {what}")]
    Mismatch {
        /// Operation that failed.
        doing: &'static str,
        /// Address of the object.
        object: String,
        /// Difference.
        what: String,
    },
    /// Another recording has the name in this archive.
    #[error("cannot archive to {url}: it has another recording of this name")]
    Taken {
        /// Address of the other recording.
        url: String,
    },
    /// A recording without its conclusion.
    #[error("cannot complete the archive of {}: the recording was cut off", dir.display())]
    CutOff {
        /// Directory of the recording.
        dir: PathBuf,
    },
    /// A segment that is neither in the archive nor on the volume.
    #[error(
        "cannot complete the archive of {}: segment {segment} is neither there nor on the volume",
        dir.display()
    )]
    Removed {
        /// Directory of the recording on the volume.
        dir: PathBuf,
        /// Number of the segment.
        segment: u32,
    },
    /// A segment that the archive had confirmed and no longer has, nor has the volume.
    #[error(
        "cannot complete the archive of {}: segment {segment} has changed there, and is not on the volume",
        dir.display()
    )]
    Vanished {
        /// Directory of the recording on the volume.
        dir: PathBuf,
        /// Number of the segment.
        segment: u32,
    },
    /// A file that changed while it was read.
    #[error("cannot archive {}: it changed while it was read", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// No inventory at the address.
    #[error("cannot restore {url}: it has no inventory ({file})", file = crate::inventory::INVENTORY_FILE)]
    NotAnArchive {
        /// The address.
        url: String,
    },
    /// An inventory that cannot be used.
    #[error("cannot use the inventory of {url}: {what}")]
    Inventory {
        /// Address of the archive.
        url: String,
        /// Problem.
        what: String,
    },
    /// What the store returns in place of a manifest.
    #[error("cannot use {url}: it is not a manifest: {what}")]
    NotAManifest {
        /// Address of the object.
        url: String,
        /// Problem.
        what: String,
    },
    /// The directory to restore to is in use.
    #[error("cannot restore to {}: {what}", path.display())]
    Occupied {
        /// The directory.
        path: PathBuf,
        /// What is in it.
        what: String,
    },
    /// The recording does not fit.
    #[error(
        "cannot restore to {}: {needed_bytes} bytes are needed and {free_bytes} are free",
        path.display()
    )]
    Space {
        /// The directory.
        path: PathBuf,
        /// Bytes that are still to be written.
        needed_bytes: u64,
        /// Free bytes.
        free_bytes: u64,
    },
    /// Another process copies the recording to the same archive.
    #[error("cannot drain to {to}: another drain{} copies this recording there", of_process(*holder))]
    Busy {
        /// The archive.
        to: String,
        /// Id of the other process, if known.
        holder: Option<u32>,
    },
    /// A state file that cannot be used.
    #[error("cannot use {}: {what}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// Problem.
        what: String,
    },
    /// A system call failed.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// Operation that failed.
        doing: &'static str,
        /// File or directory concerned.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// Threads for the transfer cannot be started.
    #[error("cannot start the threads of the transfer: {source}")]
    Threads {
        /// Cause.
        source: io::Error,
    },
    /// Stopped by the user.
    #[error("the transfer was stopped")]
    Stopped,
    /// The recording cannot be read.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// A file or a disk failed.
    #[error(transparent)]
    Sys(#[from] SysError),
}

/// " (process N)", if it is known.
fn of_process(id: Option<u32>) -> String {
    id.map(|id| format!(" (process {id})")).unwrap_or_default()
}

impl Diagnostic for ArchiveError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Url { .. } | Self::NotAnArchive { .. } => ErrorClass::Usage,
            Self::Taken { .. } | Self::Occupied { .. } => ErrorClass::Refused,
            Self::Busy { .. }
            | Self::NotAManifest { .. }
            | Self::Store { .. }
            | Self::Space { .. }
            | Self::Io { .. }
            | Self::Threads { .. } => ErrorClass::Environment,
            Self::Mismatch { .. }
            | Self::CutOff { .. }
            | Self::Removed { .. }
            | Self::Vanished { .. }
            | Self::Changed { .. }
            | Self::Inventory { .. }
            | Self::State { .. }
            | Self::Stopped => ErrorClass::Failed,
            Self::Recording(error) => error.class(),
            Self::Sys(error) => error.class(),
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Self::Url { what, .. } | Self::Store { what, .. } => return what.hint(),
            Self::Recording(error) => return error.hint(),
            Self::Sys(error) => return error.hint(),
            Self::Taken { .. } => "another prefix in --to; nothing of another recording is ever overwritten",
            Self::CutOff { .. } => "keepup recover, then repeat this command",
            Self::Removed { .. } => {
                "record --keep-until archived keeps segments until every archive that was begun has them"
            }
            Self::Vanished { .. } => "restore the object from an older version or a backup of the bucket",
            Self::NotAnArchive { .. } => {
                "give URL/NAME of a recording; an incomplete archive is completed by keepup drain"
            }
            Self::Occupied { .. } => "choose a new or an empty directory; nothing is ever overwritten",
            Self::NotAManifest { .. } => "check AWS_ENDPOINT_URL and the proxy (HTTPS_PROXY, NO_PROXY)",
            Self::Busy { .. } => "wait until it has ended; a drain that was killed holds nothing",
            Self::State { .. } => "remove the file; everything is then sent again",
            Self::Stopped => "repeat the command to continue",
            Self::Mismatch { .. }
            | Self::Changed { .. }
            | Self::Inventory { .. }
            | Self::Space { .. }
            | Self::Io { .. }
            | Self::Threads { .. } => return None,
        };
        Some(hint.into())
    }
}

impl ArchiveError {
    /// [`ArchiveError::Io`], for `map_err`.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ArchiveError {
        let path = path.to_path_buf();
        move |source| ArchiveError::Io { doing, path, source }
    }
}

/// Whether the store refuses the credentials.
pub(crate) fn is_denied(error: &object_store::Error) -> bool {
    use object_store::Error::{PermissionDenied, Unauthenticated};
    let has_code = |text: String| CREDENTIAL_CODES.iter().any(|code| text.contains(code));
    matches!(error, PermissionDenied { .. } | Unauthenticated { .. }) || has_code(error.to_string())
}

/// Whether the signature does not match: the key is wrong, or signed data changed on the way.
pub(crate) fn has_wrong_signature(error: &object_store::Error) -> bool {
    error.to_string().contains("SignatureDoesNotMatch")
}

/// Whether the store finds the time of the request wrong: the clocks differ, or the request waited too long.
pub(crate) fn has_wrong_time(error: &object_store::Error) -> bool {
    let text = error.to_string();
    TIME_CODES.iter().any(|code| text.contains(code))
}

/// Whether there is no such object, in a bucket that exists.
pub(crate) fn is_absent(error: &object_store::Error) -> bool {
    matches!(error, object_store::Error::NotFound { .. }) && !error.to_string().contains("NoSuchBucket")
}

/// Whether another attempt is of no use: the store refuses the request as it is, whenever it is signed.
pub(crate) fn is_final(error: &object_store::Error) -> bool {
    is_denied(error) && !has_wrong_signature(error) && !has_wrong_time(error)
}

/// Whether a server's answer refuses the checksum of a request.
pub(crate) fn is_checksum_refused(answer: &str) -> bool {
    let codes = ["InvalidArgument", "InvalidRequest", "NotImplemented", "InvalidChecksum"];
    let has_code = codes.iter().any(|code| answer.contains(&format!("<Code>{code}</Code>")));
    has_code && answer.to_lowercase().contains("checksum")
}

/// What to set if a server's answer names another region.
fn region_hint(answer: &str) -> Option<String> {
    if !answer.contains("without LOCATION") && !answer.contains("AuthorizationHeaderMalformed") {
        return None;
    }
    let expected = answer.split_once("expecting '").and_then(|(_, rest)| Some(rest.split_once('\'')?.0));
    let is_region = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    Some(format!("AWS_REGION={}", expected.filter(is_region).unwrap_or("REGION, that of the bucket")))
}

/// Cause of a store's error in one line, with a hint where a setting may help.
pub(crate) fn cause(error: &object_store::Error) -> Cause {
    let text = error.to_string();
    let tag = |name: &str| {
        let rest = text.split_once(&format!("<{name}>"))?.1;
        Some(rest.split_once('<')?.0.trim().to_owned()).filter(|found| !found.is_empty())
    };
    let status = text.split_once("status code: ").and_then(|(_, rest)| rest.split(':').next());
    let answer = match (tag("Code"), tag("Message"), status) {
        (Some(code), Some(message), _) => format!("the server answers {code}: {message}"),
        (Some(code), None, _) => format!("the server answers {code}"),
        (None, _, Some(status)) => format!("the server answers {}", status.trim()),
        (None, _, None) => {
            let mut inner: &dyn std::error::Error = error;
            while let Some(next) = inner.source() {
                inner = next;
            }
            inner.to_string()
        }
    };
    let mut answer: String = answer.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = answer.char_indices().nth(QUOTED_MAX) {
        answer.truncate(end);
    }
    let cause = Cause::new(answer);
    if has_wrong_time(error) {
        cause.with_hint("timedatectl set-ntp true sets the clock; the same command then continues")
    } else if let Some(hint) = region_hint(&text) {
        cause.with_hint(hint)
    } else if is_denied(error) {
        cause.with_hint(
            "renew the credentials, for S3 AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; \
             the same command then continues",
        )
    } else if is_checksum_refused(&text) {
        cause.with_hint(match text.contains("x-amz-checksum-sha256") {
            true => "AWS_CHECKSUM_ALGORITHM=none for a server that supports no checksums",
            false => "AWS_CHECKSUM_ALGORITHM=sha256 for a server that does not support CRC64NVME",
        })
    } else {
        cause
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
