//! The source as threads of this process, over loopback.
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use keepup_error::Cause;
use keepup_measure::clock::Clock;
use keepup_results::SourceHost;
use keepup_stream::source::{Destination, Door, SourceError, SourcePlan, run as run_source};

use super::{Generated, Generator, Order, Reach, WaitingSource};
use crate::ceiling::{NetworkCeiling, SourceCeiling};
use crate::error::system;
use crate::{Context, WorkloadError, run};

/// Longest time until a recorder has connected to a source that waits for it.
const RECORDER_PATIENCE: Duration = Duration::from_secs(10);

/// A source on this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalSource;

impl Generator for LocalSource {
    fn reach(&self) -> Reach {
        Reach { listen: Ipv4Addr::LOCALHOST.into(), only_from: None }
    }

    fn wait(
        &self,
        _plan: &SourcePlan,
        _clock: &Arc<dyn Clock>,
    ) -> Result<Box<dyn WaitingSource>, WorkloadError> {
        let door = Door::open((self.reach().listen, 0).into(), Some(RECORDER_PATIENCE));
        Ok(Box::new(LocalWaiting(door.map_err(system("open a port for the source"))?)))
    }

    fn run(&self, to: Destination, order: &Order<'_>) -> Result<Generated, WorkloadError> {
        let (begin_ns, begin_unix_ns) = (order.clock.now_ns(), order.clock.unix_ns());
        let (report, broken) = match run_source(order.plan, to, order.stop, order.live) {
            // The recorder's report has the cause.
            Err(SourceError::Broken { error, report, .. }) => (*report, Some(Cause::of(&error).to_text())),
            outcome => (outcome?, None),
        };
        let lead_ns = report.started_unix_ns.saturating_sub(begin_unix_ns);
        let started_ns = begin_ns.saturating_add(lead_ns).min(order.clock.now_ns());
        Ok(Generated { started_ns, cpu_ns_here: report.cpu_ns, timeline: None, broken, report })
    }

    fn source_ceiling(
        &self,
        plan: &SourcePlan,
        time: Duration,
        context: &mut Context,
    ) -> Result<f64, WorkloadError> {
        run(&mut SourceCeiling::new(plan, time), context)
    }

    fn network_ceiling(&self, time: Duration, context: &mut Context) -> Result<f64, WorkloadError> {
        run(&mut NetworkCeiling::new(time), context)
    }

    fn host(&self) -> Option<&SourceHost> {
        None
    }

    fn is_loopback(&self) -> bool {
        true
    }
}

/// A source on this machine that waits.
struct LocalWaiting(Door);

impl WaitingSource for LocalWaiting {
    fn address(&self) -> SocketAddr {
        self.0.address()
    }

    fn run(&mut self, order: &Order<'_>) -> Result<Generated, WorkloadError> {
        LocalSource.run(Destination::Accept(self.0.clone()), order)
    }
}
