//! What can go wrong while measuring: one error type for the crate.

use std::io;
use std::path::PathBuf;

/// A measurement that could not be taken. The message says what was tried, on what, and why it failed.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// A file of the kernel, or a directory asked about, could not be read.
    #[error("read {}: {why}", path.display())]
    Read {
        /// What was read.
        path: PathBuf,
        /// The system's reason.
        why: io::Error,
    },
    /// A file was read but does not hold what it should.
    #[error("read {}: {why}", path.display())]
    Malformed {
        /// What was read.
        path: PathBuf,
        /// What was missing in it.
        why: &'static str,
    },
    /// No block device of this machine holds the path.
    #[error(
        "find the block device under {}: {why}\n\
         hint: name a directory on a local disk; `findmnt -T {}` shows what holds it",
        path.display(), path.display()
    )]
    NoDevice {
        /// The path asked about.
        path: PathBuf,
        /// Why there is none.
        why: String,
    },
    /// The background thread could not be started.
    #[error("start the sampler's thread: {why}\nhint: raise the limit on processes (`ulimit -u`)")]
    Thread {
        /// The system's reason.
        why: io::Error,
    },
    /// A histogram could not be written as text.
    #[error("encode a latency histogram: {why}")]
    Encode {
        /// The encoder's reason.
        why: String,
    },
}
