//! Address of a detector's HTTP server, as a user names it.
use std::fmt;
use std::str::FromStr;

use keepup_peer::{Endpoint, EndpointError};

use crate::SimplonError;

/// Default port.
const HTTP_PORT: u16 = 80;

/// Address of a detector's HTTP server: `http://HOST[:PORT]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetectorUrl(String);

impl FromStr for DetectorUrl {
    type Err = SimplonError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || SimplonError::Url { text: text.to_owned() };
        let host = text.strip_prefix("http://").ok_or_else(invalid)?;
        let host = host.strip_suffix('/').unwrap_or(host);
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
        if !host.bytes().all(is_allowed) {
            return Err(invalid());
        }
        match Endpoint::with_default_port(host, HTTP_PORT) {
            Ok(_) => Ok(Self(format!("http://{host}"))),
            Err(EndpointError::Syntax { .. }) => Err(invalid()),
            Err(error) => Err(error.into()),
        }
    }
}

impl fmt::Display for DetectorUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
