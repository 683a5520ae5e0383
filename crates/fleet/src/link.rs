//! Connections between the controller and its hosts.
//!
//! A link is best effort: a message may be lost, repeated or late. Sending never waits for a peer. Memory is
//! bounded: only the latest message of each host is queued. Every message has an authentication code
//! ([`Secret`]); a message with a wrong code, or one that cannot be parsed, is dropped and reported.
//!
//! Implementations: [`local`] within one process, `zenoh` over a network.
mod ends;
mod inbox;
pub mod local;
mod seal;
#[cfg(feature = "zenoh")]
pub mod zenoh;

use std::sync::Arc;
use std::time::Duration;

pub use self::seal::{HEARTBEAT_BYTES_MAX, ORDER_BYTES_MAX, Refusal, Secret};
use crate::message::{Heartbeat, HostId, Order};

/// What the controller receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromHost {
    /// State of a host.
    Heartbeat(Box<Heartbeat>),
    /// The connection of a host is closed.
    Closed {
        /// The host.
        host: HostId,
        /// Its incarnation.
        incarnation: u64,
    },
    /// A message was dropped.
    Refused {
        /// The host whose address the message had, if there is such a host.
        host: Option<HostId>,
        /// Why.
        why: Refusal,
    },
}

/// What a host receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromController {
    /// What to do.
    Order(Box<Order>),
    /// The connection to the controller is closed. The link reconnects by itself.
    Closed,
    /// A message was dropped.
    Refused(Refusal),
}

/// Messages and their bytes, without the overhead of the transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Count {
    /// Messages.
    pub messages: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Traffic of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Traffic {
    /// Sent.
    pub sent: Count,
    /// Received, including refused messages.
    pub received: Count,
}

/// Interrupts a `receive` in another thread.
#[derive(Clone)]
pub struct Waker(Arc<dyn Fn() + Send + Sync>);

impl Waker {
    /// A waker that calls `wake`.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(wake))
    }

    /// Makes the current or the next `receive` return.
    pub fn wake(&self) {
        (self.0)();
    }
}

impl std::fmt::Debug for Waker {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Waker")
    }
}

/// The controller's side.
pub trait ControllerLink: Send {
    /// Sends an order to its host without waiting. It is lost if the host is not connected or slow.
    fn send(&mut self, order: &Order);

    /// Next message; none after `timeout` or a call of the waker.
    fn receive(&mut self, timeout: Duration) -> Option<FromHost>;

    /// Traffic so far.
    fn traffic(&self) -> Traffic;

    /// Handle that interrupts `receive`.
    fn waker(&self) -> Waker;
}

/// The side of a host.
pub trait AgentLink: Send {
    /// Sends a heartbeat to the controller without waiting. It is lost if there is no connection.
    fn send(&mut self, heartbeat: &Heartbeat);

    /// Next message; none after `timeout` or a call of the waker.
    fn receive(&mut self, timeout: Duration) -> Option<FromController>;

    /// Traffic so far.
    fn traffic(&self) -> Traffic;

    /// Handle that interrupts `receive`.
    fn waker(&self) -> Waker;
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
