//! Generator of a trial: the simulated source, on this machine or on another.
//!
//! The two differ in where the source runs, in how recorder and source reach each other, and in how far its
//! counters lag. A trial is otherwise the same.
mod files;
mod local;
mod remote;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_results::SourceHost;
use keepup_stream::source::{Destination, SourceCounters, SourcePlan, SourceReport};

pub use files::FileSource;
pub use local::LocalSource;

use crate::file_store::FileStore;
use crate::net::SourceTimeline;
use crate::{Context, WorkloadError};

/// Runs the sources of trials.
pub trait Generator: std::fmt::Debug + Send + Sync {
    /// Where the recorder listens for this generator.
    fn reach(&self) -> Reach;

    /// Opens a port at which the source of `plan` waits for the recorder.
    ///
    /// # Errors
    /// The port cannot be opened, or the machine of the source refuses.
    fn wait(
        &self,
        plan: &SourcePlan,
        clock: &Arc<dyn Clock>,
    ) -> Result<Box<dyn WaitingSource>, WorkloadError>;

    /// Runs one source, which sends to `to`, to its end. The live counters of `order` are updated meanwhile.
    ///
    /// # Errors
    /// The source cannot start, or is lost. A connection to the recorder that breaks is no error
    /// but [`Generated::broken`].
    fn run(&self, to: Destination, order: &Order<'_>) -> Result<Generated, WorkloadError>;

    /// Rate of the source of `plan` alone, sending to a receiver that discards, bytes per second.
    ///
    /// # Errors
    /// The source cannot run.
    fn source_ceiling(
        &self,
        plan: &SourcePlan,
        time: Duration,
        context: &mut Context,
    ) -> Result<f64, WorkloadError>;

    /// Throughput of one TCP connection over the path to the recorder, bytes per second.
    ///
    /// # Errors
    /// The connection cannot be opened, or breaks.
    fn network_ceiling(&self, time: Duration, context: &mut Context) -> Result<f64, WorkloadError>;

    /// The machine of the source, unless it is this one.
    fn host(&self) -> Option<&SourceHost>;

    /// Whether the path to the recorder stays within this machine.
    fn is_loopback(&self) -> bool;

    /// Place of the files of a detector that writes files.
    fn file_store(&self) -> Option<&FileStore> {
        None
    }
}

/// A source that waits for the recorder. Its port is closed when it is dropped.
pub trait WaitingSource: Send {
    /// Where the recorder connects.
    fn address(&self) -> SocketAddr;

    /// Runs the source to its end, see [`Generator::run`].
    ///
    /// # Errors
    /// As for [`Generator::run`], or no recorder connects.
    fn run(&mut self, order: &Order<'_>) -> Result<Generated, WorkloadError>;
}

/// Where a recorder listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Local address.
    pub listen: IpAddr,
    /// The only address from which connections are accepted; none: any.
    pub only_from: Option<IpAddr>,
}

/// One run of a source.
pub struct Order<'a> {
    /// What to send.
    pub plan: &'a SourcePlan,
    /// The clock.
    pub clock: &'a Arc<dyn Clock>,
    /// Ends the schedule early and in order.
    pub stop: &'a AtomicBool,
    /// Live counters.
    pub live: &'a SourceCounters,
}

/// Result of one run of a source.
pub struct Generated {
    /// Report.
    pub report: SourceReport,
    /// Start of the schedule, ns on this machine's monotonic clock.
    pub started_ns: u64,
    /// CPU time of the source on this machine, ns.
    pub cpu_ns_here: u64,
    /// Counters over time, if the live ones were not read directly but reported.
    pub timeline: Option<SourceTimeline>,
    /// Reason why the source was cut off, if it was.
    pub broken: Option<String>,
}
