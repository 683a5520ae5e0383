//! Errors of a recorder and of a drain.
use std::borrow::Cow;
use std::path::PathBuf;

use keepup_error::{Cause, Diagnostic, ErrorClass};
use keepup_peer::Endpoint;
use keepup_sources::capture::CaptureError;
use keepup_sys::SysError;
use rustix::io::Errno;

/// What to do about an internal error.
pub(crate) const REPORT: &str =
    "report this as a defect of keepup, with the messages above and `keepup --version`";

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// Invalid setting.
    #[error("{what}")]
    Config {
        /// Problem.
        what: Cause,
    },
    /// Cannot listen on any address of the endpoint.
    #[error("cannot listen on {endpoint}: {source}")]
    Listen {
        /// The endpoint.
        endpoint: Endpoint,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// Cannot receive packets at an address.
    #[error("cannot receive packets at {address}: {source}")]
    Receive {
        /// The address.
        address: String,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// Cannot record the files of a directory.
    #[error("cannot record the files of {}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// Cannot open a capture file.
    #[error("cannot open capture file {}: {source}", path.display())]
    OpenCapture {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// A file holds no capture that can be read.
    #[error("cannot record {}: {source}", path.display())]
    Capture {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: CaptureError,
    },
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// The recording's files could not be written or read.
    #[error(transparent)]
    Recording(#[from] keepup_recording::error::RecordingError),
    /// A thread could not be started, or failed.
    #[error("the {name} thread failed: {why}")]
    Thread {
        /// Thread name.
        name: String,
        /// Cause.
        why: Cause,
    },
    /// A thread panicked.
    #[error("{what}")]
    Panicked {
        /// Thread and message.
        what: String,
    },
    /// An armed recorder ended before it was started.
    #[error("the recorder ended before the start: {why}")]
    Ended {
        /// Cause.
        why: Cause,
    },
    /// The drain's other side failed.
    #[error(transparent)]
    Client(#[from] keepup_stream::client::ClientError),
}

impl Diagnostic for RecorderError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Config { .. } => ErrorClass::Usage,
            Self::Panicked { .. } => ErrorClass::Failed,
            Self::Recording(e) => e.class(),
            Self::Client(e) => e.class(),
            Self::Sys(e) => e.class(),
            Self::Capture { source, .. } => source.class(),
            Self::Listen { .. }
            | Self::Receive { .. }
            | Self::Directory { .. }
            | Self::OpenCapture { .. }
            | Self::Thread { .. }
            | Self::Ended { .. } => ErrorClass::Environment,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Config { what } => what.hint(),
            Self::Listen { .. } => {
                Some("another --listen ADDR:PORT, or end the program that holds the port".into())
            }
            Self::Receive { source, .. } => Some(
                match source.kind() {
                    std::io::ErrorKind::AddrInUse => "another port, or end the program that holds this one",
                    _ => "name an address and an interface of this machine, see `ip address`",
                }
                .into(),
            ),
            Self::Directory { source, .. } => Some(
                match source.kind() {
                    std::io::ErrorKind::StorageFull => "raise fs.inotify.max_user_watches",
                    _ if source.raw_os_error() == Some(Errno::MFILE.raw_os_error()) => {
                        "raise fs.inotify.max_user_instances, or `ulimit -n`"
                    }
                    _ => "dir:PATH needs a directory that this user may read",
                }
                .into(),
            ),
            Self::Sys(e) => e.hint(),
            Self::Capture { source, .. } => source.hint(),
            Self::OpenCapture { .. } => Some("pcap:PATH needs a file that this user may read".into()),
            Self::Recording(e) => e.hint(),
            Self::Client(e) => e.hint(),
            Self::Panicked { .. } => Some(REPORT.into()),
            Self::Thread { why, .. } | Self::Ended { why } => why.hint(),
        }
    }
}
