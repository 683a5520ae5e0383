//! What keeps a part of the machine busy beside what is measured, as people write it: `net=50MB/s`,
//! `disk=25MB/s@/data/a,read`, `memory=2GB/s`, `cpu=0.5`.
//!
//! Invariants: a rate is more than nothing; what is written reads back as exactly the same load.
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::units::{ByteRate, Bytes, UnitError};

/// Size of the file of a disk load unless told otherwise.
const FILE_BYTES: u64 = 1 << 30;
/// Smallest file of a disk load: a few requests of it must fit.
const FILE_BYTES_MIN: u64 = 16 << 20;
/// Most cores that may be asked for.
const CORES_MAX: f64 = 4096.0;
const ACCEPTED: &str = "accepted is net=RATE, net=RATE@HOST:PORT, disk=RATE@DIR[,read|write][,size=SIZE], \
                        memory=RATE or cpu=CORES";

/// A background load at a stated rate.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadSpec {
    /// Bytes through the network, counted where they arrive.
    Net {
        /// How many each second.
        rate: ByteRate,
        /// Who sends them, `HOST:PORT`; without one, this machine over loopback.
        from: Option<String>,
    },
    /// Bytes to or from a file.
    Disk {
        /// How many each second.
        rate: ByteRate,
        /// Where the file lies.
        directory: PathBuf,
        /// Which way they go.
        way: DiskWay,
        /// Size of the file.
        size: Bytes,
    },
    /// Bytes read and bytes written in main memory, together.
    Memory {
        /// How many each second.
        rate: ByteRate,
    },
    /// Time on processors.
    Cpu {
        /// How many of them at a time.
        cores: f64,
    },
}

/// Which way the bytes of a disk load go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiskWay {
    /// From the disk, as the background load of the magazine's test.
    #[default]
    Read,
    /// To it.
    Write,
}

/// A load that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadSpecError {
    written: String,
    why: String,
}

impl fmt::Display for LoadSpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot read {:?} as a load: {}", self.written, self.why)
    }
}

impl std::error::Error for LoadSpecError {}

impl LoadSpec {
    /// What is asked for each second: bytes, or seconds on processors.
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
        let refuse = |why: String| LoadSpecError { written: written.to_owned(), why };
        let Some((kind, rest)) = written.split_once('=') else {
            return Err(refuse(format!("it has no \"=\"; {ACCEPTED}")));
        };
        match kind.trim() {
            "net" => net(rest),
            "disk" => disk(rest),
            "memory" => rate(rest).map(|rate| Self::Memory { rate }),
            "cpu" => cpu(rest),
            other => Err(format!("{other:?} is no kind of load; {ACCEPTED}")),
        }
        .map_err(refuse)
    }
}

fn rate(written: &str) -> Result<ByteRate, String> {
    let rate: ByteRate = written.parse().map_err(|e: UnitError| e.to_string())?;
    if rate.bytes_per_second() < 1.0 {
        return Err("less than one byte each second is no load".to_owned());
    }
    Ok(rate)
}

fn net(rest: &str) -> Result<LoadSpec, String> {
    let (number, from) = match rest.split_once('@') {
        Some((number, from)) => (number, Some(address(from.trim())?)),
        None => (rest, None),
    };
    Ok(LoadSpec::Net { rate: rate(number)?, from })
}

/// `HOST:PORT`, with brackets around an address of IPv6.
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

fn disk(rest: &str) -> Result<LoadSpec, String> {
    let Some((number, place)) = rest.split_once('@') else {
        return Err("it does not say where, as in disk=25MB/s@/data/a".to_owned());
    };
    let (mut directory, mut way, mut size) = (place, None, None);
    // Settings stand last, each once; what is before them is the directory, commas included.
    while let Some((before, setting)) = directory.rsplit_once(',') {
        match setting.trim() {
            "read" if way.is_none() => way = Some(DiskWay::Read),
            "write" if way.is_none() => way = Some(DiskWay::Write),
            other => match other.strip_prefix("size=").filter(|_| size.is_none()) {
                Some(text) => size = Some(text.parse::<Bytes>().map_err(|e| e.to_string())?),
                None => break,
            },
        }
        directory = before;
    }
    let size = size.unwrap_or(Bytes(FILE_BYTES));
    if size.0 < FILE_BYTES_MIN {
        return Err(format!("a file of {size} is too small; {} or more will do", Bytes(FILE_BYTES_MIN)));
    }
    if directory.is_empty() {
        return Err("it does not say where, as in disk=25MB/s@/data/a".to_owned());
    }
    Ok(LoadSpec::Disk {
        rate: rate(number)?,
        directory: directory.into(),
        way: way.unwrap_or_default(),
        size,
    })
}

fn cpu(rest: &str) -> Result<LoadSpec, String> {
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
    /// Exact: reads back as the same load.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Net { rate, from: None } => write!(f, "net={}", rate.exact()),
            Self::Net { rate, from: Some(from) } => write!(f, "net={}@{from}", rate.exact()),
            // The way is always told, so that a directory whose name ends like a setting stays whole.
            Self::Disk { rate, directory, way, size } => {
                write!(f, "disk={}@{},{way}", rate.exact(), directory.display())?;
                let told = directory.to_string_lossy().contains(",size=") || size.0 != FILE_BYTES;
                if told { write!(f, ",size={}", size.exact()) } else { Ok(()) }
            }
            Self::Memory { rate } => write!(f, "memory={}", rate.exact()),
            Self::Cpu { cores } => write!(f, "cpu={cores}"),
        }
    }
}

#[cfg(test)]
#[path = "load_spec_tests.rs"]
mod tests;
