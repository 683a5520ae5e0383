//! Address of a detector, as a user names it.
use std::borrow::Cow;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use keepup_error::{Diagnostic, ErrorClass};
use keepup_peer::{Endpoint, EndpointError};
use keepup_plan::units::Bytes;

use crate::dectris::v2::DectrisV2;
use crate::packets::{Counter, FRAMES_PER_SECOND_MAX, Format, Options, Packets, Vdif, WINDOW_MAX};
use crate::pvaccess::{Options as PvOptions, PvAccess, QUEUE_MAX};
use crate::{Decoder, Limits};

/// Port of Stream V2.
const DECTRIS_V2_PORT: u16 = 31_001;
/// Port of pvAccess.
const PVACCESS_PORT: u16 = 5075;
/// Longest name of a PV, in bytes: a prefix must fit into the name of a stream.
const PV_NAME_BYTES_MAX: usize = 200;
/// Default receive buffer for packets, in bytes.
const BUFFER_BYTES: usize = 64 << 20;

/// Protocol, host and port of a detector, such as `zmq://detector:31001`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceAddress {
    /// A DECTRIS detector with Stream V2, to connect to.
    Dectris(Endpoint),
    /// Packets that arrive at an address of this machine, or at a multicast group.
    Packets(PacketAddress),
    /// An EPICS PV with images, to connect to.
    PvAccess(PvAddress),
}

/// Server and name of an EPICS PV.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PvAddress {
    text: String,
    /// The server.
    pub endpoint: Endpoint,
    /// Name and queue of the PV.
    pub options: PvOptions,
}

/// Where packets arrive, and what they mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketAddress {
    text: String,
    /// Address and port to receive on; the address may be a multicast group.
    pub address: SocketAddr,
    /// Network interface with the multicast group; `None`: the kernel chooses.
    pub interface: Option<String>,
    /// Wanted receive buffer of the socket, bytes.
    pub buffer_bytes: usize,
    /// Meaning of the packets.
    pub options: Options,
}

/// Error for a text that is not a valid detector address.
#[derive(Debug, thiserror::Error)]
pub enum SourceAddressError {
    /// Unknown scheme.
    #[error("cannot use {0:?} as a source: the scheme must be zmq://, udp://, vdif:// or pva://")]
    Scheme(String),
    /// No PV name, or an invalid one.
    #[error("cannot use {0:?} as a source: it is not pva://HOST[:PORT]/PVNAME")]
    Pv(String),
    /// Invalid host or port.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// Unknown option, or an invalid value.
    #[error("cannot use option {option:?} of source {text}: {why}")]
    Option {
        /// The address.
        text: String,
        /// The option as given.
        option: String,
        /// What is wrong.
        why: String,
    },
}

impl Diagnostic for SourceAddressError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Scheme(_) => Some(
                "zmq://HOST:31001 for DECTRIS Stream V2, udp://:PORT for numbered UDP packets, \
                 vdif://:PORT for VDIF frames, pva://HOST/PVNAME for EPICS areaDetector"
                    .into(),
            ),
            Self::Pv(_) => Some("such as pva://ioc1/13SIM1:Pva1:Image".into()),
            Self::Endpoint(error) => error.hint(),
            Self::Option { .. } => Some("see `keepup record --help`".into()),
        }
    }
}

impl SourceAddress {
    /// A decoder of what it sends from `opened_ns` on, ns since the Unix epoch.
    #[must_use]
    pub fn decoder(&self, limits: Limits, opened_ns: u64) -> Box<dyn Decoder> {
        match self {
            Self::Dectris(_) => Box::new(DectrisV2::new(limits)),
            Self::Packets(packets) => Box::new(Packets::new(packets.options.clone(), limits, opened_ns)),
            Self::PvAccess(pv) => Box::new(PvAccess::new(pv.options.clone(), limits)),
        }
    }

    /// Its part in the names of streams, if a recording has several sources.
    #[must_use]
    pub fn prefix(&self) -> String {
        match self {
            Self::Dectris(endpoint) => endpoint.to_string(),
            Self::Packets(packets) => packets.address.to_string(),
            Self::PvAccess(pv) => format!("{}/{}", pv.endpoint, pv.options.name),
        }
    }

    /// Name of one of its streams, if a recording has several sources.
    #[must_use]
    pub fn stream_name(&self, name: &str) -> String {
        match self {
            Self::Dectris(_) | Self::Packets(_) => format!("{}-{name}", self.prefix()),
            // The prefix contains the name of its only stream.
            Self::PvAccess(_) => self.prefix(),
        }
    }

    /// Where to connect to; `None` for packets.
    #[must_use]
    pub fn endpoint(&self) -> Option<&Endpoint> {
        match self {
            Self::Dectris(endpoint) => Some(endpoint),
            Self::PvAccess(pv) => Some(&pv.endpoint),
            Self::Packets(_) => None,
        }
    }

    /// Whether it sends until the recording ends.
    #[must_use]
    pub fn is_endless(&self) -> bool {
        !matches!(self, Self::Dectris(_))
    }
}

