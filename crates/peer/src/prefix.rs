//! Address ranges such as `10.0.0.0/8`.
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use keepup_error::{Diagnostic, ErrorClass};

/// All addresses with the same first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    bits: u32,
}

/// A text is not a valid prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read {0:?} as an address prefix")]
pub struct PrefixError(String);

impl Diagnostic for PrefixError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        Some("such as 10.0.0.0/8, fd00::/8 or a single address".into())
    }
}

impl Prefix {
    /// Whether the range contains `ip`. An IPv4-mapped IPv6 address counts as IPv4.
    #[must_use]
    pub fn contains(&self, ip: IpAddr) -> bool {
        match (self.address, ip.to_canonical()) {
            (IpAddr::V4(ours), IpAddr::V4(ip)) => {
                (ours.to_bits() ^ ip.to_bits()).leading_zeros() >= self.bits
            }
            (IpAddr::V6(ours), IpAddr::V6(ip)) => {
                (ours.to_bits() ^ ip.to_bits()).leading_zeros() >= self.bits
            }
            _ => false,
        }
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let refused = || PrefixError(text.to_owned());
        let (address, bits) = text.split_once('/').map_or((text, None), |(a, bits)| (a, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| refused())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            // The standard library parses `+8` as a number.
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => {
                bits.parse().map_err(|_| refused())?
            }
            Some(_) => return Err(refused()),
        };
        if bits > most { Err(refused()) } else { Ok(Self { address, bits }) }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
#[path = "prefix_tests.rs"]
mod tests;
