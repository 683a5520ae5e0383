//! Several equal recorders of a fleet as one machine, from the measured rate of one of them.
//!
//! Fitted: the rate of one recorder, and that of what all share, if a measurement found it. Predicted: the
//! rate of any other number of recorders. Streams are distributed evenly, and every recorder keeps its share
//! at every rate, so the recorder with the most streams limits all.
use std::collections::BTreeMap;

use keepup_error::Cause;

use super::{on, rated, unsolvable, way};
use crate::error::ModelError;
use crate::machine::Machine;
use crate::predict::{Ask, SAMPLES, predict};
use crate::ranged::{Ranged, Source};
use crate::solve::solve;
use crate::unit::Quantity;

/// Most recorders considered: hosts of a fleet file.
const HOSTS_MAX: u32 = 4096;
/// Seed of the draws from the ranges.
const SEED: u64 = 1;
/// Resource of one recorder, and of all together.
const RECORDER: &str = "recorder";
const SHARED: &str = "shared";

/// Measured rate with its bounds, bytes per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredRate {
    /// Best known value.
    pub value: f64,
    /// Lower bound, at most the value.
    pub low: f64,
    /// Upper bound, at least the value.
    pub high: f64,
}

/// Equal recorders that share a detector's streams evenly.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorders {
    /// Rate of one recorder with all streams.
    pub one: MeasuredRate,
    /// Rate of what all recorders share, such as a switch or the sources; none if it is unknown.
    pub shared: Option<MeasuredRate>,
    /// Streams of the detector; none if every recorder has the same share, whatever their number.
    pub streams: Option<u32>,
    /// Source of the figures, in words.
    pub from: String,
}

impl Recorders {
    /// The machine of `hosts` recorders, as `keepup predict --hosts` uses it.
    ///
    /// # Errors
    /// A rate that is not positive or not finite, or more recorders than streams.
    pub fn machine(&self, hosts: u32) -> Result<Machine, ModelError> {
        let streams = self.streams.unwrap_or(hosts);
        if hosts == 0 || hosts > streams {
            let why = format!("{hosts} recorders cannot share {streams} streams");
            return Err(unsolvable(&self.from, Cause::new(why)));
        }
        let mut recorder = on(RECORDER);
        // The recorder with the most streams has more than an equal share.
        recorder.times = f64::from(hosts) * f64::from(streams.div_ceil(hosts)) / f64::from(streams);
        let mut stages = vec![recorder];
        let mut resource = BTreeMap::from([(RECORDER.to_owned(), rated(1, self.figure(self.one)?))]);
        if let Some(rate) = self.shared {
            let mut shared = rated(1, self.figure(rate)?);
            shared.shared = true;
            resource.insert(SHARED.to_owned(), shared);
            stages.push(on(SHARED));
        }
        let about = "a detector's streams, distributed evenly over the recorders";
        let machine = Machine {
            name: "recorders".to_owned(),
            title: "recorders of a fleet, each as the one that was measured".to_owned(),
            notes: Vec::new(),
            main: "record".to_owned(),
            hosts,
            resource,
            path: BTreeMap::from([("record".to_owned(), way(about, stages, &[]))]),
            beside: BTreeMap::new(),
        };
        machine.check()?;
        Ok(machine)
    }

    /// Rate of `hosts` recorders, with the 95 % interval that follows from the bounds of the figures.
    ///
    /// # Errors
    /// See [`Recorders::machine`].
    pub fn predict(&self, hosts: u32) -> Result<MeasuredRate, ModelError> {
        let found = predict(&self.machine(hosts)?, &self.ask(SAMPLES), "")?;
        let value = found.bytes_per_second;
        Ok(MeasuredRate {
            value,
            low: found.lower_bytes_per_second.unwrap_or(value).min(value),
            high: found.upper_bytes_per_second.unwrap_or(value).max(value),
        })
    }

    /// Fewest recorders for `wanted` bytes per second; none if what they share does not suffice, or if there
    /// are too few streams.
    ///
    /// # Errors
    /// See [`Recorders::machine`].
    pub fn enough(&self, wanted: f64) -> Result<Option<u32>, ModelError> {
        let suffices = |hosts: u32| {
            let system = self.ask(0).system(&self.machine(hosts)?)?;
            Ok::<bool, ModelError>(solve(&system).bytes_per_second >= wanted)
        };
        let (mut short, mut enough) = (0, self.streams.map_or(HOSTS_MAX, |streams| streams.min(HOSTS_MAX)));
        if !suffices(enough)? {
            return Ok(None);
        }
        // More recorders never carry less.
        while enough - short > 1 {
            let middle = short + (enough - short) / 2;
            if suffices(middle)? { enough = middle } else { short = middle }
        }
        Ok(Some(enough))
    }

    fn ask(&self, samples: u32) -> Ask {
        Ask {
            path: None,
            // The figures are rates, for which the size of an operation does not matter.
            operation_bytes: Some(1.0),
            event_bytes: None,
            required_bytes_per_second: None,
            headroom: 1.0,
            outstanding: None,
            stall_seconds: Vec::new(),
            stall_every_seconds: None,
            buffer_bytes: None,
            samples,
            seed: SEED,
        }
    }

    fn figure(&self, rate: MeasuredRate) -> Result<Ranged, ModelError> {
        let refused = |why: Cause| unsolvable(&self.from, why);
        let bounds = [rate.low, rate.value, rate.high];
        if bounds.iter().any(|bound| !(bound.is_finite() && *bound > 0.0)) {
            return Err(refused(Cause::new("a measured rate is not above 0")));
        }
        let one: Quantity = "1 B/s".parse().map_err(refused)?;
        let [low, value, high] = bounds.map(|value| Quantity { value, unit: one.unit });
        Ranged::new(value, Some([low, high]), Source::Measured, &self.from).map_err(refused)
    }
}

#[cfg(test)]
#[path = "recorders_tests.rs"]
mod tests;
