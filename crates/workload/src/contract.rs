//! The `Workload` contract and the one loop that drives every kind.
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use keepup_measure::clock::Clock;

use crate::WorkloadError;

/// What a workload will touch; known before it touches anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Bytes it will write to each volume, at most.
    pub bytes_written: BTreeMap<PathBuf, u64>,
    /// Most space it holds at a time on each volume, in bytes.
    pub space_bytes: BTreeMap<PathBuf, u64>,
    /// How long it takes.
    pub time: Duration,
}

impl Footprint {
    /// The same done so many times: space is given back between.
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

/// What a workload is handed.
pub struct Context {
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Raised when the user wants an end; a workload then ends early and keeps what it has.
    pub stop: Arc<AtomicBool>,
    /// Where samples go: milliseconds since the workload began, and readings by name with the unit last.
    pub sample: Box<dyn FnMut(u64, BTreeMap<String, f64>) + Send>,
    /// Where people are told at once what goes on.
    pub note: Box<dyn FnMut(&str) + Send>,
}

/// Something that can be measured.
pub trait Workload {
    /// What it measures.
    type Measured;

    /// Its name, as users know it.
    fn name(&self) -> &'static str;

    /// What it will write, how long it takes.
    fn plan(&self) -> Footprint;

    /// Makes everything ready that is not part of the measurement.
    fn prepare(&mut self, context: &mut Context) -> Result<(), WorkloadError>;

    /// Does what is measured.
    fn measure(&mut self, context: &mut Context) -> Result<(), WorkloadError>;

    /// Waits until everything under way has come to its end, still inside the measurement.
    fn drain(&mut self, _context: &mut Context) -> Result<(), WorkloadError> {
        Ok(())
    }

    /// Checks what was produced.
    fn verify(&mut self, _context: &mut Context) -> Result<(), WorkloadError> {
        Ok(())
    }

    /// Removes what it made; called whatever happened before.
    fn clean_up(&mut self) -> Result<(), WorkloadError>;

    /// The figures; called after everything else went well.
    fn measured(&mut self) -> Result<Self::Measured, WorkloadError>;
}

/// Drives a workload through its steps. It is cleaned up after an error too; the first error is returned.
pub fn run<W: Workload>(workload: &mut W, context: &mut Context) -> Result<W::Measured, WorkloadError> {
    let outcome = (workload.prepare(context))
        .and_then(|()| workload.measure(context))
        .and_then(|()| workload.drain(context))
        .and_then(|()| workload.verify(context));
    let cleaned = workload.clean_up();
    outcome?;
    cleaned?;
    workload.measured()
}
