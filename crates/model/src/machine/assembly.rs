//! From a machine to plain numbers, in two steps: names are looked up once, figures are drawn many times.

use std::collections::BTreeMap;

use super::{Machine, PathSpec, StageSpec};
use crate::error::ModelError;
use crate::formulas::store::Direction;
use crate::part::{Capability, Part};
use crate::ranged::Ranged;
use crate::system::{Flow, Resource, System, Use, Window};
use crate::unit::Dimension;

/// One path of a machine with its names looked up.
#[derive(Debug, Clone)]
pub struct Assembly {
    machine: String,
    resources: Vec<Ready>,
    paths: Vec<Vec<Stage>>,
    main: Vec<Leg>,
    operation_bytes: f64,
    beside: Vec<Beside>,
}

#[derive(Debug, Clone)]
struct Ready {
    name: String,
    part: Part,
    count: u32,
}

/// One stage, with what layouts make of it.
#[derive(Debug, Clone)]
struct Stage {
    resource: usize,
    direction: Direction,
    /// How often a byte crosses the resource.
    times: f64,
    /// Random accesses of an operation.
    accesses: f64,
    spec: StageSpec,
}

/// Stages of one path within another, and the operation whose cost they count, bytes; none for the whole
/// path's own.
#[derive(Debug, Clone, Copy)]
struct Leg {
    path: usize,
    operation_bytes: Option<f64>,
}

#[derive(Debug, Clone)]
struct Beside {
    name: String,
    rate: Ranged,
    hosts: f64,
    operation_bytes: f64,
    legs: Vec<Leg>,
}

/// Paths by name, each with its place among those that are needed.
type Places<'a> = BTreeMap<&'a str, usize>;

impl Assembly {
    pub(super) fn of(machine: &Machine, path: &str, operation: Option<f64>) -> Result<Self, ModelError> {
        let Some(spec) = machine.path.get(path) else {
            let known = machine.path.keys().map(String::as_str);
            return Err(ModelError::unknown("path", path, known));
        };
        let operation = operation.or(spec.operation.as_ref().map(|operation| operation.value));
        let operation_bytes =
            operation.filter(|bytes| *bytes > 0.0 && bytes.is_finite()).ok_or_else(|| {
                machine.unsolvable(format!(
                    "path {path} has no size of an operation\nhint: operation = \"1 MB\""
                ))
            })?;
        let mut places = Places::new();
        let mut paths = Vec::new();
        let main = legs(machine, path, None, &mut places, &mut paths)?;
        let mut beside = Vec::new();
        for (name, flow) in machine.beside.iter().filter(|(_, flow)| flow.on) {
            let known = machine.path.get(&flow.path).and_then(|path| path.operation.as_ref());
            beside.push(Beside {
                name: name.clone(),
                rate: flow.rate.clone(),
                hosts: f64::from(machine.hosts),
                operation_bytes: known.map_or(operation_bytes, |operation| operation.value),
                legs: legs(machine, &flow.path, None, &mut places, &mut paths)?,
            });
        }
        let resources = machine.resources()?.into_iter().map(|fitting| {
            let hosts = if fitting.shared { 1 } else { machine.hosts };
            Ready { name: fitting.name, part: fitting.part, count: fitting.count.saturating_mul(hosts) }
        });
        let resources = resources.collect();
        Ok(Self { machine: machine.name.clone(), resources, paths, main, operation_bytes, beside })
    }

    /// In plain numbers, each figure of a resource and of a stage drawn once.
    ///
    /// # Errors
    /// Figures as drawn contradict each other.
    pub fn system(&self, draw: &mut dyn FnMut(&Ranged) -> f64) -> Result<System, ModelError> {
        let mut resources = Vec::with_capacity(self.resources.len());
        let mut capabilities = Vec::with_capacity(self.resources.len());
        for Ready { name, part, count } in &self.resources {
            let can = part.capability(draw).map_err(|why| ModelError::Unsolvable {
                machine: self.machine.clone(),
                reason: format!("{name}: {why}"),
            })?;
            let (capacity, count) = (can.capacity * f64::from(*count), *count);
            resources.push(Resource { name: name.clone(), currency: can.currency, capacity, count });
            capabilities.push(can);
        }
        let counts = |stage: &Stage| f64::from(self.resources[stage.resource].count);
        let paths: Vec<Vec<Use>> = self
            .paths
            .iter()
            .map(|stages| {
                let each = stages.iter();
                each.map(|stage| stage.cost(&capabilities[stage.resource], counts(stage), draw)).collect()
            })
            .collect();
        let beside = self.beside.iter().map(|flow| Flow {
            name: flow.name.clone(),
            bytes_per_second: draw(&flow.rate) * flow.hosts,
            operation_bytes: flow.operation_bytes,
            uses: uses(&flow.legs, &paths),
        });
        let beside = beside.collect();
        let uses = uses(&self.main, &paths);
        Ok(System { resources, uses, operation_bytes: self.operation_bytes, beside })
    }
}

