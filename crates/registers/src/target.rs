//! Targets of register access, and their names.
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::error::RegisterError;
use super::vme::VmeWindow;

/// A target of register access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Memory of this process, which shows the overhead of the measurement.
    Ram,
    /// A BAR of a PCI function.
    Pci {
        /// Domain, bus, device and function, for example `0000:00:04.0`.
        function: String,
        /// Number, 0 to 5.
        bar: u8,
    },
    /// The configuration space of a PCI function.
    PciConfig {
        /// As above.
        function: String,
    },
    /// A BAR of a PCI function that is bound to VFIO.
    Vfio {
        /// As above.
        function: String,
        /// Number, 0 to 5.
        bar: u8,
    },
    /// A map of a UIO driver, or a BAR of its function.
    Uio {
        /// Device.
        device: UioDevice,
        /// Region; the first map by default.
        region: Option<UioRegion>,
    },
    /// A master window of the kernel's VME driver.
    Vme {
        /// Device file, for example `/dev/bus/vme/m0`.
        path: PathBuf,
        /// Settings to configure; the current ones by default.
        window: Option<VmeWindow>,
    },
    /// A board that speaks IPbus 2.0 over UDP.
    Ipbus {
        /// Host or address, with or without a port.
        address: String,
    },
    /// A simulated IPbus target that this process serves over loopback.
    IpbusSelf,
    /// A character device that moves data from a card by DMA (`xdma0_c2h_0`), or a file in its place.
    Xdma {
        /// Device file.
        path: PathBuf,
    },
}

/// A UIO device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UioDevice {
    /// Device `/dev/uioN`.
    Number(u32),
    /// Device of a PCI function.
    Function(String),
}

/// A region of a UIO device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UioRegion {
    /// A map of its driver.
    Map(u8),
    /// A BAR of its function, which bypasses the driver.
    Bar(u8),
}

impl Target {
    /// The PCI function in the name, if any.
    pub fn function(&self) -> Option<&str> {
        match self {
            Self::Pci { function, .. }
            | Self::PciConfig { function }
            | Self::Vfio { function, .. }
            | Self::Uio { device: UioDevice::Function(function), .. } => Some(function),
            Self::Ram
            | Self::Uio { .. }
            | Self::Vme { .. }
            | Self::Ipbus { .. }
            | Self::IpbusSelf
            | Self::Xdma { .. } => None,
        }
    }
}

impl FromStr for Target {
    type Err = RegisterError;

    fn from_str(name: &str) -> Result<Self, RegisterError> {
        let wrong = |why: &str| RegisterError::Name { name: name.into(), why: why.into() };
        if name == "ram" {
            return Ok(Self::Ram);
        }
        let (kind, rest) = name.split_once(':').ok_or_else(|| wrong("it has no kind such as pci:"))?;
        match kind {
            "ram" if rest.is_empty() => Ok(Self::Ram),
            "pci" | "vfio" => {
                let (function, bar) =
                    rest.split_once("/bar").ok_or_else(|| wrong("it has no BAR such as /bar0"))?;
                let bar = number(bar).filter(|bar| *bar < BARS).ok_or_else(|| wrong(NO_BAR))?;
                let function = self::function(function).ok_or_else(|| wrong(NO_FUNCTION))?;
                Ok(match kind {
                    "pci" => Self::Pci { function, bar },
                    _ => Self::Vfio { function, bar },
                })
            }
            "uio" => uio(rest).map_err(wrong),
            "vme" if !rest.is_empty() => {
                let (path, window) = match rest.split_once(',') {
                    Some((path, window)) => (path, Some(window.parse().map_err(|why: String| wrong(&why))?)),
                    None => (rest, None),
                };
                Ok(Self::Vme { path: path.into(), window })
            }
            "pci-config" => {
                let function = function(rest).ok_or_else(|| wrong(NO_FUNCTION))?;
                Ok(Self::PciConfig { function })
            }
            "ipbus" if rest == "self" => Ok(Self::IpbusSelf),
            "ipbus" => match rest.strip_prefix("//").filter(|address| !address.is_empty()) {
                Some(address) => Ok(Self::Ipbus { address: address.into() }),
                None => Err(wrong("a board has the form ipbus://HOST:PORT")),
            },
            "xdma" if !rest.is_empty() => Ok(Self::Xdma { path: rest.into() }),
            _ => Err(wrong("unknown kind of target")),
        }
    }
}

