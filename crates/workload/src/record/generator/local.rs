//! The source as threads of this process, over loopback.
use std::net::Ipv4Addr;
use std::time::Duration;

use keepup_error::Cause;
use keepup_results::SourceHost;
use keepup_stream::source::{SourceError, SourcePlan, run as run_source};

use super::{Generated, Generator, Order, Reach};
use crate::ceiling::{NetworkCeiling, SourceCeiling};
use crate::{Context, WorkloadError, run};

/// A source on this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalSource;

impl Generator for LocalSource {
    fn reach(&self) -> Reach {
        Reach { listen: Ipv4Addr::LOCALHOST.into(), only_from: None }
    }

    fn run(&self, order: &Order<'_>) -> Result<Generated, WorkloadError> {
        let (begin_ns, begin_unix_ns) = (order.clock.now_ns(), order.clock.unix_ns());
        let (report, broken) = match run_source(order.plan, order.to.clone(), order.stop, order.live) {
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
