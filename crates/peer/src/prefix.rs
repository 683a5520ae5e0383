//! Ranges of addresses, as in `10.0.0.0/8`.
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// All addresses whose first bits are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    bits: u32,
}

/// A text is no prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a prefix of addresses\nhint: such as 10.0.0.0/8, fd00::/8 or a single address")]
pub struct PrefixError(String);

impl Prefix {
    /// Whether `ip` is one of them. An IPv4 address that is written as IPv6 counts as IPv4.
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
            // The standard library takes `+8` for a number.
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
