//! The source on another machine, over the network between the two.
//!
//! The recorder listens on the address from which the server is reached, and accepts only the
//! server's address: the path that is measured is the one that the user named.
use std::sync::Arc;
use std::time::Duration;

use keepup_error::Cause;
use keepup_results::SourceHost;
use keepup_stream::source::{Destination, SourceError, SourcePlan};

use super::{Generated, Generator, Order, Reach};
use crate::net::{RemoteOrder, RemoteSource};
use crate::{Context, WorkloadError};

impl Generator for RemoteSource {
    fn reach(&self) -> Reach {
        Reach { listen: self.here(), only_from: Some(self.there()) }
    }

    fn run(&self, order: &Order<'_>) -> Result<Generated, WorkloadError> {
        let Destination::Recorder(to) = &order.to else {
            let what = Cause::new("sources on another machine do not wait for the recorder");
            return Err(SourceError::Plan { what }.into());
        };
        let done = self.run(&RemoteOrder {
            plan: order.plan,
            port: to.address().port(),
            clock: Arc::clone(order.clock),
            stop: order.stop,
            live: order.live,
        })?;
        Ok(Generated {
            report: done.report,
            started_ns: done.started_ns,
            cpu_ns_here: 0,
            timeline: Some(done.timeline),
            broken: done.failure,
        })
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
