//! Conversion of a machine to plain numbers in two steps: names are resolved once, figures are
//! drawn many times.

use std::collections::BTreeMap;

use keepup_error::Cause;

use super::{Machine, PathSpec, StageSpec};
use crate::error::ModelError;
use crate::formulas::store::Direction;
use crate::part::{Capability, Part};
use crate::ranged::Ranged;
use crate::system::{Flow, Resource, System, Use, Window};
use crate::unit::Dimension;

/// One path of a machine with resolved names.
#[derive(Debug, Clone)]
pub struct Assembly {
    machine: String,
    resources: Vec<Ready>,
    paths: Vec<PathStages>,
    main: Vec<Leg>,
    operation_bytes: f64,
    beside: Vec<Beside>,
}

#[derive(Debug, Clone)]
struct Ready {
    name: String,
    part: Part,
    count: u32,
    is_queue: bool,
}

/// Stages of one path.
#[derive(Debug, Clone)]
struct PathStages {
    name: String,
    stages: Vec<Stage>,
}

/// One stage, with its layout applied.
#[derive(Debug, Clone)]
struct Stage {
    resource: usize,
    direction: Direction,
    /// Number of times a byte crosses the resource.
    times: f64,
    /// Random accesses per operation.
    accesses: f64,
    spec: StageSpec,
}

/// Stages of an included path, and the operation size of its costs, bytes; `None` for the whole
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

/// Paths by name, with their index.
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
                let reason = Cause::new(format!("path {path} has no size of an operation"));
                machine.unsolvable(reason.with_hint("operation = \"1 MB\""))
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
            let count = fitting.count.saturating_mul(hosts);
            Ready { name: fitting.name, part: fitting.part, count, is_queue: fitting.queue }
        });
        let resources = resources.collect();
        let assembly =
            Self { machine: machine.name.clone(), resources, paths, main, operation_bytes, beside };
        assembly.check_queues().map_err(|why| machine.unsolvable(why))?;
        Ok(assembly)
    }

    /// Refuses a queue that the path shares with other traffic if one of them does not state its bytes in
    /// flight: they decide the shares.
    fn check_queues(&self) -> Result<(), Cause> {
        let queues = self.resources.iter().enumerate().filter(|(_, resource)| resource.is_queue);
        for (number, Ready { name, .. }) in queues {
            let stages = |legs: &[Leg]| -> Vec<&Stage> {
                let all = legs.iter().flat_map(|leg| &self.paths[leg.path].stages);
                all.filter(|stage| stage.resource == number).collect()
            };
            let states = |stages: &[&Stage]| stages.iter().any(|stage| stage.spec.in_flight.is_some());
            let own = stages(&self.main);
            for flow in self.beside.iter().filter(|_| !own.is_empty()) {
                let others = stages(&flow.legs);
                if others.is_empty() || (states(&own) && states(&others)) {
                    continue;
                }
                let flow = &flow.name;
                let why = format!(
                    "the path and {flow} share {name}, a queue that serves requests in order of \
                     arrival: their shares depend on the bytes that each keeps in flight, which the \
                     machine does not state for both"
                );
                let hint = format!(
                    "add in_flight = \"8 MiB\" to the stages of both on {name}, or predict with {flow}=off"
                );
                return Err(Cause::new(why).with_hint(hint));
            }
        }
        Ok(())
    }

    /// Plain numbers with each figure drawn once.
    ///
    /// # Errors
    /// The drawn figures contradict each other.
    pub fn system(&self, draw: &mut dyn FnMut(&Ranged) -> f64) -> Result<System, ModelError> {
        let mut resources = Vec::with_capacity(self.resources.len());
        let mut capabilities = Vec::with_capacity(self.resources.len());
        for Ready { name, part, count, .. } in &self.resources {
            let can = part.capability(draw).map_err(|why| ModelError::Unsolvable {
                machine: self.machine.clone(),
                reason: format!("{name}: {why}").into(),
            })?;
            let (capacity, count) = (can.capacity * f64::from(*count), *count);
            resources.push(Resource { name: name.clone(), currency: can.currency, capacity, count });
            capabilities.push(can);
        }
        let counts = |stage: &Stage| f64::from(self.resources[stage.resource].count);
        let paths: Vec<Vec<Use>> = self
            .paths
            .iter()
            .map(|way| {
                let each = way.stages.iter();
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

    /// Every figure with its owner, `disks.rate`, in the order of draws in [`Assembly::system`].
    #[must_use]
    pub fn figures(&self) -> Vec<(String, &Ranged)> {
        let mut figures = Vec::new();
        for Ready { name, part, .. } in &self.resources {
            let own = part.drawn();
            figures.extend(own.map(|(figure, value)| (format!("{name}.{figure}"), value)));
        }
        for way in &self.paths {
            for Stage { spec, .. } in &way.stages {
                let own = spec.drawn().into_iter();
                let named = |(figure, value)| (format!("{} on {}: {figure}", way.name, spec.on), value);
                figures.extend(own.map(named));
            }
        }
        figures.extend(self.beside.iter().map(|flow| (format!("{}.rate", flow.name), &flow.rate)));
        figures
    }
}

/// Stages of a path and of all included paths. The checks of a machine exclude cycles.
fn legs<'a>(
    machine: &'a Machine,
    name: &'a str,
    operation_bytes: Option<f64>,
    places: &mut Places<'a>,
    paths: &mut Vec<PathStages>,
) -> Result<Vec<Leg>, ModelError> {
    let Some(spec) = machine.path.get(name) else {
        return Err(ModelError::unknown("path", name, machine.path.keys().map(String::as_str)));
    };
    let path = match places.get(name) {
        Some(place) => *place,
        None => {
            paths.push(PathStages { name: name.to_owned(), stages: stages(machine, spec)? });
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
            Ok::<f64, ModelError>(if spec.random { random } else { stream })
        };
        let own = cost(&spec.on)?;
        let crosses = spec.crosses.as_deref().map_or(Ok(1.0), cost)?;
        let accesses = if spec.random { own } else { 0.0 };
        let times = spec.times * own * crosses;
        Ok(Stage { resource, direction: path.direction, times, accesses, spec: spec.clone() })
    };
    path.stages.iter().map(stage).collect()
}

impl StageSpec {
    /// Figures in the order of draws in [`Stage::cost`].
    fn drawn(&self) -> Vec<(&'static str, &Ranged)> {
        let own = [
            ("per_byte", self.per_byte.as_ref()),
            ("rate", self.rate.as_ref()),
            ("factor", self.factor.as_ref()),
            ("per_operation", self.per_operation.as_ref()),
            ("outstanding", self.window.as_ref().map(|window| &window.outstanding)),
            ("request", self.window.as_ref().map(|window| &window.request)),
            ("round_trip", self.window.as_ref().map(|window| &window.round_trip)),
            ("behind", self.window.as_ref().map(|window| &window.behind)),
            ("in_flight", self.in_flight.as_ref()),
        ];
        own.into_iter().filter_map(|(name, figure)| Some((name, figure?))).collect()
    }
}

impl Stage {
    /// Demand with `count` of its resource.
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
            // Each of several buses has such a master; demand is payload, with overhead added on
            // the bus.
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
            in_flight_bytes: spec.in_flight.as_ref().map(draw),
        }
    }
}

/// Demands of all legs, with operations scaled to the whole path.
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
