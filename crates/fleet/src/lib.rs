//! Several hosts as one recorder: membership, leases, placement of streams, phases of a run.
//!
//! One process, the *controller*, leads the hosts. A host sends a [`Beat`] at intervals and after each change:
//! what it does, and when by its clock. The controller answers with an [`Order`]: what the host should do, and
//! the [`View`], which says where each stream is recorded. Both carry the whole state, so a message that is
//! lost, repeated or late changes nothing that the next one does not repair.
//!
//! Each order renews the host's *lease*. A recorder takes events only while it has a lease, and the controller
//! gives the streams of a silent recorder to another only after that lease has run out; so no stream has two
//! owners, whatever the network does, and no clocks are compared for it.
//!
//! [`controller::Controller`] and [`host::Host`] decide: no I/O, clock, thread or randomness. Times are
//! arguments, and the same inputs give the same actions; the simulation in `sim` runs them. Around them,
//! [`lead`] and [`follow`] connect them to a [`link`], to the programs that [`launch`] starts, and to the
//! [`control`] socket.

pub mod clock;
pub mod control;
pub mod controller;
pub mod directories;
mod error;
pub mod file;
pub mod follow;
pub mod host;
pub mod launch;
pub mod lead;
pub mod link;
pub mod message;
pub mod placement;
pub mod timing;
mod wall;
pub mod welcome;

pub use error::FleetError;
pub use message::{Beat, Goal, HostState, Order, Role};
pub use placement::View;
pub use timing::Timing;

#[cfg(test)]
mod sim;
