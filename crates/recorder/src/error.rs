//! Why a recording could not start or go on.
use keepup_peer::Endpoint;
use keepup_sys::SysError;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// A setting that cannot work.
    #[error("{what}")]
    Config {
        /// What is wrong and what helps.
        what: String,
    },
    /// No address of the endpoint could be listened on.
    #[error(
        "cannot listen on {endpoint}: {source}\n\
         hint: another --listen ADDR:PORT, or end the program that holds the port"
    )]
    Listen {
        /// The endpoint.
        endpoint: Endpoint,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// A call to the kernel failed.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// The recording's own files could not be written or read.
    #[error(transparent)]
    Recording(#[from] keepup_recording::error::RecordingError),
    /// A thread could not be started or died.
    #[error("the {name} thread failed: {why}")]
    Thread {
        /// Which one.
        name: String,
        /// Why.
        why: String,
    },
    /// It was armed, and ended before it was started.
    #[error("the recorder ended before the start: {why}")]
    Ended {
        /// Why.
        why: String,
    },
    /// The drain's other side failed.
    #[error(transparent)]
    Client(#[from] keepup_stream::client::ClientError),
}
