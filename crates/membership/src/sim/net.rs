//! The network: delays, loss, copies, partitions.
use fastrand::Rng;

use super::MS;
use super::scenario::Scenario;
use crate::message::HostId;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Controller,
    Host(HostId),
}

/// Links of a host.
#[derive(Clone, Copy, Debug, Default)]
struct Links {
    /// Cut from the controller until then, ns.
    control_until: u64,
    /// Cut from the other hosts until then, ns.
    data_until: u64,
    /// Slow until then, ns.
    slow_until: u64,
}

/// State of the network.
#[derive(Debug)]
pub(super) struct Net {
    links: Vec<Links>,
}

impl Net {
    pub(super) fn new(hosts: usize) -> Self {
        Self { links: vec![Links::default(); hosts] }
    }

    pub(super) fn cut(&mut self, host: HostId, until: u64, control: bool, data: bool) {
        let links = &mut self.links[host as usize];
        if control {
            links.control_until = links.control_until.max(until);
        }
        if data {
            links.data_until = links.data_until.max(until);
        }
    }

    pub(super) fn slow(&mut self, host: HostId, until: u64) {
        self.links[host as usize].slow_until = until;
    }

    /// Whether nothing passes between two ends.
    fn is_cut(&self, from: Node, to: Node, now: u64) -> bool {
        match (from, to) {
            (Node::Host(a), Node::Host(b)) => {
                [a, b].iter().any(|&host| self.links[host as usize].data_until > now)
            }
            (Node::Host(host), Node::Controller) | (Node::Controller, Node::Host(host)) => {
                self.links[host as usize].control_until > now
            }
            (Node::Controller, Node::Controller) => false,
        }
    }

    /// Delays after which copies of a message arrive, ns; none if it is lost.
    pub(super) fn copies(
        &self,
        from: Node,
        to: Node,
        now: u64,
        scenario: &Scenario,
        rng: &mut Rng,
    ) -> Vec<u64> {
        if self.is_cut(from, to, now) || rng.f64() < scenario.loss {
            return Vec::new();
        }
        let is_slow = [from, to].iter().any(|node| match node {
            Node::Host(host) => self.links[*host as usize].slow_until > now,
            Node::Controller => false,
        });
        let delay = |rng: &mut Rng| {
            let usual = rng.u64(MS / 20..MS / 2);
            let tail = if rng.f64() < scenario.tail { rng.u64(0..400 * MS) } else { 0 };
            usual + tail + if is_slow { rng.u64(0..150 * MS) } else { 0 }
        };
        let mut delays = vec![delay(rng)];
        if rng.f64() < scenario.repeats {
            delays.push(delay(rng));
        }
        delays
    }
}
