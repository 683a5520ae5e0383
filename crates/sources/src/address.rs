//! Address of a detector, as a user names it.
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use keepup_error::{Diagnostic, ErrorClass};
use keepup_peer::{Endpoint, EndpointError};

use crate::dectris::v2::DectrisV2;
use crate::{Decoder, Limits};

/// Port of Stream V2.
const DECTRIS_V2_PORT: u16 = 31_001;

/// Protocol, host and port of a detector, such as `zmq://detector:31001`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceAddress {
    endpoint: Endpoint,
}

/// Error for a text that is not a valid detector address.
#[derive(Debug, thiserror::Error)]
pub enum SourceAddressError {
    /// Unknown scheme.
    #[error("cannot use {0:?} as a source: it does not start with zmq://")]
    Scheme(String),
    /// Invalid host or port.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

impl Diagnostic for SourceAddressError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Scheme(_) => Some("for DECTRIS Stream V2, use for example zmq://eiger1:31001".into()),
            Self::Endpoint(error) => error.hint(),
        }
    }
}

impl SourceAddress {
    /// Its host and port.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// A decoder of what it sends.
    #[must_use]
    pub fn decoder(&self, limits: Limits) -> Box<dyn Decoder> {
        Box::new(DectrisV2::new(limits))
    }
}

impl FromStr for SourceAddress {
    type Err = SourceAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let scheme = || SourceAddressError::Scheme(text.to_owned());
        let host = text.strip_prefix("zmq://").ok_or_else(scheme)?;
        Ok(Self { endpoint: Endpoint::with_default_port(host, DECTRIS_V2_PORT)? })
    }
}

impl fmt::Display for SourceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "zmq://{}", self.endpoint)
    }
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
