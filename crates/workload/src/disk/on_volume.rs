//! A disk test as a workload: all that the tests have in common.
use std::path::PathBuf;
use std::time::Duration;

use keepup_results::{DiskPhase, DiskSkipped};

use crate::scratch::Scratch;
use crate::{Context, Footprint, Workload, WorkloadError};

/// What a disk test is besides being on a volume.
pub trait DiskTest {
    /// Its name, as users know it.
    fn name(&self) -> &'static str;

    /// What one run costs.
    fn cost(&self) -> Cost;

    /// Measures with files of `scratch`; phases go to `found` as they end. To stop early is no error.
    fn measure(
        &self,
        scratch: &mut Scratch,
        found: &mut Found,
        context: &mut Context,
    ) -> Result<(), WorkloadError>;
}

/// What one run of a test costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Bytes written, at most.
    pub bytes_written: u64,
    /// Most space held at a time, in bytes.
    pub space_bytes: u64,
    /// How long it takes on a slow disk.
    pub time: Duration,
}

/// What one run found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Phases that ended.
    pub phases: Vec<DiskPhase>,
    /// Phases that cannot be here.
    pub skipped: Vec<DiskSkipped>,
}

/// A test on one volume.
#[derive(Debug)]
pub struct OnVolume<T> {
    test: T,
    volume: PathBuf,
    name: String,
    scratch: Option<Scratch>,
    found: Found,
}

impl<T: DiskTest> OnVolume<T> {
    /// `name` becomes a directory on the volume for as long as it runs.
    pub fn new(test: T, volume: PathBuf, name: String) -> Self {
        Self { test, volume, name, scratch: None, found: Found::default() }
    }
}

impl<T: DiskTest> Workload for OnVolume<T> {
    type Measured = Found;

    fn name(&self) -> &'static str {
        self.test.name()
    }

    fn plan(&self) -> Footprint {
        let Cost { bytes_written, space_bytes, time } = self.test.cost();
        let here = |bytes| [(self.volume.clone(), bytes)].into();
        Footprint { bytes_written: here(bytes_written), space_bytes: here(space_bytes), time }
    }

    fn prepare(&mut self, _context: &mut Context) -> Result<(), WorkloadError> {
        self.scratch = Some(Scratch::create(&self.volume, &self.name)?);
        Ok(())
    }

    fn measure(&mut self, context: &mut Context) -> Result<(), WorkloadError> {
        match &mut self.scratch {
            Some(scratch) => self.test.measure(scratch, &mut self.found, context),
            None => Ok(()),
        }
    }

    fn clean_up(&mut self) -> Result<(), WorkloadError> {
        self.scratch = None;
        Ok(())
    }

    fn measured(&mut self) -> Result<Found, WorkloadError> {
        Ok(std::mem::take(&mut self.found))
    }
}
