//! A recording on several hosts: each recorder takes the streams that the view assigns to it.
//!
//! On a recorder it is an ordinary recording. Clients connect to the recorders themselves; the hosts that are
//! sources in the fleet file take no part.
mod assignment;
pub mod drain;
mod members;
mod outcome;
mod plan;
mod progress;
mod quiet;
mod recorder;
mod total;
mod watch;
mod worker;

pub use members::ViewMembers;
pub use outcome::RecordOutcome;
pub use plan::{RecordPlan, RecordRequest, RecorderSettings, plans};
pub use quiet::{Quiet, Total};
pub use total::{FleetRecording, Moved, RecorderResult};
pub use watch::FleetWatch;
pub use worker::RecordWorker;
