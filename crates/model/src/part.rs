//! A part: a formula, and the figures that go into it.
//!
//! Invariants: a part that passed [`Part::check`] has every figure that its formula wants and no other, in the
//! right unit, and comes to a capability with the values and at the ends of every range.

mod capability;

use std::collections::BTreeMap;

use keepup_plan::close_names;
use serde::{Deserialize, Serialize};

pub use capability::Capability;

use crate::error::Fault;
use crate::formulas::store::Direction;
use crate::ranged::Ranged;
use crate::unit::Dimension;

/// How the figures of a part come to what it can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Formula {
    /// Bytes per second, less what `efficiency` leaves out.
    Rate,
    /// Operations per second.
    Operations,
    /// A bus that all masters share, such as PCI.
    ParallelBus,
    /// A bus with a handshake for each word, such as VME.
    Handshake,
    /// A PCI Express link; with `request` and `command` what an NVMe request costs on it.
    Pcie,
    /// A Fibre Channel link, or a loop with its nodes.
    FibreChannel,
    /// An Ethernet link.
    Ethernet,
    /// The link of a disk, such as SATA and SAS.
    SerialLink,
    /// A way of reading registers: one after another.
    Register,
    /// A disk by its rate.
    Disk,
    /// A disk by its geometry.
    DiskGeometry,
    /// A solid-state disk, which reads and writes at different rates.
    Flash,
    /// A core of a processor.
    Processor,
    /// Memory by its channels.
    Memory,
    /// One thread, or anything that does one thing after another.
    Thread,
}

/// A figure that a formula takes.
#[derive(Debug, Clone, Copy)]
pub struct Want {
    /// Its name in files.
    pub name: &'static str,
    /// What it is counted in.
    pub dimension: Dimension,
    /// Whether the formula cannot do without.
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

impl Formula {
    /// The figures that it takes.
    #[must_use]
    pub fn wants(self) -> &'static [Want] {
        use Dimension::{Bytes, BytesPerSecond, Count, Metres, PerSecond, Seconds, Share, Words};
        match self {
            Self::Rate => const { &[want("rate", BytesPerSecond), may("efficiency", Share)] },
            Self::Operations => const { &[want("rate", PerSecond)] },
            Self::ParallelBus => {
                const {
                    &[
                        want("width", Bytes),
                        want("clock", PerSecond),
                        want("burst", Bytes),
                        or_zero("clocks_read", Count),
                        or_zero("clocks_write", Count),
                    ]
                }
            }
            Self::Handshake => {
                const { &[want("width", Bytes), want("cycle", Seconds), may("response", Seconds)] }
            }
            Self::Pcie => {
                const {
                    &[
                        want("transfers", PerSecond),
                        want("coding", Share),
                        want("lanes", Count),
                        want("payload", Bytes),
                        or_zero("header_read", Bytes),
                        or_zero("header_write", Bytes),
                        or_zero("link_packets", Share),
                        may("request", Bytes),
                        may("command", Bytes),
                    ]
                }
            }
            Self::FibreChannel => {
                const {
                    &[
                        want("baud", PerSecond),
                        want("coding", Share),
                        want("frame", Bytes),
                        or_zero("overhead", Bytes),
                        may("nodes", Count),
                        may("words_each", Words),
                        may("fibre", Metres),
                        may("tenancy", Bytes),
                        may("turns", Count),
                    ]
                }
            }
            Self::Ethernet => {
                const {
                    &[
                        want("line", BytesPerSecond),
                        want("mtu", Bytes),
                        or_zero("headers", Bytes),
                        or_zero("frame", Bytes),
                    ]
                }
            }
            Self::SerialLink => {
                const { &[want("baud", PerSecond), want("coding", Share), want("efficiency", Share)] }
            }
            Self::Register => {
                const { &[or_zero("set_up", Seconds), want("word_time", Seconds), want("word", Bytes)] }
            }
            Self::Disk => const { &[want("rate", BytesPerSecond), may("access", Seconds)] },
            Self::DiskGeometry => {
                const {
                    &[
                        want("sectors", Count),
                        want("turns", PerSecond),
                        or_zero("skew", Share),
                        may("access", Seconds),
                    ]
                }
            }
            Self::Flash => {
                const { &[want("read", BytesPerSecond), want("write", BytesPerSecond), may("access", Seconds)] }
            }
            Self::Processor => const { &[want("clock", PerSecond)] },
            Self::Memory => {
                const {
                    &[
                        want("transfers", PerSecond),
                        want("width", Bytes),
                        want("channels", Count),
                        want("efficiency", Share),
                    ]
                }
            }
            Self::Thread => &[],
        }
    }

