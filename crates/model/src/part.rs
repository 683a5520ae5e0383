//! A part: a formula and its figures.
//!
//! Invariants: a part that passed [`Part::check`] has exactly the figures of its formula, in the
//! right units, and a valid capability for the values and for the ends of every range.

mod capability;
mod wants;

use std::collections::BTreeMap;

use keepup_error::Cause;
use keepup_plan::close_names;
use serde::{Deserialize, Serialize};

pub use capability::Capability;
pub use wants::Want;

use crate::error::Fault;
use crate::formulas::store::Direction;
use crate::ranged::Ranged;
use crate::unit::Dimension;

/// Formula of a part's capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Formula {
    /// Bytes per second, times `efficiency`.
    Rate,
    /// Operations per second.
    Operations,
    /// A bus shared by all masters, such as PCI.
    ParallelBus,
    /// A bus with a handshake per word, such as VME.
    Handshake,
    /// A PCI Express link; with `request` and `command` the cost of an NVMe request on it.
    Pcie,
    /// A Fibre Channel link, or a loop with its nodes.
    FibreChannel,
    /// An Ethernet link.
    Ethernet,
    /// A disk link, such as SATA and SAS.
    SerialLink,
    /// A register access method: sequential words.
    Register,
    /// A disk, by its rate.
    Disk,
    /// A disk, by its geometry.
    DiskGeometry,
    /// A solid-state disk with different read and write rates.
    Flash,
    /// A CPU core.
    Processor,
    /// Memory, by its channels.
    Memory,
    /// One thread, or anything sequential.
    Thread,
}

impl Formula {
    /// Whether it is a disk, which serves requests in order of arrival.
    #[must_use]
    pub fn is_disk(self) -> bool {
        matches!(self, Self::Disk | Self::DiskGeometry | Self::Flash)
    }
}

/// A part of the catalog or of a machine's file.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Name.
    pub name: String,
    /// Title.
    pub title: String,
    /// Family in the catalog; empty for a machine's own part.
    pub family: String,
    /// Formula.
    pub formula: Formula,
    /// Figures.
    pub figures: BTreeMap<String, Ranged>,
}

impl Part {
    /// Capability of one part, with each figure as given by `draw`.
    ///
    /// # Errors
    /// The figures contradict each other; with explanation.
    pub fn capability(&self, draw: &mut dyn FnMut(&Ranged) -> f64) -> Result<Capability, String> {
        let drawn: Vec<(&str, f64)> = self.drawn().map(|(name, figure)| (name, draw(figure))).collect();
        capability::of(self.formula, &drawn)
    }

    /// Figures in the order of draws.
    pub(crate) fn drawn(&self) -> impl Iterator<Item = (&'static str, &Ranged)> {
        let wants = self.formula.wants().iter();
        wants.filter_map(|want| Some((want.name, self.figures.get(want.name)?)))
    }

    /// Payload rate in one direction at the nominal values, bytes per second; `None` if not counted
    /// in bytes.
    ///
    /// # Errors
    /// The figures contradict each other; with explanation.
    pub fn payload_rate(&self, direction: Direction) -> Result<Option<f64>, String> {
        let capability = self.capability(&mut |figure| figure.value)?;
        let counts_bytes = capability.currency == crate::system::Currency::Bytes;
        Ok(counts_bytes.then(|| capability.capacity / capability.per_byte(direction)))
    }

    /// Checks name and unit of one figure.
    pub(crate) fn check_figure(&self, name: &str, figure: &Ranged) -> Result<(), Cause> {
        let wants = self.formula.wants();
        let Some(want) = wants.iter().find(|want| want.name == name) else {
            let known = wants.iter().map(|want| want.name);
            let close = close_names(name, known.clone());
            let known: Vec<&str> = known.collect();
            let hint = if close.is_empty() { known.join(", ") } else { close.join(", ") };
            let hint = if hint.is_empty() { hint } else { format!("use one of {hint}") };
            return Err(Cause::new(format!("{} has no figure {name:?}", self.name)).with_hint(hint));
        };
        if figure.unit.dimension() != want.dimension {
            let got = match figure.unit.name() {
                "" => "a plain number",
                name => name,
            };
            return Err(format!(
                "{name} of part {} requires {}, got {got}",
                self.name,
                want.dimension.example()
            )
            .into());
        }
        if figure.low == 0.0 && !want.zero {
            return Err(format!("{name} of part {} must be above 0", self.name).into());
        }
        if want.dimension == Dimension::Share && figure.high > 1.0 {
            let why = format!("{name} of part {} must be at most 100 %", self.name);
            return Err(why.into());
        }
        Ok(())
    }

    /// Checks that all required figures are present and the capability is valid.
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
                    return Err(missing(want.name, want.dimension, &format!(", required by {present}")));
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
