//! Capability of a part from its figures.

use super::Formula;
use crate::formulas::store::Direction;
use crate::formulas::{bus, link, store};
use crate::system::Currency;

/// Capacity of one part, and costs of a path through it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Capability {
    /// Currency.
    pub currency: Currency,
    /// Capacity per second.
    pub capacity: f64,
    /// Cost per payload byte into memory; 0 if the path must specify it.
    pub per_byte_read: f64,
    /// Cost per payload byte out of memory; 0 if the path must specify it.
    pub per_byte_write: f64,
    /// Cost per operation.
    pub per_operation: f64,
    /// Access time of a random position, seconds.
    pub access_seconds: f64,
}

impl Capability {
    /// Cost per payload byte in its currency.
    #[must_use]
    pub fn per_byte(&self, direction: Direction) -> f64 {
        match direction {
            Direction::Read => self.per_byte_read,
            Direction::Write => self.per_byte_write,
        }
    }

    fn bytes(capacity: f64) -> Self {
        Self::bytes_at_cost(capacity, 1.0)
    }

    fn bytes_at_cost(capacity: f64, cost: f64) -> Self {
        Self { per_byte_read: cost, per_byte_write: cost, ..Self::of(Currency::Bytes, capacity) }
    }

    fn of(currency: Currency, capacity: f64) -> Self {
        let zero = 0.0;
        Self {
            currency,
            capacity,
            per_byte_read: zero,
            per_byte_write: zero,
            per_operation: zero,
            access_seconds: zero,
        }
    }
}

/// Figures by name, in base units.
#[derive(Clone, Copy)]
struct Drawn<'a>(&'a [(&'static str, f64)]);

impl Drawn<'_> {
    fn maybe(self, name: &str) -> Option<f64> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    fn get(self, name: &str) -> Result<f64, String> {
        self.maybe(name).ok_or_else(|| format!("the figure {name} is missing"))
    }
}

/// Capability for a formula and figures in base units.
///
/// # Errors
/// A missing figure, or figures that contradict each other: the result is not positive and finite.
pub(super) fn of(formula: Formula, drawn: &[(&'static str, f64)]) -> Result<Capability, String> {
    let drawn = Drawn(drawn);
    let capability = match formula {
        Formula::Rate => Capability::bytes(drawn.get("rate")? * drawn.maybe("efficiency").unwrap_or(1.0)),
        Formula::Operations => {
            Capability { per_operation: 1.0, ..Capability::of(Currency::Operations, drawn.get("rate")?) }
        }
        Formula::ParallelBus => parallel_bus(drawn)?,
        Formula::Handshake => {
            let response = drawn.maybe("response").unwrap_or(0.0);
            Capability::bytes(bus::handshake_rate(drawn.get("width")?, drawn.get("cycle")?, response))
        }
        Formula::Pcie => pcie(drawn)?,
        Formula::FibreChannel => fibre_channel(drawn)?,
        Formula::Ethernet => {
            let cost = link::ethernet_cost(drawn.get("mtu")?, drawn.get("headers")?, drawn.get("frame")?);
            Capability::bytes_at_cost(drawn.get("line")?, cost)
        }
        Formula::SerialLink => {
            let line = link::serial_line(drawn.get("baud")?, drawn.get("coding")?);
            Capability::bytes(line * drawn.get("efficiency")?)
        }
        Formula::Register => {
            let word_seconds = drawn.get("word_time")? / drawn.get("word")?;
            Capability {
                per_byte_read: word_seconds,
                per_byte_write: word_seconds,
                per_operation: drawn.get("set_up")?,
                ..Capability::of(Currency::Seconds, 1.0)
            }
        }
        Formula::Disk => disk(drawn, drawn.get("rate")?),
        Formula::DiskGeometry => {
            disk(drawn, store::track_rate(drawn.get("sectors")?, drawn.get("turns")?, drawn.get("skew")?))
        }
        Formula::Flash => {
            let read = drawn.get("read")?;
            Capability { per_byte_write: read / drawn.get("write")?, ..disk(drawn, read) }
        }
        Formula::Processor => Capability::of(Currency::Cycles, drawn.get("clock")?),
        Formula::Memory => {
            let channel = bus::parallel_peak(drawn.get("width")?, drawn.get("transfers")?);
            Capability::bytes(channel * drawn.get("channels")? * drawn.get("efficiency")?)
        }
        Formula::Thread => Capability::of(Currency::Seconds, 1.0),
    };
    checked(capability)
}

fn checked(capability: Capability) -> Result<Capability, String> {
    let Capability { capacity, per_byte_read, per_byte_write, .. } = capability;
    if !(capacity > 0.0 && capacity.is_finite()) {
        return Err("its figures contradict each other: they leave it no capacity".to_owned());
    }
    if [per_byte_read, per_byte_write].iter().any(|cost| !(*cost >= 0.0 && cost.is_finite())) {
        return Err("its figures contradict each other: overhead leaves no space for payload".to_owned());
    }
    Ok(capability)
}

fn disk(drawn: Drawn<'_>, rate: f64) -> Capability {
    Capability { access_seconds: drawn.maybe("access").unwrap_or(0.0), ..Capability::bytes(rate) }
}

fn parallel_bus(drawn: Drawn<'_>) -> Result<Capability, String> {
    let (width, burst) = (drawn.get("width")?, drawn.get("burst")?);
    let cost = |clocks| bus::parallel_cost(width, burst, clocks);
    Ok(Capability {
        per_byte_read: cost(drawn.get("clocks_read")?),
        per_byte_write: cost(drawn.get("clocks_write")?),
        ..Capability::of(Currency::Bytes, bus::parallel_peak(width, drawn.get("clock")?))
    })
}

fn pcie(drawn: Drawn<'_>) -> Result<Capability, String> {
    let line = bus::pcie_line(drawn.get("lanes")?, drawn.get("transfers")?, drawn.get("coding")?);
    let payload = drawn.get("payload")?;
    let commands = match (drawn.maybe("request"), drawn.maybe("command")) {
        (Some(request), Some(command)) => 1.0 + command / request,
        _ => 1.0,
    };
    let cost = |header| bus::packet_cost(payload, header) * commands;
    Ok(Capability {
        per_byte_read: cost(drawn.get("header_read")?),
        per_byte_write: cost(drawn.get("header_write")?),
        ..Capability::of(Currency::Bytes, line * (1.0 - drawn.get("link_packets")?))
    })
}

fn fibre_channel(drawn: Drawn<'_>) -> Result<Capability, String> {
    let baud = drawn.get("baud")?;
    let line = link::serial_line(baud, drawn.get("coding")?);
    let frames = link::frame_cost(drawn.get("frame")?, drawn.get("overhead")?);
    let share = match drawn.maybe("nodes") {
        Some(nodes) => {
            let turn = link::loop_turn(nodes, drawn.get("words_each")?, baud, drawn.get("fibre")?);
            link::tenancy_share(drawn.get("tenancy")?, line / frames, drawn.get("turns")?, turn)
        }
        None => 1.0,
    };
    Ok(Capability::bytes_at_cost(line * share, frames))
}