    /// Figures that go together: all of them or none.
    fn together(self) -> &'static [&'static str] {
        match self {
            Self::Pcie => &["request", "command"],
            Self::FibreChannel => &["nodes", "words_each", "fibre", "tenancy", "turns"],
            _ => &[],
        }
    }
}

/// A part of the catalogue, or one that a machine's file describes.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// What it is.
    pub title: String,
    /// The kind of part, as its file says; empty for one of a machine's own.
    pub family: String,
    /// How its figures come to what it can do.
    pub formula: Formula,
    /// Those figures.
    pub figures: BTreeMap<String, Ranged>,
}

impl Part {
    /// What one of it can do, each figure as `draw` has it.
    ///
    /// # Errors
    /// The figures contradict each other; in words.
    pub fn capability(&self, draw: &mut dyn FnMut(&Ranged) -> f64) -> Result<Capability, String> {
        let mut drawn = Vec::with_capacity(self.figures.len());
        for want in self.formula.wants() {
            drawn.extend(self.figures.get(want.name).map(|figure| (want.name, draw(figure))));
        }
        capability::of(self.formula, &drawn)
    }

    /// Bytes per second of payload in one direction, with the values as they are; none when it is not counted in bytes.
    ///
    /// # Errors
    /// The figures contradict each other; in words.
    pub fn payload_rate(&self, direction: Direction) -> Result<Option<f64>, String> {
        let capability = self.capability(&mut |figure| figure.value)?;
        let counts_bytes = capability.currency == crate::system::Currency::Bytes;
        Ok(counts_bytes.then(|| capability.capacity / capability.per_byte(direction)))
    }

    /// Checks one figure: its name and its unit.
    pub(crate) fn check_figure(&self, name: &str, figure: &Ranged) -> Result<(), String> {
        let wants = self.formula.wants();
        let Some(want) = wants.iter().find(|want| want.name == name) else {
            let known = wants.iter().map(|want| want.name);
            let close = close_names(name, known.clone());
            let known: Vec<&str> = known.collect();
            let hint = if close.is_empty() { known.join(", ") } else { close.join(", ") };
            let hint = if hint.is_empty() { String::new() } else { format!("\nhint: it has {hint}") };
            return Err(format!("{} has no figure {name:?}{hint}", self.name));
        };
        if figure.unit.dimension() != want.dimension {
            let got = match figure.unit.name() {
                "" => "a plain number",
                name => name,
            };
            return Err(format!(
                "{name} of part {} wants {}, got {got}",
                self.name,
                want.dimension.example()
            ));
        }
        if figure.low == 0.0 && !want.zero {
            return Err(format!("{name} of part {} cannot be zero", self.name));
        }
        Ok(())
    }

    /// Checks that it has what its formula wants, and comes to something.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        for (name, figure) in &self.figures {
            self.check_figure(name, figure).map_err(|why| Fault::new(name.as_str(), why))?;
        }
        let has = |name: &str| self.figures.contains_key(name);
        let missing = |name: &str, dimension: Dimension, why: &str| {
            let example = dimension.example();
            Fault::new("", format!("part {} lacks the figure {name}, in {example}{why}", self.name))
        };
        for want in self.formula.wants() {
            if want.required && !has(want.name) {
                return Err(missing(want.name, want.dimension, ""));
            }
        }
        let group = self.formula.together();
        if let Some(present) = group.iter().find(|name| has(name)) {
            let wants = self.formula.wants().iter().filter(|want| group.contains(&want.name));
            for want in wants {
                if !has(want.name) {
                    return Err(missing(want.name, want.dimension, &format!(": {present} needs it")));
                }
            }
        }
        let ends: [fn(&Ranged) -> f64; 3] =
            [|figure| figure.value, |figure| figure.low, |figure| figure.high];
        for mut end in ends {
            self.capability(&mut end).map_err(|why| Fault::new("", format!("part {}: {why}", self.name)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "part_tests.rs"]
mod tests;
