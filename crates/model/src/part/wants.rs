//! Figures of each formula: name, unit, and whether required.

use super::Formula;
use crate::unit::Dimension::{self, Bytes, BytesPerSecond, Count, Metres, PerSecond, Seconds, Share, Words};

/// A figure of a formula.
#[derive(Debug, Clone, Copy)]
pub struct Want {
    /// Name in files.
    pub name: &'static str,
    /// Dimension.
    pub dimension: Dimension,
    /// Whether it is required.
    pub required: bool,
    /// Whether it may be zero.
    pub zero: bool,
}

const fn want(name: &'static str, dimension: Dimension) -> Want {
    Want { name, dimension, required: true, zero: false }
}

const fn or_zero(name: &'static str, dimension: Dimension) -> Want {
    Want { zero: true, ..want(name, dimension) }
}

const fn may(name: &'static str, dimension: Dimension) -> Want {
    Want { required: false, ..or_zero(name, dimension) }
}

const RATE: &[Want] = &[want("rate", BytesPerSecond), may("efficiency", Share)];
const OPERATIONS: &[Want] = &[want("rate", PerSecond)];
const PARALLEL_BUS: &[Want] = &[
    want("width", Bytes),
    want("clock", PerSecond),
    want("burst", Bytes),
    or_zero("clocks_read", Count),
    or_zero("clocks_write", Count),
];
const HANDSHAKE: &[Want] = &[want("width", Bytes), want("cycle", Seconds), may("response", Seconds)];
const PCIE: &[Want] = &[
    want("transfers", PerSecond),
    want("coding", Share),
    want("lanes", Count),
    want("payload", Bytes),
    or_zero("header_read", Bytes),
    or_zero("header_write", Bytes),
    or_zero("link_packets", Share),
    Want { zero: false, ..may("request", Bytes) },
    may("command", Bytes),
];
const FIBRE_CHANNEL: &[Want] = &[
    want("baud", PerSecond),
    want("coding", Share),
    want("frame", Bytes),
    or_zero("overhead", Bytes),
    may("nodes", Count),
    may("words_each", Words),
    may("fibre", Metres),
    Want { zero: false, ..may("tenancy", Bytes) },
    may("turns", Count),
];
const ETHERNET: &[Want] =
    &[want("line", BytesPerSecond), want("mtu", Bytes), or_zero("headers", Bytes), or_zero("frame", Bytes)];
const SERIAL_LINK: &[Want] = &[want("baud", PerSecond), want("coding", Share), want("efficiency", Share)];
const REGISTER: &[Want] = &[or_zero("set_up", Seconds), want("word_time", Seconds), want("word", Bytes)];
const DISK: &[Want] = &[want("rate", BytesPerSecond), may("access", Seconds)];
const DISK_GEOMETRY: &[Want] =
    &[want("sectors", Count), want("turns", PerSecond), or_zero("skew", Share), may("access", Seconds)];
const FLASH: &[Want] = &[want("read", BytesPerSecond), want("write", BytesPerSecond), may("access", Seconds)];
const PROCESSOR: &[Want] = &[want("clock", PerSecond)];
const MEMORY: &[Want] =
    &[want("transfers", PerSecond), want("width", Bytes), want("channels", Count), want("efficiency", Share)];

impl Formula {
    /// Figures of a formula.
    #[must_use]
    pub fn wants(self) -> &'static [Want] {
        match self {
            Self::Rate => RATE,
            Self::Operations => OPERATIONS,
            Self::ParallelBus => PARALLEL_BUS,
            Self::Handshake => HANDSHAKE,
            Self::Pcie => PCIE,
            Self::FibreChannel => FIBRE_CHANNEL,
            Self::Ethernet => ETHERNET,
            Self::SerialLink => SERIAL_LINK,
            Self::Register => REGISTER,
            Self::Disk => DISK,
            Self::DiskGeometry => DISK_GEOMETRY,
            Self::Flash => FLASH,
            Self::Processor => PROCESSOR,
            Self::Memory => MEMORY,
            Self::Thread => &[],
        }
    }

    /// Figures that are only valid together.
    pub(super) fn together(self) -> &'static [&'static str] {
        match self {
            Self::Pcie => &["request", "command"],
            Self::FibreChannel => &["nodes", "words_each", "fibre", "tenancy", "turns"],
            _ => &[],
        }
    }
}
