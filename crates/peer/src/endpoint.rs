//! Network endpoint as a user names it, and the addresses of the name.
//!
//! Invariants: an endpoint has at least one address; its name is resolved once, so the address
//! that is checked for loopback is the one that is bound or connected to.
use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use keepup_error::{Diagnostic, ErrorClass};

/// Network endpoint: `daq1:7611`, `10.0.0.2:7611` or `[::1]:7611`, with all addresses of the
/// name.
///
/// Binding with the standard library takes the first address that works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    host: String,
    first: SocketAddr,
    others: Vec<SocketAddr>,
}

/// A text is not a valid endpoint.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The text is not a host with a port.
    #[error("cannot use {text:?} as an address: it is not HOST:PORT")]
    Syntax {
        /// The text.
        text: String,
        /// Port for the examples.
        port: u16,
    },
    /// The name has no address.
    #[error("cannot resolve {host}: {source}")]
    Resolve {
        /// The name.
        host: String,
        /// Cause.
        source: std::io::Error,
    },
}

impl Diagnostic for EndpointError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Syntax { .. } | Self::Resolve { .. } => ErrorClass::Usage,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::Syntax { port, .. } => {
                format!("such as daq1:{port}, 192.168.1.2:{port} or [::1]:{port}").into()
            }
            Self::Resolve { host, .. } => format!(
                "`getent hosts {host}` asks as keepup does; an address such as 192.168.1.2 always works"
            )
            .into(),
        })
    }
}

impl Endpoint {
    /// Parses and resolves `text`; `HOST` alone gets the port `default_port`.
    ///
    /// # Errors
    /// The text is not a host, or the name has no address.
    pub fn with_default_port(text: &str, default_port: u16) -> Result<Self, EndpointError> {
        Self::resolve(text, Some(default_port))
    }

    fn resolve(text: &str, default_port: Option<u16>) -> Result<Self, EndpointError> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(address.into());
        }
        let syntax =
            || EndpointError::Syntax { text: text.to_owned(), port: default_port.unwrap_or(EXAMPLE_PORT) };
        let (host, port) = parts(text).ok_or_else(syntax)?;
        let port = port.or(default_port).ok_or_else(syntax)?;
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Ok((ip, port).into());
        }
        let failed = |source| EndpointError::Resolve { host: host.to_owned(), source };
        let mut addresses: Vec<SocketAddr> = Vec::new();
        for address in (host, port).to_socket_addrs().map_err(failed)? {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        let mut addresses = addresses.into_iter();
        let first = addresses.next().ok_or_else(|| failed(std::io::Error::other("it has no address")))?;
        Ok(Self { host: host.to_owned(), first, others: addresses.collect() })
    }

    /// Host name, or address without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// First address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.first
    }

    /// All addresses, in the order in which they are tried.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        std::iter::once(self.first).chain(self.others.iter().copied())
    }

    /// Whether every address is reachable only from this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.addresses().all(|address| address.ip().to_canonical().is_loopback())
    }

    /// Calls `attempt` with each address in turn until it succeeds.
    ///
    /// # Errors
    /// The error of the last address.
    pub fn try_each<T, E>(&self, mut attempt: impl FnMut(SocketAddr) -> Result<T, E>) -> Result<T, E> {
        let mut result = attempt(self.first);
        for address in &self.others {
            if result.is_ok() {
                break;
            }
            result = attempt(*address);
        }
        result
    }
}

/// Port of the examples in error messages.
const EXAMPLE_PORT: u16 = 7611;

/// Host and port of a text; `None` if it is not a host.
fn parts(text: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match text.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(None) => return None,
        Some(Some((host, ""))) => (host, None),
        Some(Some((host, rest))) => (host, Some(rest.strip_prefix(':')?)),
        // Several colons without brackets are an IPv6 address without a port.
        None if text.matches(':').count() > 1 => (text, None),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let is_host = !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || "/?#@[]".contains(c));
    let port = match port {
        // The standard library parses `+80` as a number.
        Some(port) if !port.bytes().all(|byte| byte.is_ascii_digit()) => return None,
        Some(port) => Some(port.parse().ok()?),
        None => None,
    };
    let is_ip = host.parse::<IpAddr>().is_ok();
    (is_host && (is_ip || !host.contains(':') || host.contains('%'))).then_some((host, port))
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        Self::resolve(text, None)
    }
}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Self {
        Self { host: address.ip().to_string(), first: address, others: Vec::new() }
    }
}

impl From<&SocketAddr> for Endpoint {
    fn from(address: &SocketAddr) -> Self {
        Self::from(*address)
    }
}

impl From<&Endpoint> for Endpoint {
    fn from(endpoint: &Endpoint) -> Self {
        endpoint.clone()
    }
}

impl<I: Into<IpAddr>> From<(I, u16)> for Endpoint {
    fn from(pair: (I, u16)) -> Self {
        Self::from(SocketAddr::from(pair))
    }
}

impl ToSocketAddrs for Endpoint {
    type Iter = std::vec::IntoIter<SocketAddr>;

    fn to_socket_addrs(&self) -> std::io::Result<Self::Iter> {
        Ok(self.addresses().collect::<Vec<_>>().into_iter())
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.parse::<IpAddr>() {
            Ok(_) => self.first.fmt(out),
            Err(_) => write!(out, "{}:{}", self.host, self.first.port()),
        }
    }
}

#[cfg(test)]
#[path = "endpoint_tests.rs"]
mod tests;
