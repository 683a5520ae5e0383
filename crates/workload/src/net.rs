//! Network test without storage: TCP and UDP flows between `keepup net serve` and a client, which
//! share their code. `keepup source --serve` also runs a source for the client: its side is in `source`,
//! that of the server in `server::session::source`.
//!
//! The client connects to the server's single TCP port, both ends prove that they know the token,
//! and the client sends the test specification; the client also opens every flow. Each end counts
//! its bytes and CPU time within its own measurement window, and the client combines the two
//! reports. A server never touches a disk and sends only to the address that connected.
mod client;
mod control;
mod flow;
mod handshake;
mod ledger;
mod local_end;
mod path;
mod proof;
mod sequence;
mod server;
mod source;
mod spec;
mod wire;

/// Default port of `keepup net serve`.
pub const PORT: u16 = 7613;
/// Environment variable for the token, used when no flag gives one.
pub const TOKEN_VARIABLE: &str = "KEEPUP_NET_TOKEN";

pub use client::{NetMeasured, NetTest};
pub use handshake::Server as NetServer;
pub use proof::{Credentials, Random};
pub use sequence::Sequence;
pub use server::{Listening, ServerSettings};
pub use source::{PORT as SOURCE_PORT, RemoteSource, SourceCounts, Timeline as SourceTimeline};
pub(crate) use source::{RemoteOrder, RemoteRun, RemoteWaiting};
pub use spec::{Direction, NetSpec, Probe, Protocol, ReceiveBy, SendBy};
pub use wire::conversation;

pub use crate::error::{NetError, SpecError};
