//! Drain hosts: each receives a copy of what its recorders have recorded, while they record.
//!
//! A drain host runs a *sink* for each of its recorders, so the copies are separate recordings: a stream that
//! moves from one recorder to another is in two of them, as in the originals.
mod feed;
mod plan;
mod sinks;
mod total;
mod worker;

pub use feed::{DrainEnd, DrainOutcome};
pub(crate) use feed::{Feed, FeedFigures};
pub use plan::{DrainPlan, drain_plans};
pub(crate) use plan::{Sinks, drain_hosts, drain_of};
pub use sinks::CopyOutcome;
pub(crate) use sinks::receive;
pub use total::DrainResult;
pub use worker::DrainWorker;
