//! Commands of keepup that measure, run on a host: the cells of a campaign.
//!
//! A host checks a command with `--dry-run` before it runs: every directory that the command writes to must
//! be one of the host's. The result goes to a temporary directory, is compressed, and travels in parts that
//! fit into heartbeats; the controller asks for each part after the first. A result that is too large fails
//! the run; nothing is cut off.
mod archive;
mod check;
mod plan;
mod program;
mod worker;

pub use archive::unpack;
pub use plan::{CheckedCommand, CommandEnd, CommandPlan, batches, check_length};
pub use program::Program;
pub use worker::CommandWorker;

pub use crate::reply::{Reply, ReplyError};
