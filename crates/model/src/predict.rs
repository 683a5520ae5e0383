//! Prediction for a machine and a detector: rate, bottleneck and runner-up, CPU usage, sufficient
//! resources, and memory for stalls.

mod assumptions;
mod enough;
mod stalls;
mod sweep;

use keepup_measure::sum::Sums;
use keepup_results::{PredictedPart, Prediction};

pub use self::assumptions::assumptions;
use self::stalls::Stalls;
pub use self::sweep::{Sweep, SweepError};
use crate::error::ModelError;
use crate::machine::Machine;
use crate::mva::closed;
use crate::scatter;
use crate::solve::{LimitKind, gains, solve};
use crate::system::{Currency, System, demand};

/// Question to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// Path; default: the machine's main path.
    pub path: Option<String>,
    /// Payload per operation or event, bytes; default: the path's own.
    pub operation_bytes: Option<f64>,
    /// Mean payload of the detector's event, bytes; `None` without a detector.
    pub event_bytes: Option<f64>,
    /// Required mean rate, bytes per second.
    pub required_bytes_per_second: Option<f64>,
    /// Required headroom.
    pub headroom: f64,
    /// Concurrent operations of a closed load; `None` for a stream.
    pub outstanding: Option<u32>,
    /// Observed stalls, or stalls to survive, seconds each.
    pub stall_seconds: Vec<f64>,
    /// Time from the end of one stall to the next, seconds; `None` if far apart.
    pub stall_every_seconds: Option<f64>,
    /// Available memory, bytes.
    pub buffer_bytes: Option<f64>,
    /// Number of draws from the ranges.
    pub samples: u32,
    /// Random seed.
    pub seed: u64,
}

/// Draws for a 95 % interval with bounds stable to about a tenth of its width.
pub const SAMPLES: u32 = 400;

/// Above this number of operations the exact solution of each draw would take too long.
const DRAWN_OUTSTANDING_MAX: u32 = 64;

impl Ask {
    /// The selected path of `machine`.
    #[must_use]
    pub fn path_of<'a>(&'a self, machine: &'a Machine) -> &'a str {
        self.path.as_deref().unwrap_or(&machine.main)
    }

    /// The machine as plain numbers at the best known values.
    ///
    /// # Errors
    /// Unknown path, or figures that contradict each other.
    pub fn system(&self, machine: &Machine) -> Result<System, ModelError> {
        machine.system(self.path_of(machine), self.operation_bytes, &mut |figure| figure.value)
    }
}

/// Prediction for a machine. `label` is the point of a sweep.
///
/// # Errors
/// Unknown path, or figures that contradict each other.
pub fn predict(machine: &Machine, ask: &Ask, label: &str) -> Result<Prediction, ModelError> {
    let system = ask.system(machine)?;
    let rate = reached(&system, ask)?;
    let hosts = f64::from(machine.hosts);
    let (lower, upper) = bounds(machine, ask)?.unzip();
    let required = ask.required_bytes_per_second;
    let stalls = Stalls {
        incoming: required.unwrap_or(rate) / hosts,
        rate: rate / hosts,
        operation_bytes: system.operation_bytes,
    };
    Ok(Prediction {
        label: label.to_owned(),
        bytes_per_second: rate,
        lower_bytes_per_second: lower,
        upper_bytes_per_second: upper,
        events_per_second: ask.event_bytes.map(|event_bytes| rate / event_bytes),
        operations_per_second: rate / system.operation_bytes,
        headroom: required.map(|required| rate / required),
        cores_busy: cores(&system, rate, hosts),
        cores_busy_at_required: required.and_then(|required| cores(&system, required.min(rate), hosts)),
        parts: parts(machine, &system, rate, required)?,
        enough: required.map(|required| enough::enough(machine, ask, required * ask.headroom)).transpose()?,
        buffers: stalls.buffers(machine, ask)?,
    })
}

/// 95 % interval of the rate; `None` if no figure has a range.
fn bounds(machine: &Machine, ask: &Ask) -> Result<Option<(f64, f64)>, ModelError> {
    if ask.samples == 0 || ask.outstanding.is_some_and(|outstanding| outstanding > DRAWN_OUTSTANDING_MAX) {
        return Ok(None);
    }
    let assembly = machine.assembly(ask.path_of(machine), ask.operation_bytes)?;
    scatter::bounds(ask.samples, ask.seed, |draw| reached(&assembly.system(draw)?, ask))
}

/// Busy cores of one host at a rate of all hosts, with background traffic; `None` without a CPU on
/// the path.
fn cores(system: &System, rate: f64, hosts: f64) -> Option<f64> {
    let busy = system.resources.iter().enumerate().filter_map(|(number, resource)| {
        let own = demand(&system.uses, number, system.operation_bytes);
        let is_processor = resource.currency == Currency::Cycles || resource.name == PROCESSORS;
        if !is_processor || own <= 0.0 {
            return None;
        }
        let beside: f64 = system
            .beside
            .iter()
            .map(|flow| flow.bytes_per_second * demand(&flow.uses, number, flow.operation_bytes))
            .float_sum();
        let share = ((rate * own + beside) / resource.capacity).min(1.0);
        Some(share * f64::from(resource.count) / hosts)
    });
    let busy: Vec<f64> = busy.collect();
    (!busy.is_empty()).then(|| busy.iter().float_sum())
}

/// Name of the resource for all cores of a measured machine, counted in seconds.
pub(crate) const PROCESSORS: &str = "cores";

/// Limits of a path, with utilization at `rate` and at the required one.
fn parts(
    machine: &Machine,
    system: &System,
    rate: f64,
    required: Option<f64>,
) -> Result<Vec<PredictedPart>, ModelError> {
    let fittings = machine.resources()?;
    let title = |name: &str| {
        let found = fittings.iter().find(|fitting| fitting.name == name);
        found.map_or_else(String::new, |fitting| fitting.part.title.clone())
    };
    let stream = solve(system).bytes_per_second;
    let gains = gains(system);
    let mut seen = vec![false; system.resources.len()];
    let part = |limit: crate::solve::Limit| {
        let is_first = !std::mem::replace(&mut seen[limit.resource], true);
        let gain = gains.iter().find(|gain| gain.resource == limit.resource).map(|gain| gain.gain);
        PredictedPart {
            part: title(&limit.name),
            count: system.resources[limit.resource].count,
            is_waiting: limit.kind == LimitKind::RoundTrip,
            bytes_per_second: limit.bytes_per_second,
            // In a stream the first resource is saturated; waiting operations saturate none.
            utilisation: limit.utilisation * rate / stream,
            utilisation_at_required: required.map(|required| limit.utilisation_at(system, required)),
            gain_of_a_tenth: gain.filter(|_| is_first),
            name: limit.name,
        }
    };
    Ok(solve(system).limits.into_iter().map(part).collect())
}

/// Rate of a stream, or of concurrent operations.
fn reached(system: &System, ask: &Ask) -> Result<f64, ModelError> {
    match ask.outstanding {
        None => Ok(solve(system).bytes_per_second),
        Some(outstanding) => Ok(closed(system, outstanding)?.bytes_per_second),
    }
}

#[cfg(test)]
#[path = "predict_tests.rs"]
mod tests;
