//! A machine: resources made of parts, and the paths of data through them.
//!
//! Invariants: a machine that comes out of [`Machine::parse`], [`machine`] or [`Machine::with`] is checked: its
//! parts are there, units fit, and no path includes itself. Whoever makes one otherwise calls
//! [`Machine::check`].

mod assembly;
mod builtin;
mod check;
mod setting;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use assembly::Assembly;
pub use builtin::{machine, machine_names};

use crate::catalogue;
use crate::error::{Fault, ModelError, read};
use crate::formulas::store::{Direction, Layout};
use crate::part::{Formula, Part};
use crate::ranged::Ranged;
use crate::system::System;

/// A machine as its file has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Its name; a built-in one's is where its file lies.
    pub name: String,
    /// What it is.
    pub title: String,
    /// What a reader should know: what is fitted, and to what.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The path that is meant when none is named.
    pub main: String,
    /// How many of them there are, at least 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub hosts: u32,
    /// What it has.
    pub resource: BTreeMap<String, ResourceSpec>,
    /// Ways of data through it.
    pub path: BTreeMap<String, PathSpec>,
    /// What may run beside a path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub beside: BTreeMap<String, BesideSpec>,
}

/// Something that a machine has: a part of the catalogue, or a formula with figures of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceSpec {
    /// Name in the catalogue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// Formula of a part that the catalogue does not have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formula: Option<Formula>,
    /// How many of it each host has.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u32,
    /// How they are joined, where they are disks.
    #[serde(default, skip_serializing_if = "is_each")]
    pub layout: Layout,
    /// Whether all hosts together have these, such as one network.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shared: bool,
    /// Figures in the place of the part's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, Ranged>,
}

/// A way of data through a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathSpec {
    /// What it is.
    pub about: String,
    /// Which way data go, seen from the host's memory.
    pub direction: Direction,
    /// Payload of one operation; one that is included without its own has that of the path around it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<Ranged>,
    /// Other paths that data go through too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub includes: Vec<String>,
    /// What data go through.
    #[serde(rename = "stage", default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageSpec>,
}

/// What a path asks of one resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageSpec {
    /// The resource.
    pub on: String,
    /// How often the payload crosses it.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub times: f64,
    /// Disks whose layout says how often a byte crosses this resource: twice for mirrored writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crosses: Option<String>,
    /// Whether each operation goes to a random place, and pays the access.
    #[serde(default, skip_serializing_if = "is_false")]
    pub random: bool,
    /// Multiplies what a byte costs: what the part's own figures do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<Ranged>,
    /// Cost of a byte in the place of the part's: `cycles/B` or `s/GB`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_byte: Option<Ranged>,
    /// The rate at which this alone keeps the resource busy, in the place of `per_byte`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Ranged>,
    /// Cost of an operation: cycles, seconds or bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_operation: Option<Ranged>,
    /// Set where a master of a bus waits for answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowSpec>,
}

/// A master of a bus that waits for answers; see [`crate::Window`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowSpec {
    /// Requests under way.
    pub outstanding: Ranged,
    /// Bytes of each.
    pub request: Ranged,
    /// From a request to its last byte on a quiet bus.
    pub round_trip: Ranged,
    /// What another master moves before the bus comes back, bytes.
    pub behind: Ranged,
}

/// Traffic beside a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BesideSpec {
    /// The path that it takes.
    pub path: String,
    /// Its payload.
    pub rate: Ranged,
    /// Whether it runs.
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

/// A resource with its part as it is in this machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitting {
    /// What the machine calls it.
    pub name: String,
    /// The part, with the machine's figures in it.
    pub part: Part,
    /// How many of it each host has.
    pub count: u32,
    /// How they are joined.
    pub layout: Layout,
    /// Whether all hosts together have these.
    pub shared: bool,
}

impl ResourceSpec {
    /// The part with the machine's figures in it.
    fn part(&self, name: &str) -> Result<Part, Fault> {
        let mut part = match (&self.part, self.formula) {
            (Some(part), None) => {
                catalogue::part(part).map_err(|error| Fault::new("part", error.to_string()))?
            }
            (None, Some(formula)) => Part {
                name: name.to_owned(),
                title: "a part of its own".to_owned(),
                family: String::new(),
                formula,
                figures: BTreeMap::new(),
            },
            (Some(_), Some(_)) => {
                return Err(Fault::new("formula", "it has a part already: name one of the two"));
            }
            (None, None) => {
                return Err(Fault::new("", "it has neither part nor formula\nhint: part = \"pci-32-33\""));
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
    /// Reads a machine. `file` is told in errors.
    ///
    /// # Errors
    /// What is no TOML, has unknown keys, or contradicts itself; with its place.
    pub fn parse(text: &str, file: &str) -> Result<Self, ModelError> {
        let machine: Self = read(text, file)?;
        machine.fault().map_err(|fault| fault.placed(text, file))?;
        Ok(machine)
    }

    /// Its text, which reads back as the same machine.
    ///
    /// # Errors
    /// None that is known; a machine has nothing that TOML cannot write.
    pub fn to_toml(&self) -> Result<String, ModelError> {
        toml::to_string(self).map_err(|error| self.unsolvable(error.to_string()))
    }

    /// Checks a machine that was not read.
    ///
    /// # Errors
    /// It contradicts itself.
    pub fn check(&self) -> Result<(), ModelError> {
        self.fault().map_err(|Fault { key, reason }| self.unsolvable(format!("{key}: {reason}")))
    }

    /// What it has, with parts from the catalogue and the machine's own figures in them.
    ///
    /// # Errors
    /// A part that there is none of.
    pub fn resources(&self) -> Result<Vec<Fitting>, ModelError> {
        let fitting = |(name, spec): (&String, &ResourceSpec)| {
            let part =
                spec.part(name).map_err(|fault| self.unsolvable(format!("{name}: {}", fault.reason)))?;
            let ResourceSpec { count, layout, shared, .. } = *spec;
            Ok(Fitting { name: name.clone(), part, count, layout, shared })
        };
        self.resource.iter().map(fitting).collect()
    }

    /// One path in plain numbers: every figure is drawn once. `operation_bytes` is in the place of the path's own.
    ///
    /// # Errors
    /// No such path; no size of an operation; figures as drawn contradict each other.
    pub fn system(
        &self,
        path: &str,
        operation_bytes: Option<f64>,
        draw: &mut dyn FnMut(&Ranged) -> f64,
    ) -> Result<System, ModelError> {
        self.assembly(path, operation_bytes)?.system(draw)
    }

    /// One path made ready for many draws.
    ///
    /// # Errors
    /// No such path; no size of an operation.
    pub fn assembly(&self, path: &str, operation_bytes: Option<f64>) -> Result<Assembly, ModelError> {
        Assembly::of(self, path, operation_bytes)
    }

    fn unsolvable(&self, reason: String) -> ModelError {
        ModelError::Unsolvable { machine: self.name.clone(), reason }
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
