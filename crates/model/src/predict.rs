//! What a machine does for a detector: rate, bottleneck and runner-up, processors, what would be enough, and
//! the memory that its stalls ask for.

mod assumptions;
mod enough;
mod stalls;
mod sweep;

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

/// What is asked of a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// The path; the machine's main one without a name.
    pub path: Option<String>,
    /// Payload of one operation or event, bytes; the path's own without one.
    pub operation_bytes: Option<f64>,
    /// Mean rate that is required, bytes per second.
    pub required_bytes_per_second: Option<f64>,
    /// Rate over required rate that is wanted.
    pub headroom: f64,
    /// Operations under way at a time, of a load whose operations wait for each other; none for a stream.
    pub outstanding: Option<u32>,
    /// Stalls that were seen or are to be survived, seconds each.
    pub stall_seconds: Vec<f64>,
    /// From the end of one stall to the next, seconds; none when they are far apart.
    pub stall_every_seconds: Option<f64>,
    /// Memory that there is for them, bytes.
    pub buffer_bytes: Option<f64>,
    /// Draws from the ranges of all figures.
    pub samples: u32,
    /// Where draws come from.
    pub seed: u64,
}

/// Draws for an interval of 95 % whose ends are steady to about a tenth of its width.
pub const SAMPLES: u32 = 400;

/// With more operations under way the exact network of each draw would take too long.
const DRAWN_OUTSTANDING_MAX: u32 = 64;

impl Ask {
    /// The path of `machine` that is meant.
    #[must_use]
    pub fn path_of<'a>(&'a self, machine: &'a Machine) -> &'a str {
        self.path.as_deref().unwrap_or(&machine.main)
    }

    /// The machine as plain numbers, every figure at its best known value.
    ///
    /// # Errors
    /// No such path; figures that contradict each other.
    pub fn system(&self, machine: &Machine) -> Result<System, ModelError> {
        machine.system(self.path_of(machine), self.operation_bytes, &mut |figure| figure.value)
    }
}

/// What a machine does. `label` tells the point of a sweep.
///
/// # Errors
/// No such path; figures that contradict each other.
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
        operations_per_second: rate / system.operation_bytes,
        headroom: required.map(|required| rate / required),
        cores_busy: cores(&system, rate, hosts),
        cores_busy_at_required: required.and_then(|required| cores(&system, required.min(rate), hosts)),
        parts: parts(machine, &system, rate)?,
        enough: required.map(|required| enough::enough(machine, ask, required * ask.headroom)).transpose()?,
        buffers: stalls.buffers(machine, ask)?,
    })
}

/// The interval of 95 % of the rate; none where no figure has a range.
fn bounds(machine: &Machine, ask: &Ask) -> Result<Option<(f64, f64)>, ModelError> {
    if ask.samples == 0 || ask.outstanding.is_some_and(|outstanding| outstanding > DRAWN_OUTSTANDING_MAX) {
        return Ok(None);
    }
    let assembly = machine.assembly(ask.path_of(machine), ask.operation_bytes)?;
    scatter::bounds(ask.samples, ask.seed, |draw| reached(&assembly.system(draw)?, ask))
}

/// Cores of one host that a rate of all hosts keeps busy, with what runs beside it; none where no processor
/// is on the path.
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
            .sum();
        let share = ((rate * own + beside) / resource.capacity).min(1.0);
        Some(share * f64::from(resource.count) / hosts)
    });
    let busy: Vec<f64> = busy.collect();
    (!busy.is_empty()).then(|| busy.iter().sum())
}

/// Name of the resource that stands for all cores of a machine that was measured: it is counted in seconds.
pub(crate) const PROCESSORS: &str = "cores";

/// What limits a path, with what is in use at `rate`.
fn parts(machine: &Machine, system: &System, rate: f64) -> Result<Vec<PredictedPart>, ModelError> {
    let fittings = machine.resources()?;
    let title = |name: &str| {
        let found = fittings.iter().find(|fitting| fitting.name == name);
        found.map_or_else(String::new, |fitting| fitting.part.title.clone())
    };
    let stream = solve(system).bytes_per_second;
    let gains = gains(system);
    let mut told = vec![false; system.resources.len()];
    let part = |limit: crate::solve::Limit| {
        let is_first = !std::mem::replace(&mut told[limit.resource], true);
        let gain = gains.iter().find(|gain| gain.resource == limit.resource).map(|gain| gain.gain);
        PredictedPart {
            part: title(&limit.name),
            count: system.resources[limit.resource].count,
            is_waiting: limit.kind == LimitKind::RoundTrip,
            bytes_per_second: limit.bytes_per_second,
            // Of a stream the first one is full; operations that wait for each other fill none.
            utilisation: limit.utilisation * rate / stream,
            gain_of_a_tenth: gain.filter(|_| is_first),
            name: limit.name,
        }
    };
    Ok(solve(system).limits.into_iter().map(part).collect())
}

/// The rate of a stream, or of so many operations under way.
fn reached(system: &System, ask: &Ask) -> Result<f64, ModelError> {
    match ask.outstanding {
        None => Ok(solve(system).bytes_per_second),
        Some(outstanding) => Ok(closed(system, outstanding)?.bytes_per_second),
    }
}

#[cfg(test)]
#[path = "predict_tests.rs"]
mod tests;
