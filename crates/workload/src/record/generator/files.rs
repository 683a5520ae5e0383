//! A source on this machine that writes files.
use std::sync::Arc;
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_results::SourceHost;
use keepup_stream::source::{Destination, SourcePlan};

use super::{Generated, Generator, LocalSource, Order, Reach, WaitingSource};
use crate::ceiling::SourceCeiling;
use crate::file_store::FileStore;
use crate::{Context, WorkloadError, run};

/// A source on this machine, with a place for its files.
#[derive(Clone, Debug)]
pub struct FileSource {
    /// Place of the files.
    pub store: FileStore,
}

impl Generator for FileSource {
    fn reach(&self) -> Reach {
        LocalSource.reach()
    }

    fn wait(
        &self,
        plan: &SourcePlan,
        clock: &Arc<dyn Clock>,
    ) -> Result<Box<dyn WaitingSource>, WorkloadError> {
        LocalSource.wait(plan, clock)
    }

    fn run(&self, to: Destination, order: &Order<'_>) -> Result<Generated, WorkloadError> {
        LocalSource.run(to, order)
    }

    fn source_ceiling(
        &self,
        plan: &SourcePlan,
        time: Duration,
        context: &mut Context,
    ) -> Result<f64, WorkloadError> {
        run(&mut SourceCeiling::new(plan, time).into_files(self.store.clone()), context)
    }

    fn network_ceiling(&self, time: Duration, context: &mut Context) -> Result<f64, WorkloadError> {
        LocalSource.network_ceiling(time, context)
    }

    fn host(&self) -> Option<&SourceHost> {
        None
    }

    fn is_loopback(&self) -> bool {
        true
    }

    fn file_store(&self) -> Option<&FileStore> {
        Some(&self.store)
    }
}
