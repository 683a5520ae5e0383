//! Address of a detector, as a user names it.
use std::borrow::Cow;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use keepup_error::{Diagnostic, ErrorClass};
use keepup_peer::{Endpoint, EndpointError};
use keepup_plan::units::Bytes;
use keepup_stream::wire::printable_end;

use crate::dectris::Dectris;
use crate::directory::{DirectoryAddress, Files, SCHEME};
use crate::packets::{Options, Packets};
use crate::paths::{PREFIX_BYTES_MAX, split_path};
use crate::pvaccess::{Options as PvOptions, PvAccess, QUEUE_MAX};
use crate::{Decoder, Limits, STREAMS_MAX};

/// Port of Stream V2. Stream V1 uses 9999.
const DECTRIS_V2_PORT: u16 = 31_001;
/// Port of pvAccess.
const PVACCESS_PORT: u16 = 5075;
/// Longest name of a PV, in bytes: it is a prefix.
const PV_NAME_BYTES_MAX: usize = PREFIX_BYTES_MAX;
/// Default receive buffer for packets, in bytes.
const BUFFER_BYTES: usize = 64 << 20;

/// Protocol and place of a detector, such as `zmq://detector:31001`, or a file with its packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceAddress {
    /// A DECTRIS detector, to connect to.
    Dectris(Endpoint),
    /// Packets that arrive at an address of this machine, or at a multicast group.
    Packets(PacketAddress),
    /// Packets in a capture file.
    Capture(CaptureAddress),
    /// Files that another program writes into a directory of this machine.
    Directory(DirectoryAddress),
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

/// A capture file, and what its packets mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureAddress {
    text: String,
    /// The file.
    pub path: PathBuf,
    /// Only packets to this UDP port; `None`: to any port.
    pub port: Option<u16>,
    /// Whether packets are handed out at the pace of the capture, or as fast as they are recorded.
    pub keeps_pace: bool,
    /// Meaning of the packets.
    pub options: Options,
}

/// Error for a text that is not a valid detector address.
#[derive(Debug, thiserror::Error)]
pub enum SourceAddressError {
    /// Unknown scheme.
    #[error(
        "cannot use {0:?} as a source: the scheme must be zmq://, pva://, udp://, vdif://, spead://, \
         pcap: or dir:"
    )]
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
                "zmq://HOST for a DECTRIS detector, pva://HOST/PVNAME for EPICS areaDetector, \
                 udp://:PORT for numbered UDP packets, vdif://:PORT for VDIF frames, \
                 spead://:PORT for SPEAD heaps, pcap:FILE for a capture file, \
                 dir:PATH for the files of a directory"
                    .into(),
            ),
            Self::Pv(_) => Some("such as pva://ioc1/13SIM1:Pva1:Image".into()),
            Self::Endpoint(error) => error.hint(),
            Self::Option { text, .. } if text.starts_with("dir:") || text.starts_with("pcap:") => {
                Some("write a comma in a path as ,,; see `keepup record --help`".into())
            }
            Self::Option { .. } => Some("see `keepup record --help`".into()),
        }
    }
}

impl SourceAddress {
    /// A decoder of what it sends from `opened_ns` on, ns since the Unix epoch.
    #[must_use]
    pub fn decoder(&self, limits: Limits, opened_ns: u64) -> Box<dyn Decoder> {
        match self {
            Self::Dectris(_) => Box::new(Dectris::new(limits)),
            Self::Packets(packets) => Box::new(Packets::new(packets.options.clone(), limits, opened_ns)),
            // They were captured before the recording.
            Self::Capture(capture) => Box::new(Packets::new(capture.options.clone(), limits, 0)),
            Self::Directory(directory) => Box::new(Files::new(&directory.path)),
            Self::PvAccess(pv) => Box::new(PvAccess::new(pv.options.clone(), limits)),
        }
    }

    /// Whether the source sends series, which end by themselves.
    #[must_use]
    pub fn has_series(&self) -> bool {
        matches!(self, Self::Dectris(_))
    }

    /// Its part in the names of streams, if a recording has several sources.
    #[must_use]
    pub fn prefix(&self) -> String {
        match self {
            Self::Dectris(endpoint) => endpoint.to_string(),
            Self::Packets(packets) => packets.address.to_string(),
            Self::Capture(capture) => {
                let name = capture.path.file_name().unwrap_or_default();
                printable_end(&name.to_string_lossy(), PREFIX_BYTES_MAX)
            }
            Self::Directory(directory) => directory.prefix(),
            Self::PvAccess(pv) => format!("{}/{}", pv.endpoint, pv.options.name),
        }
    }

    /// Name of one of its streams, if a recording has several sources.
    #[must_use]
    pub fn stream_name(&self, name: &str) -> String {
        match self {
            // The prefix contains the name of its only stream.
            Self::PvAccess(_) => self.prefix(),
            _ => format!("{}-{name}", self.prefix()),
        }
    }

    /// Where to connect to; `None` for what arrives by itself.
    #[must_use]
    pub fn endpoint(&self) -> Option<&Endpoint> {
        match self {
            Self::Dectris(endpoint) => Some(endpoint),
            Self::PvAccess(pv) => Some(&pv.endpoint),
            Self::Packets(_) | Self::Capture(_) | Self::Directory(_) => None,
        }
    }

    /// Whether it sends until the recording ends.
    #[must_use]
    pub fn is_endless(&self) -> bool {
        !self.has_series()
    }

