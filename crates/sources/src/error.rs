//! Errors of decoders.
use std::borrow::Cow;

use keepup_error::{Diagnostic, ErrorClass};
use keepup_stream::pvaccess::Malformed;

/// Why a detector's data cannot be recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DetectorError {
    /// The peer violates ZMTP, or its socket is not a PUSH socket.
    #[error("cannot read ZeroMQ messages: {0}")]
    Zmtp(String),
    /// The peer violates pvAccess, or its PV cannot be recorded.
    #[error("cannot monitor PV: {0}")]
    PvAccess(String),
    /// A message does not conform to the detector's protocol.
    #[error("cannot decode message: {0}")]
    Message(String),
    /// A message is longer than the limit.
    #[error("cannot receive message: it has {bytes} bytes, more than {bytes_max} bytes allowed")]
    TooLong {
        /// Its length, bytes.
        bytes: u64,
        /// The limit, bytes.
        bytes_max: usize,
    },
    /// A directory cannot be read any more.
    #[error("cannot read directory: {0}")]
    Directory(String),
}

impl Diagnostic for DetectorError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Zmtp(_) | Self::PvAccess(_) | Self::Message(_) | Self::Directory(_) => ErrorClass::Failed,
            Self::TooLong { .. } => ErrorClass::Environment,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Zmtp(_) => Some("check address and port: the detector must send with a PUSH socket".into()),
            Self::PvAccess(_) => {
                Some("check address, port and PV name, for example with `pvxinfo PV`".into())
            }
            Self::TooLong { .. } => Some("a larger --pool; above 512 MiB also --max-event".into()),
            Self::Message(_) | Self::Directory(_) => None,
        }
    }
}

impl From<Malformed> for DetectorError {
    fn from(Malformed(why): Malformed) -> Self {
        Self::Message(why)
    }
}
