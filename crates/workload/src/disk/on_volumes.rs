//! A disk test as a workload: all that the tests have in common.
use std::path::PathBuf;
use std::time::Duration;

use keepup_results::{DiskFinding, DiskPhase, DiskSkipped};

use super::fio::FioFile;
use crate::scratch::Scratch;
use crate::{Context, Footprint, Workload, WorkloadError};

/// What a disk test is besides being on volumes.
pub trait DiskTest {
    /// Its name, as users know it.
    fn name(&self) -> &'static str;

    /// What one run costs.
    fn cost(&self) -> Cost;

    /// The same as a job file of fio; `volumes` are those of one run. Says why where fio has no such test.
    fn fio(&self, _volumes: &[PathBuf]) -> Result<FioFile, &'static str> {
        Err("fio cannot do what this test does")
    }

    /// Measures with files of `place`; phases go to `found` as they end. To stop early is no error.
    fn measure(
        &self,
        place: &mut Place,
        found: &mut Found,
        context: &mut Context,
    ) -> Result<(), WorkloadError>;
}

/// What one run of a test costs, on each of its volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Bytes written, at most.
    pub bytes_written: u64,
    /// Most space held at a time, in bytes.
    pub space_bytes: u64,
    /// How long it takes on a slow disk.
    pub time: Duration,
}

/// The directories of one run, one for each volume that the test uses at once.
#[derive(Debug)]
pub struct Place {
    /// That of the first volume, for tests which use one at a time.
    pub(super) first: Scratch,
    /// Those of the others, in the order given.
    pub(super) others: Vec<Scratch>,
}

/// What one run found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Phases that ended.
    pub phases: Vec<DiskPhase>,
    /// Phases that cannot be here.
    pub skipped: Vec<DiskSkipped>,
    /// What the phases mean together, where a test says so.
    pub finding: Option<DiskFinding>,
}

/// A test on the volumes that it uses at once.
#[derive(Debug)]
pub struct OnVolumes<T> {
    test: T,
    volumes: Vec<PathBuf>,
    name: String,
    place: Option<Place>,
    found: Found,
}

impl<T: DiskTest> OnVolumes<T> {
    /// `name` becomes a directory on each volume for as long as it runs.
    pub fn new(test: T, volumes: Vec<PathBuf>, name: String) -> Self {
        Self { test, volumes, name, place: None, found: Found::default() }
    }
}

impl<T: DiskTest> Workload for OnVolumes<T> {
    type Measured = Found;

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
        self.place = made.next().map(|first| Place { first, others: made.collect() });
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

    fn measured(&mut self) -> Result<Found, WorkloadError> {
        Ok(std::mem::take(&mut self.found))
    }
}
