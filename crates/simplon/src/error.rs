//! Errors of the interface.
use std::borrow::Cow;

use keepup_error::{Cause, Diagnostic, ErrorClass};
use keepup_peer::EndpointError;

/// Why a detector cannot be used over its HTTP interface.
#[derive(Debug, thiserror::Error)]
pub enum SimplonError {
    /// The text is not the address of an HTTP server.
    #[error("cannot use {text:?} as a detector's HTTP address: it is not http://HOST[:PORT]")]
    Url {
        /// The text.
        text: String,
    },
    /// The host has no address.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// A request failed, or the detector is not in the required state.
    #[error("{0}")]
    Detector(Cause),
}

impl Diagnostic for SimplonError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Url { .. } => ErrorClass::Usage,
            Self::Endpoint(error) => error.class(),
            Self::Detector(_) => ErrorClass::Environment,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Url { .. } => Some("such as http://eiger1; https is not supported".into()),
            Self::Endpoint(error) => error.hint(),
            Self::Detector(why) => why.hint(),
        }
    }
}
