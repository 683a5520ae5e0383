//! The source on another machine, over the network between the two.
//!
//! The recorder listens on the address from which the server is reached, and accepts only the server's
//! address, or connects to the server's address: the path that is measured is the one that the user named.
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use keepup_error::Cause;
use keepup_measure::clock::Clock;
use keepup_results::SourceHost;
use keepup_stream::source::{Destination, SourceError, SourcePlan};

use super::{Generated, Generator, Order, Reach, WaitingSource};
use crate::net::{RemoteOrder, RemoteRun, RemoteSource, RemoteWaiting};
use crate::{Context, WorkloadError};

impl Generator for RemoteSource {
    fn reach(&self) -> Reach {
        Reach { listen: self.here(), only_from: Some(self.there()) }
    }

    fn wait(
        &self,
        plan: &SourcePlan,
        clock: &Arc<dyn Clock>,
    ) -> Result<Box<dyn WaitingSource>, WorkloadError> {
        Ok(Box::new(self.wait(plan, clock)?))
    }

    fn run(&self, to: Destination, order: &Order<'_>) -> Result<Generated, WorkloadError> {
        let Destination::Recorder(to) = to else {
            let what = Cause::new("a source on another machine sends to a recorder, not into files");
            return Err(SourceError::Plan { what }.into());
        };
        Ok(self.run(&order.into(), to.address().port())?.into())
    }

    fn source_ceiling(
        &self,
        plan: &SourcePlan,
        time: Duration,
        context: &mut Context,
    ) -> Result<f64, WorkloadError> {
        self.ceiling(plan, time, &context.clock)
    }

    fn network_ceiling(&self, time: Duration, context: &mut Context) -> Result<f64, WorkloadError> {
        self.network_ceiling(time, context)
    }

    fn host(&self) -> Option<&SourceHost> {
        Some(self.host())
    }

    fn is_loopback(&self) -> bool {
        let there = self.there().to_canonical();
        there.is_loopback() || there == self.here().to_canonical()
    }
}

impl WaitingSource for RemoteWaiting {
    fn address(&self) -> SocketAddr {
        self.address()
    }

    fn run(&mut self, order: &Order<'_>) -> Result<Generated, WorkloadError> {
        Ok(self.run(&order.into())?.into())
    }
}

impl<'a> From<&Order<'a>> for RemoteOrder<'a> {
    fn from(order: &Order<'a>) -> Self {
        let Order { plan, clock, stop, live } = *order;
        Self { plan, clock: Arc::clone(clock), stop, live }
    }
}

impl From<RemoteRun> for Generated {
    fn from(run: RemoteRun) -> Self {
        let RemoteRun { report, started_ns, timeline, failure } = run;
        Self { report, started_ns, cpu_ns_here: 0, timeline: Some(timeline), broken: failure }
    }
}
