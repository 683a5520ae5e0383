//! Several hosts as one recorder: membership, leases, placement of streams, phases of a run.
//!
//! One process, the *controller*, leads the hosts. A host sends a [`Heartbeat`] at intervals and after each
//! change of its state. The controller answers with an [`Order`]: the host's goal, and the [`View`], which
//! maps each stream to its recorder. Both messages contain the whole state, so a message that is lost,
//! repeated or delayed is repaired by the next one.
//!
//! Each order renews the host's *lease*. A recorder accepts events only while its lease is valid, and the
//! controller reassigns the streams of a silent recorder only after that lease has expired. So a stream never
//! has two owners, whatever the network does, and the clocks of different hosts need not agree.
//!
//! Invariant of [`controller`], [`host`] and the modules that they use: no I/O, clock, thread or randomness.
//! Times are arguments, and the same inputs give the same actions. The simulation in `sim` runs the same
//! [`controller::Controller`] and [`host::Host`] as a real fleet. In a real fleet, [`controller_loop`] and
//! [`agent_loop`] connect them to a [`link`], to the agents that [`launch`] starts, and to the [`control`]
//! socket.

pub mod agent_loop;
pub mod check;
pub mod claim;
pub mod clock;
pub mod command;
pub mod control;
pub mod controller;
pub mod controller_loop;
pub mod directories;
mod error;
pub mod file;
pub mod host;
pub mod jobs;
pub mod join_info;
pub mod launch;
pub mod link;
pub mod message;
mod part;
pub mod placement;
pub mod qualify;
pub mod record;
mod reply;
pub mod set;
mod table;
pub mod timing;
pub mod tls;
pub mod trial;
mod wall;

pub use error::FleetError;
pub use message::{Goal, Heartbeat, HostState, Order, Role};
pub use placement::View;
pub use timing::Timing;

#[cfg(test)]
mod sim;
