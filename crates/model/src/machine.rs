//! Machines: resources with their parts, and data paths through them.
//!
//! Invariants: a machine from [`Machine::parse`], [`machine`] or [`Machine::with`] is checked:
//! parts exist, units are compatible, and no path includes itself. Machines made otherwise need
//! [`Machine::check`].

mod assembly;
mod builtin;
mod check;
mod setting;

use std::collections::BTreeMap;

use keepup_error::Cause;
use serde::{Deserialize, Serialize};

pub use assembly::Assembly;
pub use builtin::{machine, machine_names};

use crate::catalogue;
use crate::error::{Fault, ModelError, read};
use crate::formulas::store::{Direction, Layout};
use crate::part::{Formula, Part};
use crate::ranged::Ranged;
use crate::system::System;

/// A machine in the form of its file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Name; for a built-in machine the path of its file.
    pub name: String,
    /// Title.
    pub title: String,
    /// Notes, such as fitted constants and their targets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Default path.
    pub main: String,
    /// Number of hosts, at least 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub hosts: u32,
    /// Resources.
    pub resource: BTreeMap<String, ResourceSpec>,
    /// Data paths.
    pub path: BTreeMap<String, PathSpec>,
    /// Optional background traffic.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub beside: BTreeMap<String, BesideSpec>,
}

/// A resource: a part of the catalog, or a formula with its own figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceSpec {
    /// Name in the catalog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// Formula of a part that is not in the catalog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formula: Option<Formula>,
    /// Count per host.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u32,
    /// RAID layout, for disks.
    #[serde(default, skip_serializing_if = "is_each")]
    pub layout: Layout,
    /// Whether it is shared by all hosts, such as one network.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shared: bool,
    /// Whether it serves requests in order of arrival, without an arbiter. Disks always do.
    #[serde(default, skip_serializing_if = "is_false")]
    pub queue: bool,
    /// Longest stall, which memory must bridge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall: Option<Ranged>,
    /// Figures that replace the part's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, Ranged>,
}

/// A data path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathSpec {
    /// Description.
    pub about: String,
    /// Direction of data, as seen from the host's memory.
    pub direction: Direction,
    /// Payload per operation; an included path without one uses that of the enclosing path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<Ranged>,
    /// Included paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub includes: Vec<String>,
    /// Stages.
    #[serde(rename = "stage", default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageSpec>,
}

/// Demand of a path on one resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageSpec {
    /// Resource.
    pub on: String,
    /// Number of times the payload crosses it.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub times: f64,
    /// Disks with a layout that determines how often a byte crosses this resource: twice for
    /// mirrored writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crosses: Option<String>,
    /// Whether each operation has a random position and thus an access time.
    #[serde(default, skip_serializing_if = "is_false")]
    pub random: bool,
    /// Factor on the cost per byte, beyond the part's own figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<Ranged>,
    /// Cost per byte, replacing the part's: `cycles/B` or `s/GB`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_byte: Option<Ranged>,
    /// Rate at which this alone saturates the resource, instead of `per_byte`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Ranged>,
    /// Cost per operation: cycles, seconds or bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_operation: Option<Ranged>,
    /// Set where a bus master waits for answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowSpec>,
    /// Bytes that the path keeps in flight on all units of a queue; see [`ResourceSpec::queue`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<Ranged>,
}

/// A bus master that waits for answers; see [`crate::Window`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowSpec {
    /// Outstanding requests.
    pub outstanding: Ranged,
    /// Bytes per request.
    pub request: Ranged,
    /// Time from a request to its last byte on an idle bus.
    pub round_trip: Ranged,
    /// Bytes transferred by another master before the bus is available again.
    pub behind: Ranged,
}

/// Background traffic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BesideSpec {
    /// Path of the traffic.
    pub path: String,
    /// Payload rate.
    pub rate: Ranged,
    /// Whether it is active.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub on: bool,
}

fn one() -> u32 {
    1
}

fn is_one(count: &u32) -> bool {
    *count == 1
}

fn once() -> f64 {
    1.0
}

fn is_once(times: &f64) -> bool {
    *times == 1.0
}

fn yes() -> bool {
    true
}

