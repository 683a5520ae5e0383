//! A check of all hosts: facts, findings of `keepup doctor` on each host, and rules across hosts.
//!
//! Each host checks itself. Recorders and spares also measure the paths to the sources, which listen during
//! the check. The controller judges the facts of all hosts together: [`summary`] uses the rules in `rules`,
//! which do no I/O.
mod clock;
mod facts;
mod first_line;
mod host;
mod listener;
mod packet;
mod path;
mod plan;
mod rules;
mod summary;
mod worker;

pub use host::HostOutcome;
pub use plan::{CheckPlan, CheckRequest, SourceAddress, plans};
pub use summary::{HostEnd, Judged, summary};
pub use worker::CheckWorker;
