//! Commands on a recording set, executed by the agents of its hosts: each works on the recording of its own
//! host.
//!
//! The controller joins what the agents report with the code that is also used for local paths
//! ([`keepup_recording::set`]). Invariants: no payload passes the controller; an answer is whole or an error;
//! paths outside the directories of a host are refused.
mod host;
mod plan;
mod remote;
#[cfg(test)]
mod testing;
mod worker;

pub use plan::{SetPlan, SetTask};
pub use remote::{Hosts, RemoteSet};
pub use worker::SetWorker;