fn is_true(value: &bool) -> bool {
    *value
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_each(layout: &Layout) -> bool {
    *layout == Layout::Each
}

/// A resource with its part's figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitting {
    /// Name in the machine.
    pub name: String,
    /// Part, with the machine's figures.
    pub part: Part,
    /// Count per host.
    pub count: u32,
    /// RAID layout.
    pub layout: Layout,
    /// Whether it is shared by all hosts.
    pub shared: bool,
    /// Whether it serves requests in order of arrival.
    pub queue: bool,
}

impl ResourceSpec {
    /// The part with the machine's figures.
    fn part(&self, name: &str) -> Result<Part, Fault> {
        let mut part = match (&self.part, self.formula) {
            (Some(part), None) => {
                catalogue::part(part).map_err(|error| Fault::new("part", Cause::of(&error)))?
            }
            (None, Some(formula)) => Part {
                name: name.to_owned(),
                title: "custom part".to_owned(),
                family: String::new(),
                formula,
                figures: BTreeMap::new(),
            },
            (Some(_), Some(_)) => {
                return Err(Fault::new("formula", "part and formula exclude each other"));
            }
            (None, None) => {
                let reason = Cause::new("part or formula is missing");
                return Err(Fault::new("", reason.with_hint("add one, such as part = \"pci-32-33\"")));
            }
        };
        for (figure, value) in &self.set {
            part.check_figure(figure, value).map_err(|why| Fault::new(format!("set.{figure}"), why))?;
            part.figures.insert(figure.clone(), value.clone());
        }
        part.check().map_err(|fault| Fault::new("", fault.reason))?;
        Ok(part)
    }
}

impl Machine {
    /// Parses a machine. `file` is used in errors.
    ///
    /// # Errors
    /// Invalid TOML, unknown keys, or contradictions; with location.
    pub fn parse(text: &str, file: &str) -> Result<Self, ModelError> {
        let machine: Self = read(text, file)?;
        machine.fault().map_err(|fault| fault.placed(text, file))?;
        Ok(machine)
    }

    /// Text that parses back to the same machine.
    ///
    /// # Errors
    /// None in practice; all values can be written as TOML.
    pub fn to_toml(&self) -> Result<String, ModelError> {
        toml::to_string(self).map_err(|error| self.unsolvable(error.to_string()))
    }

    /// Checks a machine.
    ///
    /// # Errors
    /// It is inconsistent.
    pub fn check(&self) -> Result<(), ModelError> {
        self.fault().map_err(|fault| self.unsolvable(fault.into_cause()))
    }

    /// Resources with their parts and the machine's own figures.
    ///
    /// # Errors
    /// Unknown part.
    pub fn resources(&self) -> Result<Vec<Fitting>, ModelError> {
        let fitting = |(name, spec): (&String, &ResourceSpec)| {
            let part = spec
                .part(name)
                .map_err(|fault| self.unsolvable(fault.reason.map(|why| format!("{name}: {why}"))))?;
            let ResourceSpec { count, layout, shared, .. } = *spec;
            let queue = spec.queue || part.formula.is_disk();
            Ok(Fitting { name: name.clone(), part, count, layout, shared, queue })
        };
        self.resource.iter().map(fitting).collect()
    }

    /// Stalls of all resources, seconds.
    #[must_use]
    pub fn stall_seconds(&self) -> Vec<f64> {
        self.resource.values().filter_map(|spec| Some(spec.stall.as_ref()?.value)).collect()
    }

    /// One path in plain numbers, with every figure drawn once. `operation_bytes` replaces the
    /// path's own.
    ///
    /// # Errors
    /// Unknown path, no operation size, or drawn figures that contradict each other.
    pub fn system(
        &self,
        path: &str,
        operation_bytes: Option<f64>,
        draw: &mut dyn FnMut(&Ranged) -> f64,
    ) -> Result<System, ModelError> {
        self.assembly(path, operation_bytes)?.system(draw)
    }

    /// One path prepared for many draws.
    ///
    /// # Errors
    /// Unknown path, or no operation size.
    pub fn assembly(&self, path: &str, operation_bytes: Option<f64>) -> Result<Assembly, ModelError> {
        Assembly::of(self, path, operation_bytes)
    }

    fn unsolvable(&self, reason: impl Into<Cause>) -> ModelError {
        ModelError::Unsolvable { machine: self.name.clone(), reason: reason.into() }
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
