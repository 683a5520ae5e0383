//! Links within one process, for tests.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use keepup_peer::{Token, TokenError};

use super::ends::{AgentEnd, ControllerEnd};
use super::{AgentLink, ControllerLink, FromController, FromHost, Secret, Traffic, Waker};
use crate::message::{Heartbeat, HostId, Order};

/// Network of one controller and its hosts.
#[derive(Clone)]
pub struct Network(Arc<Inner>);

struct Inner {
    lead: ControllerEnd,
    /// Connected hosts, with their incarnations.
    hosts: Mutex<BTreeMap<HostId, (u64, Arc<AgentEnd>)>>,
}

impl Network {
    /// Network for hosts 0 to `hosts` - 1, with the end of the controller.
    ///
    /// # Errors
    /// None in practice, see [`Secret::token`].
    pub fn new(secret: &Secret, hosts: HostId) -> Result<(Self, LocalController), TokenError> {
        let lead = ControllerEnd::new(secret, hosts)?;
        let network = Self(Arc::new(Inner { lead, hosts: Mutex::default() }));
        Ok((network.clone(), LocalController(network)))
    }

    /// Connects a host.
    #[must_use]
    pub fn join(&self, host: HostId, incarnation: u64, token: &Token) -> LocalAgent {
        let end = Arc::new(AgentEnd::new(host, token));
        self.hosts().insert(host, (incarnation, Arc::clone(&end)));
        LocalAgent { network: self.clone(), host, incarnation, end }
    }

    /// Delivers bytes to the controller as if `host` had sent them.
    pub fn inject(&self, host: HostId, bytes: &[u8]) {
        self.0.lead.accept(Some(host), bytes);
    }

    fn hosts(&self) -> MutexGuard<'_, BTreeMap<HostId, (u64, Arc<AgentEnd>)>> {
        self.0.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waker(&self, wake: impl Fn(&Inner) + Send + Sync + 'static) -> Waker {
        let inner = Arc::clone(&self.0);
        Waker::new(move || wake(&inner))
    }
}

/// End of the controller. Hosts see it closed when it is dropped.
pub struct LocalController(Network);

impl ControllerLink for LocalController {
    fn send(&mut self, order: &Order) {
        let Some(bytes) = self.0.0.lead.seal(order) else { return };
        if let Some((_, end)) = self.0.hosts().get(&order.host) {
            end.accept(&bytes);
        }
    }

    fn receive(&mut self, timeout: Duration) -> Option<FromHost> {
        self.0.0.lead.receive(timeout)
    }

    fn traffic(&self) -> Traffic {
        self.0.0.lead.traffic()
    }

    fn waker(&self) -> Waker {
        self.0.waker(|inner| inner.lead.wake())
    }
}

impl Drop for LocalController {
    fn drop(&mut self) {
        self.0.hosts().values().for_each(|(_, end)| end.close());
    }
}

/// End of a host. The controller sees it closed when it is dropped.
pub struct LocalAgent {
    network: Network,
    host: HostId,
    incarnation: u64,
    end: Arc<AgentEnd>,
}

impl AgentLink for LocalAgent {
    fn send(&mut self, heartbeat: &Heartbeat) {
        if let Some(bytes) = self.end.seal(heartbeat) {
            self.network.0.lead.accept(Some(self.host), &bytes);
        }
    }

    fn receive(&mut self, timeout: Duration) -> Option<FromController> {
        self.end.receive(timeout)
    }

    fn traffic(&self) -> Traffic {
        self.end.traffic()
    }

    fn waker(&self) -> Waker {
        let end = Arc::clone(&self.end);
        Waker::new(move || end.wake())
    }
}

impl Drop for LocalAgent {
    fn drop(&mut self) {
        let mut hosts = self.network.hosts();
        if hosts.get(&self.host).is_some_and(|(incarnation, _)| *incarnation == self.incarnation) {
            hosts.remove(&self.host);
        }
        drop(hosts);
        self.network.0.lead.close(self.host, self.incarnation);
    }
}
