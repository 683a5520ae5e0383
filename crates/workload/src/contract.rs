//! The `Workload` contract and its driver.
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use keepup_measure::clock::Clock;

/// Resources that a workload will use, known in advance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Maximum bytes written to each volume.
    pub bytes_written: BTreeMap<PathBuf, u64>,
    /// Maximum space used on each volume, bytes.
    pub space_bytes: BTreeMap<PathBuf, u64>,
    /// Estimated duration.
    pub time: Duration,
}

impl Footprint {
    /// Footprint of several sequential runs, with space released in between.
    #[must_use]
    pub fn times(&self, times: u32) -> Self {
        let all = |bytes: &u64| bytes.saturating_mul(times.into());
        Self {
            bytes_written: self
                .bytes_written
                .iter()
                .map(|(volume, bytes)| (volume.clone(), all(bytes)))
                .collect(),
            space_bytes: self.space_bytes.clone(),
            time: self.time.saturating_mul(times),
        }
    }
}

/// Environment of a workload.
pub struct Context {
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Set when the user requests a stop; a workload then ends early and keeps its partial result.
    pub stop: Arc<AtomicBool>,
    /// Receives samples: milliseconds since the start, and readings by name, with the unit as
    /// suffix.
    pub sample: Box<dyn FnMut(u64, BTreeMap<String, f64>) + Send>,
    /// Receives progress messages for the user.
    pub note: Box<dyn FnMut(&str) + Send>,
}

/// A measurement with a fixed sequence of steps.
pub trait Workload {
    /// Result type.
    type Measured;
    /// Error type.
    type Error;

    /// Name of the workload.
    fn name(&self) -> &'static str;

    /// Resources it will use.
    fn plan(&self) -> Footprint;

    /// Prepares everything outside the measurement.
    fn prepare(&mut self, context: &mut Context) -> Result<(), Self::Error>;

    /// Runs the measurement.
    fn measure(&mut self, context: &mut Context) -> Result<(), Self::Error>;

    /// Completes work in flight, inside the measurement.
    fn drain(&mut self, _context: &mut Context) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Verifies the output.
    fn verify(&mut self, _context: &mut Context) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Removes all files; always called.
    fn clean_up(&mut self) -> Result<(), Self::Error>;

    /// Result; called after all other steps succeeded.
    fn measured(&mut self) -> Result<Self::Measured, Self::Error>;
}

/// Runs a workload through its steps. Cleans up after an error too and returns the first error.
pub fn run<W: Workload>(workload: &mut W, context: &mut Context) -> Result<W::Measured, W::Error> {
    let outcome = (workload.prepare(context))
        .and_then(|()| workload.measure(context))
        .and_then(|()| workload.drain(context))
        .and_then(|()| workload.verify(context));
    let cleaned = workload.clean_up();
    outcome?;
    cleaned?;
    workload.measured()
}
