//! Messages by which a client finds the recorders of its streams in a fleet.
use std::net::SocketAddr;

use keepup_error::Cause;
use serde::{Deserialize, Serialize};

use super::{ControlMessage, FrameKind, MAX_STREAMS, VERSION, check_ids, check_protocol, is_printable_name};

/// Question of a client, before hello: which recorders take these streams?
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Locate {
    /// Version of the protocol, 1.
    pub protocol: u32,
    /// Client name for logs and reports; 1 to 256 bytes of visible characters.
    pub client: String,
    /// Ids of the streams.
    pub streams: Vec<u32>,
}

impl Locate {
    /// A question of this version of the protocol.
    pub fn new(client: &str, streams: Vec<u32>) -> Locate {
        Locate { protocol: u32::from(VERSION), client: client.to_owned(), streams }
    }
}

impl ControlMessage for Locate {
    const KIND: FrameKind = FrameKind::Locate;

    fn check(&self) -> Result<(), Cause> {
        check_protocol(self.protocol)?;
        if !is_printable_name(&self.client) {
            let what = "the name of the client is not valid";
            return Err(Cause::new(what).with_hint("1 to 256 bytes of visible characters"));
        }
        if self.streams.is_empty() || self.streams.len() > MAX_STREAMS {
            let count = self.streams.len();
            return Err(format!("{count} streams listed, allowed are 1 to {MAX_STREAMS}").into());
        }
        check_ids(self.streams.iter().copied())
    }
}

/// Recorder of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocatedStream {
    /// Stream id.
    pub id: u32,
    /// Where the recorder listens.
    pub address: SocketAddr,
}

/// Answer to [`Locate`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Located {
    /// Version of this assignment: higher is newer.
    pub epoch: u64,
    /// The streams that were asked for, without those that no recorder takes.
    pub streams: Vec<LocatedStream>,
}

impl ControlMessage for Located {
    const KIND: FrameKind = FrameKind::Located;

    fn check(&self) -> Result<(), Cause> {
        check_ids(self.streams.iter().map(|stream| stream.id))
    }
}

#[cfg(test)]
#[path = "locate_tests.rs"]
mod tests;
