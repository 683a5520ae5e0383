//! Adapter from a disk test to a workload.
use std::path::PathBuf;
use std::time::Duration;

use keepup_results::{DiskFinding, DiskPhase, DiskSkipped};

use super::fio::FioFile;
use crate::scratch::Scratch;
use crate::{Context, Footprint, Workload, WorkloadError};

/// A disk test, independent of its volumes.
pub trait DiskTest {
    /// Name of the test's command.
    fn name(&self) -> &'static str;

    /// Cost of one run.
    fn cost(&self) -> Cost;

    /// Equivalent fio job file for the volumes of one run, or the reason why there is none.
    fn fio(&self, _volumes: &[PathBuf]) -> Result<FioFile, &'static str> {
        Err("fio has no equivalent of this test")
    }

    /// Runs the test with files in `place`; completed phases are added to `found`. An early stop is
    /// not an error.
    fn measure(
        &self,
        place: &mut TestDirectories,
        found: &mut DiskMeasured,
        context: &mut Context,
    ) -> Result<(), WorkloadError>;
}

/// Cost of one run on each of its volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Maximum bytes written.
    pub bytes_written: u64,
    /// Maximum space used at a time, bytes.
    pub space_bytes: u64,
    /// Estimated time on a slow disk.
    pub time: Duration,
}

/// Scratch directories of one run, one per volume used concurrently.
#[derive(Debug)]
pub struct TestDirectories {
    /// Directory on the first volume, for tests that use a single one.
    pub(super) first: Scratch,
    /// Directories on the other volumes, in the given order.
    pub(super) others: Vec<Scratch>,
}

/// Result of one run.
#[derive(Clone, Debug, Default)]
pub struct DiskMeasured {
    /// Completed phases.
    pub phases: Vec<DiskPhase>,
    /// Phases that are impossible here.
    pub skipped: Vec<DiskSkipped>,
    /// Combined finding of the phases, if the test has one.
    pub finding: Option<DiskFinding>,
}

/// A test with the volumes that it uses concurrently.
#[derive(Debug)]
pub struct OnVolumes<T> {
    test: T,
    volumes: Vec<PathBuf>,
    name: String,
    place: Option<TestDirectories>,
    found: DiskMeasured,
}

impl<T: DiskTest> OnVolumes<T> {
    /// Creates the test; `name` is its temporary directory on each volume.
    pub fn new(test: T, volumes: Vec<PathBuf>, name: String) -> Self {
        Self { test, volumes, name, place: None, found: DiskMeasured::default() }
    }
}

impl<T: DiskTest> Workload for OnVolumes<T> {
    type Measured = DiskMeasured;
    type Error = WorkloadError;

    fn name(&self) -> &'static str {
        self.test.name()
    }

    fn plan(&self) -> Footprint {
        let Cost { bytes_written, space_bytes, time } = self.test.cost();
        let here = |bytes| self.volumes.iter().map(|volume| (volume.clone(), bytes)).collect();
        Footprint { bytes_written: here(bytes_written), space_bytes: here(space_bytes), time }
    }

    fn prepare(&mut self, _context: &mut Context) -> Result<(), WorkloadError> {
        let mut made = Vec::new();
        for volume in &self.volumes {
            made.push(Scratch::create(volume, &self.name)?);
        }
        let mut made = made.into_iter();
        self.place = made.next().map(|first| TestDirectories { first, others: made.collect() });
        Ok(())
    }

    fn measure(&mut self, context: &mut Context) -> Result<(), WorkloadError> {
        match &mut self.place {
            Some(place) => self.test.measure(place, &mut self.found, context),
            None => Ok(()),
        }
    }

    fn clean_up(&mut self) -> Result<(), WorkloadError> {
        self.place = None;
        Ok(())
    }

    fn measured(&mut self) -> Result<DiskMeasured, WorkloadError> {
        Ok(std::mem::take(&mut self.found))
    }
}