impl FromStr for SourceAddress {
    type Err = SourceAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let scheme = || SourceAddressError::Scheme(text.to_owned());
        let (name, rest) = text.split_once("://").ok_or_else(scheme)?;
        match name {
            "zmq" => Ok(Self::Dectris(Endpoint::with_default_port(rest, DECTRIS_V2_PORT)?)),
            "pva" => Ok(Self::PvAccess(pv(text, rest)?)),
            "udp" => Ok(Self::Packets(packets(text, rest, Format::Counter(Counter::default()))?)),
            "vdif" => Ok(Self::Packets(packets(text, rest, Format::Vdif(Vdif::default()))?)),
            _ => Err(scheme()),
        }
    }
}

/// Parses `[HOST]:PORT[,OPTION=VALUE…]`; without a host, all addresses of this machine.
fn packets(text: &str, rest: &str, format: Format) -> Result<PacketAddress, SourceAddressError> {
    let (host, list) = rest.split_once(',').unwrap_or((rest, ""));
    let endpoint: Endpoint =
        if host.starts_with(':') { format!("0.0.0.0{host}").parse()? } else { host.parse()? };
    let mut packets = PacketAddress {
        text: text.to_owned(),
        address: endpoint.address(),
        interface: None,
        buffer_bytes: BUFFER_BYTES,
        options: Options::new(format),
    };
    for option in list.split(',').filter(|option| !option.is_empty()) {
        packets.apply(option).map_err(|why| SourceAddressError::Option {
            text: text.to_owned(),
            option: option.to_owned(),
            why,
        })?;
    }
    Ok(packets)
}

/// Parses `HOST[:PORT]/PVNAME[,queue=N]`.
fn pv(text: &str, rest: &str) -> Result<PvAddress, SourceAddressError> {
    let is_name = |name: &str| {
        (1..=PV_NAME_BYTES_MAX).contains(&name.len())
            && !name.chars().any(|c| c.is_control() || c.is_whitespace())
    };
    let (host, rest) = rest.split_once('/').ok_or_else(|| SourceAddressError::Pv(text.to_owned()))?;
    let (name, list) = rest.split_once(',').unwrap_or((rest, ""));
    if !is_name(name) {
        return Err(SourceAddressError::Pv(text.to_owned()));
    }
    let mut options = PvOptions::new(name.to_owned());
    for option in list.split(',').filter(|option| !option.is_empty()) {
        let queue = option.strip_prefix("queue=").and_then(|number| number.parse::<u32>().ok());
        let why = || format!("pva:// has queue=N, with N from 2 to {QUEUE_MAX}");
        options.queue = queue.filter(|queue| (2..=QUEUE_MAX).contains(queue)).ok_or_else(|| {
            SourceAddressError::Option { text: text.to_owned(), option: option.to_owned(), why: why() }
        })?;
    }
    let endpoint = Endpoint::with_default_port(host, PVACCESS_PORT)?;
    Ok(PvAddress { text: text.to_owned(), endpoint, options })
}

impl PacketAddress {
    fn apply(&mut self, option: &str) -> Result<(), String> {
        let (name, value) = option.split_once('=').ok_or("expected OPTION=VALUE")?;
        let number = |most: u64| {
            let number = value.parse().ok().filter(|number| *number <= most);
            number.ok_or_else(|| format!("expected a whole number, at most {most}"))
        };
        let positive = |most: u64| match number(most)? {
            0 => Err("must be at least 1".to_owned()),
            number => Ok(number),
        };
        match (name, &mut self.options.format) {
            ("skip", _) => self.options.skip = number(1024)? as usize,
            ("window", _) => self.options.window = number(WINDOW_MAX)? as usize,
            ("buffer", _) => {
                let bytes = value.parse::<Bytes>().map_err(|e| e.to_string())?;
                self.buffer_bytes = usize::try_from(bytes.0).unwrap_or(usize::MAX);
            }
            ("interface", _) => self.interface = Some(value.to_owned()),
            ("counter", Format::Counter(counter)) => {
                let step = counter.step;
                let place = Counter::parse(value)
                    .ok_or("expected a type and offset such as u64be@0, u48be@2 or u32le")?;
                *counter = Counter { step, ..place };
            }
            ("step", Format::Counter(counter)) => counter.step = positive(1 << 32)?,
            ("frames-per-second", Format::Vdif(vdif)) => {
                vdif.frames_per_second = Some(positive(FRAMES_PER_SECOND_MAX)?);
            }
            (_, Format::Counter(_)) => {
                return Err(
                    "unknown option; udp:// has counter, step, skip, window, buffer and interface".to_owned()
                );
            }
            (_, Format::Vdif(_)) => {
                return Err(
                    "unknown option; vdif:// has frames-per-second, skip, window, buffer and interface"
                        .to_owned(),
                );
            }
        }
        Ok(())
    }
}

impl fmt::Display for SourceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dectris(endpoint) => write!(f, "zmq://{endpoint}"),
            Self::Packets(packets) => f.write_str(&packets.text),
            Self::PvAccess(pv) => f.write_str(&pv.text),
        }
    }
}

impl fmt::Display for PacketAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
