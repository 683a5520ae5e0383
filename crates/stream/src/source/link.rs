//! How the events of a connection reach the recorder: one file for each protocol.
mod datagrams;
mod dectris;
mod door;
mod files;
pub(super) mod native;
mod packets;
mod pvaccess;
mod spead;

use std::io::IoSlice;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use keepup_peer::Endpoint;

use super::event::Event;
use super::plan::{Protocol, SourcePlan};
use super::{Destination, StreamReport};
use crate::client::{ClientError, Sent};
use crate::wire::Bye;

pub use door::Door;
pub use files::Folder;
pub use pvaccess::subscription;

/// Headers of events.
pub(super) trait Framing {
    /// Whether headers contain a checksum of the payload.
    fn has_checksum(&self) -> bool;

    /// Bytes of an event that are in its header, and not in its payload.
    fn bytes_in_header(&self) -> u64 {
        0
    }

    /// Appends the header of an event of this time, ns since the Unix epoch.
    fn put_header(&self, event: &Event, timestamp_ns: u64, crc: u32, out: &mut Vec<u8>);

    /// Appends what follows the payload of an event of this time.
    fn put_trailer(&self, _event: &Event, _timestamp_ns: u64, _out: &mut Vec<u8>) {}
}

/// A connection, ready for events.
pub(super) trait Link: Framing + Send {
    /// Largest event that the recorder takes, bytes.
    fn event_bytes_max(&self) -> u64;

    /// Next sequence number of each stream.
    fn first_sequences(&self) -> Vec<u64>;

    /// Number of events that the recorder takes now, at least 1. Waits for it, and calls `on_blocked`
    /// meanwhile as [`Link::send`] does; `None` if that gave up. Called between events.
    ///
    /// # Errors
    /// As for [`Link::send`].
    fn credit(
        &mut self,
        _on_blocked: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<u64>, ClientError> {
        Ok(Some(u64::MAX))
    }

    /// Notes that `events` of the credit are sent next.
    fn spend(&mut self, _events: u64) {}

    /// Sends slices in order: the header, the payload and the trailer of each event. Calls `on_blocked` when
    /// the socket is full, and then at least every 50 ms; `Break` gives up.
    ///
    /// # Errors
    /// The connection broke, or the recorder closed it.
    fn send(
        &mut self,
        slices: &mut &mut [IoSlice<'_>],
        on_blocked: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Sent, ClientError>;

    /// Reads the answers that have arrived, without waiting. Called between events.
    ///
    /// # Errors
    /// The recorder refused, or closed the connection.
    fn poll(&mut self) -> Result<(), ClientError>;

    /// Time spent waiting for space in the socket, and the longest single wait, ns.
    fn blocked_ns(&self) -> (u64, u64);

    /// Durable events by the answers so far.
    fn durable_events(&self, streams: &[StreamReport]) -> u64;

    /// Ends the streams; returns the recorder's final counts, if the protocol has them.
    ///
    /// # Errors
    /// As for [`Link::send`], or no answer within `timeout`.
    fn finish(self: Box<Self>, streams: &[StreamReport], timeout: Duration) -> Result<Bye, ClientError>;

    /// Error of a caller that gave up after `waited`.
    fn timed_out(&self, action: &'static str, waited: Duration) -> ClientError;
}

/// Opens a connection of `plan` to the recorder at `to`; `timeout` limits each step. Setting `stop` ends the
/// wait for a recorder that has to connect.
pub(super) fn open(
    plan: &SourcePlan,
    connection: u32,
    to: &Destination,
    stop: &AtomicBool,
    timeout: Duration,
) -> Result<Box<dyn Link>, ClientError> {
    Ok(match (plan.protocol, to) {
        (Protocol::Keepup, Destination::Recorder(to)) => {
            Box::new(native::open(plan, connection, to, timeout)?)
        }
        (Protocol::Udp | Protocol::Vdif { .. }, Destination::Recorder(to)) => {
            Box::new(packets::Packets::open(plan, connection, to)?)
        }
        (Protocol::Spead, Destination::Recorder(to)) => Box::new(spead::Spead::open(plan, connection, to)?),
        (Protocol::Dectris(version), Destination::Accept(door)) => {
            Box::new(dectris::Dectris::open(plan, version, door, stop)?)
        }
        (Protocol::PvAccess, Destination::Accept(door)) => {
            Box::new(pvaccess::PvAccess::open(plan, door, stop)?)
        }
        (Protocol::Files, Destination::Directory(folder)) => {
            Box::new(files::Files::open(plan, connection, folder))
        }
        (_, Destination::Directory(folder)) => {
            let (action, path) = ("send to", folder.path().to_owned());
            return Err(ClientError::File { action, path, source: std::io::ErrorKind::Unsupported.into() });
        }
        (_, Destination::Recorder(to)) => {
            return Err(ClientError::Direction { addr: to.address() });
        }
        (_, Destination::Fleet(fleet)) => {
            // The caller opens these.
            let addr = fleet.recorders.first().map_or(([0, 0, 0, 0], 0).into(), Endpoint::address);
            return Err(ClientError::Direction { addr });
        }
        (_, Destination::Accept(door)) => return Err(ClientError::Direction { addr: door.address() }),
    })
}
