//! The network alone: flows of TCP and UDP between `keepup net serve` and a client, both ends with the same
//! code.
//!
//! A client connects to a server's one TCP port, both prove that they know the token, and the client says
//! what it wants; every flow is then opened by the client too. Each end counts its own bytes and CPU within
//! its own window, and the client puts the two accounts together. A server touches no disk, and sends to nobody
//! but the address that asked.
mod client;
mod control;
mod error;
mod flow;
mod half;
mod ledger;
mod path;
mod proof;
mod sequence;
mod server;
mod session;
mod spec;
mod wire;

/// Port of `keepup net serve` unless told otherwise.
pub const PORT: u16 = 7613;
/// Variable of the environment in which a token is looked for when no flag has it.
pub const TOKEN_VARIABLE: &str = "KEEPUP_NET_TOKEN";

pub use client::{NetMeasured, NetTest, Server as NetServer};
pub use error::NetError;
pub use proof::{Credentials, Random};
pub use sequence::Sequence;
pub use server::{Listening, ServerLimits};
pub use spec::{Direction, NetSpec, Probe, Protocol, ReceiveBy, SendBy, SpecError};
pub use wire::conversation;