    /// Whether it is the files of a directory.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        matches!(self, Self::Directory(_))
    }

    /// Most streams that it has, not counting maps.
    #[must_use]
    pub fn streams_max(&self) -> usize {
        match self {
            Self::Packets(packets) => packets.options.streams,
            Self::Capture(capture) => capture.options.streams,
            Self::Dectris(_) | Self::Directory(_) | Self::PvAccess(_) => STREAMS_MAX,
        }
    }

    /// Whether it sends packets.
    #[must_use]
    pub fn sends_packets(&self) -> bool {
        matches!(self, Self::Packets(_) | Self::Capture(_))
    }
}

impl FromStr for SourceAddress {
    type Err = SourceAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(rest) = text.strip_prefix("pcap:") {
            return Ok(Self::Capture(capture(text, rest)?));
        }
        if text.starts_with(SCHEME) {
            let text = text.to_owned();
            let directory = DirectoryAddress::parse(&text);
            return directory.map(Self::Directory).map_err(|(option, why)| SourceAddressError::Option {
                text,
                option,
                why,
            });
        }
        let scheme = || SourceAddressError::Scheme(text.to_owned());
        let (name, rest) = text.split_once("://").ok_or_else(scheme)?;
        match name {
            "zmq" => return Ok(Self::Dectris(Endpoint::with_default_port(rest, DECTRIS_V2_PORT)?)),
            "pva" => return Ok(Self::PvAccess(pv(text, rest)?)),
            _ => {}
        }
        let options = Options::of_scheme(name).ok_or_else(scheme)?;
        Ok(Self::Packets(packets(text, rest, options)?))
    }
}

/// Parses `[HOST]:PORT[,OPTION=VALUE…]`; without a host, all addresses of this machine.
fn packets(text: &str, rest: &str, options: Options) -> Result<PacketAddress, SourceAddressError> {
    let (host, list) = rest.split_once(',').unwrap_or((rest, ""));
    let endpoint: Endpoint =
        if host.starts_with(':') { format!("0.0.0.0{host}").parse()? } else { host.parse()? };
    let (mut interface, mut buffer_bytes, mut options) = (None, BUFFER_BYTES, options);
    parse_options(text, list, |name, value| match name {
        "buffer" => {
            let bytes = value.parse::<Bytes>().map_err(|e| e.to_string())?;
            buffer_bytes = usize::try_from(bytes.0).unwrap_or(usize::MAX);
            Ok(())
        }
        "interface" => {
            interface = Some(value.to_owned());
            Ok(())
        }
        _ => options.apply(name, value, "buffer and interface"),
    })?;
    options.check().map_err(|why| option_error(text, list, why))?;
    Ok(PacketAddress { text: text.to_owned(), address: endpoint.address(), interface, buffer_bytes, options })
}

/// Parses `HOST[:PORT]/PVNAME[,queue=N]`.
fn pv(text: &str, rest: &str) -> Result<PvAddress, SourceAddressError> {
    let is_name = |name: &str| {
        !name.is_empty()
            && !name.contains(char::is_whitespace)
            && printable_end(name, PV_NAME_BYTES_MAX) == name
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

/// Parses `FILE[,as=FORMAT][,OPTION=VALUE…]`.
fn capture(text: &str, rest: &str) -> Result<CaptureAddress, SourceAddressError> {
    let (path, list) = split_path(rest);
    if path.is_empty() {
        return Err(option_error(text, &path, "expected pcap:FILE".to_owned()));
    }
    let format = list.split(',').find_map(|option| option.strip_prefix("as=")).unwrap_or("udp");
    let options = Options::of_scheme(format);
    let mut options = options.ok_or_else(|| {
        option_error(text, &format!("as={format}"), "expected udp, vdif or spead".to_owned())
    })?;
    let (mut port, mut keeps_pace) = (None, false);
    parse_options(text, list, |name, value| {
        match (name, value) {
            ("as", _) => {}
            ("port", _) => port = Some(value.parse().map_err(|_| "expected a UDP port, 0 to 65535")?),
            ("pace", "original") => keeps_pace = true,
            ("pace", "max") => keeps_pace = false,
            ("pace", _) => return Err("expected original or max".to_owned()),
            _ => return options.apply(name, value, "as, port and pace"),
        }
        Ok(())
    })?;
    options.check().map_err(|why| option_error(text, list, why))?;
    Ok(CaptureAddress { text: text.to_owned(), path: path.into(), port, keeps_pace, options })
}

/// Parses `OPTION=VALUE,…`.
fn parse_options(
    text: &str,
    list: &str,
    mut apply: impl FnMut(&str, &str) -> Result<(), String>,
) -> Result<(), SourceAddressError> {
    for option in list.split(',').filter(|option| !option.is_empty()) {
        let applied = match option.split_once('=') {
            Some((name, value)) => apply(name, value),
            None => Err("expected OPTION=VALUE".to_owned()),
        };
        applied.map_err(|why| option_error(text, option, why))?;
    }
    Ok(())
}

fn option_error(text: &str, option: &str, why: String) -> SourceAddressError {
    SourceAddressError::Option { text: text.to_owned(), option: option.to_owned(), why }
}

impl fmt::Display for SourceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dectris(endpoint) => write!(f, "zmq://{endpoint}"),
            Self::Packets(packets) => packets.fmt(f),
            Self::Capture(capture) => capture.fmt(f),
            Self::Directory(directory) => directory.fmt(f),
            Self::PvAccess(pv) => f.write_str(&pv.text),
        }
    }
}

impl fmt::Display for PacketAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for CaptureAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
