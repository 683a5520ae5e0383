//! The protocol of a fleet: membership, leases, placement of streams, phases of a run.
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
//! Invariant of this crate: no I/O, clock, thread or randomness. Times are arguments, and the same inputs
//! give the same actions. The simulation in `sim` runs the same [`controller::Controller`] and [`host::Host`]
//! as a real fleet.

pub mod clock;
pub mod controller;
pub mod host;
pub mod message;
pub mod placement;
pub mod timing;

pub use message::{Goal, Heartbeat, HostState, Order, Role};
pub use placement::View;
pub use timing::Timing;

#[cfg(test)]
mod sim;