/// The stages of a path and of all that it includes. The checks of a machine exclude that it includes itself.
fn legs<'a>(
    machine: &'a Machine,
    name: &'a str,
    operation_bytes: Option<f64>,
    places: &mut Places<'a>,
    paths: &mut Vec<Vec<Stage>>,
) -> Result<Vec<Leg>, ModelError> {
    let Some(spec) = machine.path.get(name) else {
        return Err(ModelError::unknown("path", name, machine.path.keys().map(String::as_str)));
    };
    let path = match places.get(name) {
        Some(place) => *place,
        None => {
            paths.push(stages(machine, spec)?);
            places.insert(name, paths.len() - 1);
            paths.len() - 1
        }
    };
    let mut found = vec![Leg { path, operation_bytes }];
    for included in &spec.includes {
        let own = machine.path.get(included).and_then(|path| path.operation.as_ref());
        let operation = own.map(|operation| operation.value).or(operation_bytes);
        found.extend(legs(machine, included, operation, places, paths)?);
    }
    Ok(found)
}

fn stages(machine: &Machine, path: &PathSpec) -> Result<Vec<Stage>, ModelError> {
    let stage = |spec: &StageSpec| {
        let names = machine.resource.keys();
        let unknown = |name: &str| ModelError::unknown("resource", name, names.clone().map(String::as_str));
        let resource = names.clone().position(|name| *name == spec.on).ok_or_else(|| unknown(&spec.on))?;
        let cost = |name: &str| {
            let disks = machine.resource.get(name).ok_or_else(|| unknown(name))?;
            let random = disks.layout.random_cost(path.direction, disks.count);
            let stream = disks.layout.stream_cost(path.direction, disks.count);
            Ok(if spec.random { random } else { stream })
        };
        let own = cost(&spec.on)?;
        let crosses = spec.crosses.as_deref().map_or(Ok(1.0), cost)?;
        let accesses = if spec.random { own } else { 0.0 };
        let times = spec.times * own * crosses;
        Ok(Stage { resource, direction: path.direction, times, accesses, spec: spec.clone() })
    };
    path.stages.iter().map(stage).collect()
}

impl Stage {
    /// What it asks for, with `count` of its resource.
    fn cost(&self, can: &Capability, count: f64, draw: &mut dyn FnMut(&Ranged) -> f64) -> Use {
        let spec = &self.spec;
        let own = can.per_byte(self.direction);
        let per_byte = match (&spec.per_byte, &spec.rate) {
            (Some(cost), _) if cost.unit.dimension() == Dimension::SecondsPerByte => {
                draw(cost) * can.capacity
            }
            (Some(cost), _) => draw(cost),
            (None, Some(rate)) => 1.0 / draw(rate),
            (None, None) => own,
        };
        let factor = spec.factor.as_ref().map_or(1.0, &mut *draw);
        let per_operation = match &spec.per_operation {
            Some(cost) if cost.unit.dimension() == Dimension::Seconds => draw(cost) * can.capacity,
            Some(cost) => draw(cost),
            None => can.per_operation,
        };
        let window = spec.window.as_ref().map(|window| Window {
            // Each of several buses has such a master; what they ask for is payload, on the bus it is more.
            outstanding: draw(&window.outstanding) * count,
            request_bytes: draw(&window.request) * own,
            round_trip_seconds: draw(&window.round_trip),
            behind_bytes: draw(&window.behind) * count,
        });
        Use {
            resource: self.resource,
            per_byte: per_byte * self.times * factor,
            per_operation: per_operation + self.accesses * can.access_seconds * can.capacity,
            window,
        }
    }
}

/// The uses of all legs together, their operations counted in those of the whole path.
fn uses(legs: &[Leg], paths: &[Vec<Use>]) -> Vec<Use> {
    let leg = |leg: &Leg| {
        let operation_bytes = leg.operation_bytes;
        paths[leg.path].iter().map(move |one| match operation_bytes {
            Some(bytes) => Use { per_byte: one.demand(bytes), per_operation: 0.0, ..*one },
            None => *one,
        })
    };
    legs.iter().flat_map(leg).collect()
}