const NO_FUNCTION: &str = "a PCI function has the form 0000:00:04.0 (lspci -D)";
const NO_BAR: &str = "BAR numbers are 0 to 5";
const NO_UIO: &str =
    "a UIO device has the form 0, /dev/uio0 or 0000:00:04.0, optionally followed by /map0 or /bar0";
/// BARs of a function.
const BARS: u8 = 6;
/// Maps of a UIO device (`MAX_UIO_MAPS` of linux/uio_driver.h).
const UIO_MAPS: u8 = 5;

/// Parses a number without leading zeros or sign.
fn number<N: FromStr + ToString>(text: &str) -> Option<N> {
    text.parse().ok().filter(|number: &N| number.to_string() == text)
}

/// Parses the part after `uio:`.
fn uio(text: &str) -> Result<Target, &'static str> {
    let text = text.strip_prefix("/dev/uio").unwrap_or(text);
    let (device, region) = match text.split_once('/') {
        Some((device, region)) => (device, Some(region)),
        None => (text, None),
    };
    let device = match number(device) {
        Some(number) => UioDevice::Number(number),
        None => UioDevice::Function(function(device).ok_or(NO_UIO)?),
    };
    let region = match region.map(|region| (region.strip_prefix("map"), region.strip_prefix("bar"))) {
        None => None,
        Some((Some(map), _)) => {
            let map = number(map).filter(|map| *map < UIO_MAPS);
            Some(UioRegion::Map(map.ok_or("map numbers are 0 to 4")?))
        }
        Some((_, Some(bar))) => Some(UioRegion::Bar(number(bar).filter(|bar| *bar < BARS).ok_or(NO_BAR)?)),
        Some(_) => return Err(NO_UIO),
    };
    Ok(Target::Uio { device, region })
}

/// Parses a function and returns its full form. The domain is optional.
fn function(text: &str) -> Option<String> {
    let (place, function) = text.split_once('.')?;
    let mut parts: Vec<&str> = place.split(':').collect();
    if parts.len() == 2 {
        parts.insert(0, "0000");
    }
    let is_hex = |text: &str, digits: usize| {
        text.len() == digits && text.bytes().all(|digit| digit.is_ascii_hexdigit())
    };
    let is_good = parts.len() == 3 && is_hex(parts[0], 4) && is_hex(parts[1], 2) && is_hex(parts[2], 2);
    let is_function = matches!(function.as_bytes(), [b'0'..=b'7']);
    (is_good && is_function).then(|| format!("{}.{function}", parts.join(":")).to_ascii_lowercase())
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ram => out.write_str("ram"),
            Self::Pci { function, bar } => write!(out, "pci:{function}/bar{bar}"),
            Self::PciConfig { function } => write!(out, "pci-config:{function}"),
            Self::Vfio { function, bar } => write!(out, "vfio:{function}/bar{bar}"),
            Self::Uio { device, region } => {
                match device {
                    UioDevice::Number(number) => write!(out, "uio:{number}")?,
                    UioDevice::Function(function) => write!(out, "uio:{function}")?,
                }
                match region {
                    Some(UioRegion::Map(map)) => write!(out, "/map{map}"),
                    Some(UioRegion::Bar(bar)) => write!(out, "/bar{bar}"),
                    None => Ok(()),
                }
            }
            Self::Vme { path, window: Some(window) } => write!(out, "vme:{},{window}", path.display()),
            Self::Vme { path, window: None } => write!(out, "vme:{}", path.display()),
            Self::Ipbus { address } => write!(out, "ipbus://{address}"),
            Self::IpbusSelf => out.write_str("ipbus:self"),
            Self::Xdma { path } => write!(out, "xdma:{}", path.display()),
        }
    }
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
