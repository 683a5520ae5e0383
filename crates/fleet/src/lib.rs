//! Several hosts as one recorder: trials, recordings and commands on the hosts of a fleet.
//!
//! The protocol is that of [`keepup_membership`]: its controller and hosts decide, and have no I/O. Here,
//! [`controller_loop`] and [`agent_loop`] connect them to a [`link`], to the agents that [`launch`] starts,
//! and to the [`control`] socket. What a host does in a run is a job of [`jobs`].

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may sum"))]

pub mod agent_loop;
pub mod check;
pub mod claim;
pub mod command;
pub mod control;
pub mod controller_loop;
pub mod directories;
mod error;
pub mod file;
pub mod jobs;
pub mod join_info;
pub mod launch;
pub mod link;
mod part;
pub mod qualify;
pub mod record;
mod reply;
pub mod set;
mod table;
pub mod tls;
pub mod trial;
mod wall;

pub use error::FleetError;
pub use keepup_membership::{
    Goal, Heartbeat, HostState, Order, Role, Timing, View, clock, controller, host, message, placement,
    timing,
};
