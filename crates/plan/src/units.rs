//! Quantities with units: sizes, data rates, event rates, durations, shares.
//!
//! Each parses user input ("2.1 GB/s", "8 MiB", "30 Hz", "2 h", "20 %"), serializes to a string
//! that parses back to the same value, and displays rounded, in decimal units. MB = 10^6 bytes, MiB
//! = 2^20. Values are never negative, infinite or NaN, and none overflows silently.

mod error;
mod number;
mod text;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

pub use error::UnitError;
use number::{Number, QuantityKind};

const SIZE: QuantityKind = QuantityKind {
    what: "a size",
    example: "8 MiB",
    accepted: "a number and B, kB, MB, GB, TB, PB (powers of 1000) or KiB, MiB, GiB, TiB, PiB \
               (powers of 1024)",
    decimal: &[
        ("B", 1),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("PB", 1_000_000_000_000_000),
    ],
    binary: &[
        ("B", 1),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("PiB", 1 << 50),
    ],
    aliases: &[],
};

const BYTE_RATE: QuantityKind = QuantityKind {
    what: "a data rate",
    example: "80 MB/s",
    accepted: "a number and B/s, kB/s, MB/s, GB/s, TB/s (powers of 1000) or KiB/s, MiB/s, GiB/s, TiB/s \
               (powers of 1024)",
    decimal: &[
        ("B/s", 1),
        ("kB/s", 1_000),
        ("MB/s", 1_000_000),
        ("GB/s", 1_000_000_000),
        ("TB/s", 1_000_000_000_000),
    ],
    binary: &[("B/s", 1), ("KiB/s", 1 << 10), ("MiB/s", 1 << 20), ("GiB/s", 1 << 30), ("TiB/s", 1 << 40)],
    aliases: &[],
};

const EVENT_RATE: QuantityKind = QuantityKind {
    what: "an event rate",
    example: "305 /s",
    accepted: "a number and /s, Hz, kHz or MHz",
    decimal: &[("Hz", 1), ("kHz", 1_000), ("MHz", 1_000_000)],
    binary: &[],
    aliases: &[("/s", 1)],
};

const SHARE: QuantityKind = QuantityKind {
    what: "a share",
    example: "20 %",
    accepted: "a number from 0 to 100 and %",
    decimal: &[("%", 1)],
    binary: &[],
    aliases: &[],
};

/// A size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

impl Bytes {
    /// Shortest text that parses back to exactly this size.
    pub fn exact(self) -> String {
        SIZE.exact_whole(self.0)
    }

    /// Rounded to three figures in binary units: "76.3 MiB".
    pub fn binary(self) -> String {
        number::rounded(self.0 as f64, SIZE.binary)
    }
}

impl FromStr for Bytes {
    type Err = UnitError;

    fn from_str(written: &str) -> Result<Self, UnitError> {
        let too_large = || SIZE.refuse(written, "it is larger than 2^64 bytes");
        match SIZE.parse(written)? {
            Number { whole: Some(whole), scale, .. } => {
                whole.checked_mul(scale).map(Bytes).ok_or_else(too_large)
            }
            number => {
                let bytes = number.value().round();
                if bytes < u64::MAX as f64 { Ok(Bytes(bytes as u64)) } else { Err(too_large()) }
            }
        }
    }
}

impl fmt::Display for Bytes {
    /// Rounded to three figures in decimal units: "1.05 MB".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&number::rounded(self.0 as f64, SIZE.decimal))
    }
}

/// A data rate in bytes per second, finite and not negative.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct ByteRate(f64);

impl ByteRate {
    /// Rejects negative, infinite and NaN values.
    pub fn new(bytes_per_second: f64) -> Result<Self, UnitError> {
        BYTE_RATE.finite(bytes_per_second).map(Self)
    }

    /// Bytes per second.
    pub fn bytes_per_second(self) -> f64 {
        self.0
    }

    /// Shortest text that parses back to exactly this rate.
    pub fn exact(self) -> String {
        BYTE_RATE.exact(self.0)
    }

    /// Rounded to three figures in binary units: "76.3 MiB/s".
    pub fn binary(self) -> String {
        number::rounded(self.0, BYTE_RATE.binary)
    }
}

impl FromStr for ByteRate {
    type Err = UnitError;

    fn from_str(written: &str) -> Result<Self, UnitError> {
        BYTE_RATE.parse_finite(written).map(Self)
    }
}

impl fmt::Display for ByteRate {
    /// Rounded to three figures in decimal units: "1.43 GB/s".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&number::rounded(self.0, BYTE_RATE.decimal))
    }
}

/// Events per second, finite and not negative.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct EventRate(f64);

impl EventRate {
    /// Rejects negative, infinite and NaN values.
    pub fn new(events_per_second: f64) -> Result<Self, UnitError> {
        EVENT_RATE.finite(events_per_second).map(Self)
    }

    /// Events per second.
    pub fn events_per_second(self) -> f64 {
        self.0
    }
}

impl FromStr for EventRate {
    type Err = UnitError;

    fn from_str(written: &str) -> Result<Self, UnitError> {
        EVENT_RATE.parse_finite(written).map(Self)
    }
}

impl fmt::Display for EventRate {
    /// Rounded to three figures: "305 Hz", "17.4 kHz".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&number::rounded(self.0, EVENT_RATE.decimal))
    }
}

/// A share in percent from 0 to 100.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Share(f64);

impl Share {
    /// From 0 (nothing) to 1 (all).
    pub fn fraction(self) -> f64 {
        self.0 / 100.0
    }
}

impl FromStr for Share {
    type Err = UnitError;

    fn from_str(written: &str) -> Result<Self, UnitError> {
        match SHARE.parse_finite(written)? {
            percent if percent <= 100.0 => Ok(Self(percent)),
            _ => Err(SHARE.refuse(written, "it is more than the whole")),
        }
    }
}

impl fmt::Display for Share {
    /// In percent, rounded to three figures: "20 %".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&number::rounded(self.0, SHARE.decimal))
    }
}

/// A duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(pub Duration);

/// Maximum length of the text and of a number (in digits) of a duration. Within these no sum of
/// parts comes near the end of [`Duration`], where its arithmetic would panic.
const SPAN_TEXT_MAX: usize = 64;
const SPAN_DIGITS_MAX: usize = 10;

impl FromStr for Span {
    type Err = UnitError;

    fn from_str(written: &str) -> Result<Self, UnitError> {
        let refuse = |why: &str| {
            UnitError::new(
                "a length of time",
                written,
                why,
                "such as \"200 ms\", \"90 s\", \"8 h\" or \"1h 30m\"",
            )
        };
        let digits_max = written.split(|c: char| !c.is_ascii_digit()).map(str::len).max().unwrap_or(0);
        if written.trim_start().starts_with('-') {
            return Err(refuse("it is negative"));
        }
        if written.len() > SPAN_TEXT_MAX || digits_max > SPAN_DIGITS_MAX {
            return Err(refuse("it has too many digits"));
        }
        humantime::parse_duration(written).map(Self).map_err(|error| refuse(&error.to_string()))
    }
}

impl fmt::Display for Span {
    /// Exact: "8h", "1m 30s", "200ms".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&humantime::format_duration(self.0).to_string())
    }
}

#[cfg(test)]
#[path = "units_tests.rs"]
mod tests;
