//! Why something could not be measured.
use std::path::PathBuf;

use keepup_recorder::RecorderError;
use keepup_stream::source::SourceError;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The recorder failed.
    #[error(transparent)]
    Recorder(#[from] RecorderError),
    /// The source failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Something below the data path failed.
    #[error(transparent)]
    Sys(#[from] keepup_sys::SysError),
    /// A sampler or a record of the environment failed.
    #[error(transparent)]
    Measure(#[from] keepup_measure::error::MeasureError),
    /// A recording could not be read back or removed.
    #[error(transparent)]
    Recording(#[from] keepup_recording::error::RecordingError),
    /// A network test failed.
    #[error(transparent)]
    Net(#[from] crate::net::NetError),
    /// Registers could not be read.
    #[error(transparent)]
    Register(#[from] crate::register::RegisterError),
    /// A trace cannot be replayed.
    #[error(transparent)]
    Replay(#[from] crate::replay::ReplayError),
    /// Registers behind IPbus could not be used.
    #[error(transparent)]
    Ipbus(#[from] crate::register::ipbus::IpbusError),
    /// A volume does not do.
    #[error("cannot use volume {}: {why}", path.display())]
    Volume {
        /// The volume.
        path: PathBuf,
        /// Why, and what helps.
        why: String,
        /// What kind of trouble it is.
        trouble: VolumeTrouble,
    },
    /// A line of a soak's state that cannot be used.
    #[error(
        "cannot use line {line} of the state {}, at offset {offset}: {what}\n\
         hint: nothing was changed; begin anew with another --state FILE", path.display()
    )]
    State {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// Where it begins in the file, bytes.
        offset: u64,
        /// What is wrong with it.
        what: String,
    },
    /// A soak that somebody else goes on with.
    #[error("cannot go on with the soak in {}: another process does so now", path.display())]
    StateBusy {
        /// The state file.
        path: PathBuf,
    },
    /// A soak that does something else than what is asked for.
    #[error(
        "cannot go on with the soak in {}: it is another one, its {what}\n\
         hint: repeat the command that it was begun with, or begin another with another --state FILE",
        path.display()
    )]
    StatePlan {
        /// The state file.
        path: PathBuf,
        /// The first difference.
        what: String,
    },
    /// The file of a soak's state cannot be opened.
    #[error("cannot open the state {}: {source}\nhint: {hint}", path.display())]
    StateFile {
        /// The state file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
        /// What helps.
        hint: String,
    },
    /// A reference that is not what it was.
    #[error("cannot copy {}: {what}", path.display())]
    Reference {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// An interface that is not there.
    #[error("cannot look at interface {name}: there is none of that name\nhint: this host has {known}")]
    Interface {
        /// The name.
        name: String,
        /// Those that are there.
        known: String,
    },
    /// An address that cannot be reached.
    #[error(
        "cannot find the way to {peer}: {source}\nhint: `ip route get {peer}` shows what the kernel thinks"
    )]
    Route {
        /// The address.
        peer: std::net::IpAddr,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A background load that cannot be had, or ended before its time.
    #[error("load {spec}: {why}")]
    Load {
        /// The load.
        spec: String,
        /// What became of it.
        why: String,
    },
    /// Some other call to the system failed.
    #[error("cannot {action}: {source}")]
    System {
        /// What was tried.
        action: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A thread of the workload died.
    #[error("the {name} thread panicked")]
    Thread {
        /// Which.
        name: &'static str,
    },
}

/// Kinds of trouble with a volume; they end in different exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeTrouble {
    /// It is not a directory that exists: a slip in the command.
    Missing,
    /// Writing there would not be safe.
    Unsafe,
    /// It cannot be written to, or has no room.
    Unable,
}

/// What helps when an address cannot be listened at.
pub(crate) fn listen_hint(source: &std::io::Error) -> &'static str {
    match source.kind() {
        std::io::ErrorKind::AddrInUse => {
            "another program listens there: --listen ADDR:PORT with another port"
        }
        std::io::ErrorKind::AddrNotAvailable => "this machine has no such address: ip address",
        _ => "another address or port: --listen ADDR:PORT",
    }
}
