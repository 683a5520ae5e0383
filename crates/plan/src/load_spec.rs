//! Specification of a background load: `net=50MB/s`, `disk=25MB/s@/data/a,read`, `memory=2GB/s`,
//! `cpu=0.5`.
//!
//! Invariants: rates are positive; the text form parses back to the same value.
use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use keepup_error::{Cause, Diagnostic, ErrorClass};

use crate::units::{ByteRate, Bytes, UnitError};

/// Default file size of a disk load.
const FILE_BYTES: u64 = 1 << 30;
/// Minimum file size of a disk load: it must hold a few requests.
const FILE_BYTES_MIN: u64 = 16 << 20;
/// Maximum number of cores.
const CORES_MAX: f64 = 4096.0;
const ACCEPTED: &str = "accepted: net=RATE, net=RATE@HOST:PORT, disk=RATE@DIR[,read|write][,size=SIZE], \
                        memory=RATE or cpu=CORES";

/// A background load with its rate.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadSpec {
    /// Network traffic, counted at the receiver.
    Net {
        /// Bytes per second.
        rate: ByteRate,
        /// Sender, `HOST:PORT`; default: this machine over loopback.
        from: Option<String>,
    },
    /// File reads or writes.
    Disk {
        /// Bytes per second.
        rate: ByteRate,
        /// Directory of the file.
        directory: PathBuf,
        /// Direction.
        way: DiskWay,
        /// File size.
        size: Bytes,
    },
    /// Memory reads plus writes.
    Memory {
        /// Bytes per second.
        rate: ByteRate,
    },
    /// CPU time.
    Cpu {
        /// Number of busy CPUs.
        cores: f64,
    },
}

/// Direction of a disk load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiskWay {
    /// Read from the disk, like the background load of the magazine's test.
    #[default]
    Read,
    /// Write to the disk.
    Write,
}

/// Error of parsing a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadSpecError {
    written: String,
    why: Cause,
}

impl fmt::Display for LoadSpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot read {:?} as a load: {}", self.written, self.why)
    }
}

impl std::error::Error for LoadSpecError {}

impl Diagnostic for LoadSpecError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        self.why.hint()
    }
}

impl LoadSpec {
    /// Requested rate: bytes per second, or CPU seconds per second.
    pub fn asked(&self) -> f64 {
        match self {
            Self::Net { rate, .. } | Self::Disk { rate, .. } | Self::Memory { rate } => {
                rate.bytes_per_second()
            }
            Self::Cpu { cores } => *cores,
        }
    }
}

impl FromStr for LoadSpec {
    type Err = LoadSpecError;

    fn from_str(written: &str) -> Result<Self, LoadSpecError> {
        let refuse = |why: Cause| LoadSpecError { written: written.to_owned(), why };
        let Some((kind, rest)) = written.split_once('=') else {
            return Err(refuse(format!("it has no \"=\"; {ACCEPTED}").into()));
        };
        match kind.trim() {
            "net" => net(rest),
            "disk" => disk(rest),
            "memory" => rate(rest).map(|rate| Self::Memory { rate }),
            "cpu" => cpu(rest),
            other => Err(format!("{other:?} is no kind of load; {ACCEPTED}").into()),
        }
        .map_err(refuse)
    }
}

fn rate(written: &str) -> Result<ByteRate, Cause> {
    let rate: ByteRate = written.parse().map_err(|e: UnitError| Cause::of(&e))?;
    if rate.bytes_per_second() < 1.0 {
        return Err("less than one byte each second is no load".into());
    }
    Ok(rate)
}

fn net(rest: &str) -> Result<LoadSpec, Cause> {
    let (number, from) = match rest.split_once('@') {
        Some((number, from)) => (number, Some(address(from.trim())?)),
        None => (rest, None),
    };
    Ok(LoadSpec::Net { rate: rate(number)?, from })
}

/// Parses `HOST:PORT`, with brackets around an IPv6 address.
fn address(written: &str) -> Result<String, String> {
    let wrong = |why: &str| Err(format!("{written:?} is not HOST:PORT: {why}"));
    let Some((host, port)) = written.rsplit_once(':') else { return wrong("the port is missing") };
    if host.is_empty() || host.contains(char::is_whitespace) {
        return wrong("the host is missing");
    }
    if host.contains(':') && !(host.starts_with('[') && host.ends_with(']')) {
        return wrong("an address with colons stands in brackets, as in [::1]:7620");
    }
    match port.parse::<u16>() {
        Ok(port) if port > 0 => Ok(written.to_owned()),
        _ => wrong("a port is a number from 1 to 65535"),
    }
}

fn disk(rest: &str) -> Result<LoadSpec, Cause> {
    let Some((number, place)) = rest.split_once('@') else {
        return Err("it does not say where, as in disk=25MB/s@/data/a".into());
    };
    let (mut directory, mut way, mut size) = (place, None, None);
    // Settings are last, each at most once; everything before them is the directory, including
    // commas.
    while let Some((before, setting)) = directory.rsplit_once(',') {
        match setting.trim() {
            "read" if way.is_none() => way = Some(DiskWay::Read),
            "write" if way.is_none() => way = Some(DiskWay::Write),
            other => match other.strip_prefix("size=").filter(|_| size.is_none()) {
                Some(text) => size = Some(text.parse::<Bytes>().map_err(|e| Cause::of(&e))?),
                None => break,
            },
        }
        directory = before;
    }
    let size = size.unwrap_or(Bytes(FILE_BYTES));
    if size.0 < FILE_BYTES_MIN {
        let why = format!("a file of {size} is too small; {} or more will do", Bytes(FILE_BYTES_MIN));
        return Err(why.into());
    }
    if directory.is_empty() {
        return Err("it does not say where, as in disk=25MB/s@/data/a".into());
    }
    Ok(LoadSpec::Disk {
        rate: rate(number)?,
        directory: directory.into(),
        way: way.unwrap_or_default(),
        size,
    })
}

fn cpu(rest: &str) -> Result<LoadSpec, Cause> {
    let text = rest.trim();
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let cores = text.parse::<f64>().ok().filter(|cores| plain && (0.001..=CORES_MAX).contains(cores));
    let cores = cores.ok_or_else(|| {
        format!("{text:?} is not a number of cores from 0.001 to {CORES_MAX}, as in 0.5 or 2")
    })?;
    Ok(LoadSpec::Cpu { cores })
}

impl fmt::Display for DiskWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}

impl fmt::Display for LoadSpec {
    /// Exact: parses back to the same load.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Net { rate, from: None } => write!(f, "net={}", rate.exact()),
            Self::Net { rate, from: Some(from) } => write!(f, "net={}@{from}", rate.exact()),
            // The direction is always written, so that a directory name that ends like a setting is
            // preserved.
            Self::Disk { rate, directory, way, size } => {
                write!(f, "disk={}@{},{way}", rate.exact(), directory.display())?;
                let is_explicit = directory.to_string_lossy().contains(",size=") || size.0 != FILE_BYTES;
                if is_explicit { write!(f, ",size={}", size.exact()) } else { Ok(()) }
            }
            Self::Memory { rate } => write!(f, "memory={}", rate.exact()),
            Self::Cpu { cores } => write!(f, "cpu={cores}"),
        }
    }
}

#[cfg(test)]
#[path = "load_spec_tests.rs"]
mod tests;
