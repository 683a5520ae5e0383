//! The two ends of a link, independent of the transport: encode, check, count and queue messages.
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use keepup_peer::{Token, TokenError};

use super::inbox::Inbox;
use super::seal::{Key, Keys, Refusal, Secret};
use super::{Count, FromController, FromHost, Traffic};
use crate::message::{Heartbeat, HostId, Order};

/// Kinds of messages in an inbox.
const MESSAGE: u8 = 0;
const CLOSED: u8 = 1;
const REFUSED: u8 = 2;
/// Sender of refused messages without a known host.
const NOBODY: u32 = u32::MAX;

/// Counters of a link.
#[derive(Debug, Default)]
struct Counters {
    sent: [AtomicU64; 2],
    received: [AtomicU64; 2],
}

impl Counters {
    fn add([messages, bytes]: &[AtomicU64; 2], length: usize) {
        messages.fetch_add(1, Ordering::Relaxed);
        bytes.fetch_add(u64::try_from(length).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn read(&self) -> Traffic {
        let count = |[messages, bytes]: &[AtomicU64; 2]| Count {
            messages: messages.load(Ordering::Relaxed),
            bytes: bytes.load(Ordering::Relaxed),
        };
        Traffic { sent: count(&self.sent), received: count(&self.received) }
    }
}

/// End of the controller.
pub(super) struct ControllerEnd {
    hosts: Vec<Keys>,
    inbox: Inbox<FromHost>,
    counters: Counters,
}

impl ControllerEnd {
    /// End for hosts 0 to `hosts` - 1.
    pub(super) fn new(secret: &Secret, hosts: HostId) -> Result<Self, TokenError> {
        let keys = (0..hosts).map(|host| Ok(Keys::new(&secret.token(host)?))).collect::<Result<_, _>>()?;
        Ok(Self { hosts: keys, inbox: Inbox::default(), counters: Counters::default() })
    }

    /// Encodes and counts an order; none if its host is unknown or the order is too long.
    pub(super) fn seal(&self, order: &Order) -> Option<Vec<u8>> {
        let sealed = match self.keys(order.host) {
            Some(keys) => keys.orders.seal(order),
            None => Err(Refusal::UnknownHost),
        };
        match sealed {
            Ok(bytes) => {
                Counters::add(&self.counters.sent, bytes.len());
                Some(bytes)
            }
            Err(why) => {
                self.refuse(Some(order.host), why);
                None
            }
        }
    }

    /// Handles bytes received for `host`; `None` if the address belongs to no host.
    pub(super) fn accept(&self, host: Option<HostId>, bytes: &[u8]) {
        Counters::add(&self.counters.received, bytes.len());
        let known = host.and_then(|host| Some((host, self.keys(host)?)));
        let Some((host, keys)) = known else { return self.refuse(None, Refusal::UnknownHost) };
        match keys.heartbeats.open::<Heartbeat>(bytes) {
            Ok(heartbeat) if heartbeat.host != host => {
                self.refuse(Some(host), Refusal::OtherHost(heartbeat.host))
            }
            Ok(heartbeat) => self.inbox.push((MESSAGE, host), FromHost::Heartbeat(Box::new(heartbeat))),
            Err(why) => self.refuse(Some(host), why),
        }
    }

    /// Reports that the connection of a host is closed.
    pub(super) fn close(&self, host: HostId, incarnation: u64) {
        if self.keys(host).is_some() {
            self.inbox.push((CLOSED, host), FromHost::Closed { host, incarnation });
        }
    }

    fn keys(&self, host: HostId) -> Option<&Keys> {
        self.hosts.get(usize::try_from(host).ok()?)
    }

    fn refuse(&self, host: Option<HostId>, why: Refusal) {
        self.inbox.push((REFUSED, host.unwrap_or(NOBODY)), FromHost::Refused { host, why });
    }

    pub(super) fn receive(&self, timeout: Duration) -> Option<FromHost> {
        self.inbox.pop(timeout)
    }

    pub(super) fn wake(&self) {
        self.inbox.wake();
    }

    pub(super) fn traffic(&self) -> Traffic {
        self.counters.read()
    }
}

/// End of a host.
pub(super) struct AgentEnd {
    host: HostId,
    keys: Keys,
    inbox: Inbox<FromController>,
    counters: Counters,
}

impl AgentEnd {
    pub(super) fn new(host: HostId, token: &Token) -> Self {
        Self { host, keys: Keys::new(token), inbox: Inbox::default(), counters: Counters::default() }
    }

    /// Encodes and counts a heartbeat; none if it is too long.
    pub(super) fn seal(&self, heartbeat: &Heartbeat) -> Option<Vec<u8>> {
        match self.keys.heartbeats.seal(heartbeat) {
            Ok(bytes) => {
                Counters::add(&self.counters.sent, bytes.len());
                Some(bytes)
            }
            Err(why) => {
                self.refuse(why);
                None
            }
        }
    }

    /// Handles received bytes.
    pub(super) fn accept(&self, bytes: &[u8]) {
        Counters::add(&self.counters.received, bytes.len());
        let orders: &Key = &self.keys.orders;
        match orders.open::<Order>(bytes) {
            Ok(order) if order.host != self.host => self.refuse(Refusal::OtherHost(order.host)),
            Ok(order) => self.inbox.push((MESSAGE, 0), FromController::Order(Box::new(order))),
            Err(why) => self.refuse(why),
        }
    }

    /// Reports that the connection is closed.
    pub(super) fn close(&self) {
        self.inbox.push((CLOSED, 0), FromController::Closed);
    }

    fn refuse(&self, why: Refusal) {
        self.inbox.push((REFUSED, 0), FromController::Refused(why));
    }

    pub(super) fn receive(&self, timeout: Duration) -> Option<FromController> {
        self.inbox.pop(timeout)
    }

    pub(super) fn wake(&self) {
        self.inbox.wake();
    }

    pub(super) fn traffic(&self) -> Traffic {
        self.counters.read()
    }
}
