//! Clients of the server, and bounded numbers of places for them.
//!
//! Invariant: a client that has presented a token finds a place, however many others there are, unless all
//! places have clients with a token.
use std::net::IpAddr;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// What a client has shown of itself, in the order of trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// It has sent no request that was allowed.
    Silent,
    /// Its requests needed no token.
    Anonymous,
    /// It has presented a token.
    Known,
}

/// A client: its address, its standing, and the handle that closes its connection.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    address: IpAddr,
    standing: Arc<AtomicU8>,
    close: Arc<Notify>,
}

impl Peer {
    pub(crate) fn new(address: IpAddr) -> Self {
        let standing = Arc::new(AtomicU8::new(Standing::Silent as u8));
        Self { address: address.to_canonical(), standing, close: Arc::default() }
    }

    /// Its address.
    pub(crate) fn address(&self) -> IpAddr {
        self.address
    }

    /// Its standing.
    pub(crate) fn standing(&self) -> Standing {
        match self.standing.load(Relaxed) {
            0 => Standing::Silent,
            1 => Standing::Anonymous,
            _ => Standing::Known,
        }
    }

    /// Raises its standing; it never falls.
    pub(crate) fn raise(&self, standing: Standing) {
        self.standing.fetch_max(standing as u8, Relaxed);
    }

    /// Closes the connection.
    pub(crate) fn close(&self) {
        self.close.notify_one();
    }

    /// Waits until the connection must be closed.
    pub(crate) async fn closed(&self) {
        self.close.notified().await;
    }
}

/// A bounded number of places.
#[derive(Debug)]
pub(crate) struct Places {
    max: usize,
    taken: Mutex<Taken>,
}

/// Clients with a place, oldest first.
#[derive(Debug, Default)]
struct Taken {
    peers: Vec<(u64, Peer)>,
    next: u64,
}

/// A place, released on drop.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    number: u64,
}

impl Places {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, taken: Mutex::default() })
    }

    /// Takes a place for `peer`. When all are taken, the oldest of the least trusted clients is closed, if it
    /// `may_go`; otherwise there is no place.
    pub(crate) fn enter(self: &Arc<Self>, peer: &Peer, may_go: impl Fn(Standing) -> bool) -> Option<Place> {
        let is_full = self.taken().peers.len() >= self.max;
        if is_full && !self.close_one(may_go) {
            return None;
        }
        let mut taken = self.taken();
        taken.next += 1;
        let number = taken.next;
        taken.peers.push((number, peer.clone()));
        Some(Place { places: Arc::clone(self), number })
    }

    /// Closes the oldest of the least trusted clients, if it `may_go`; returns whether one was closed.
    pub(crate) fn close_one(&self, may_go: impl Fn(Standing) -> bool) -> bool {
        let mut taken = self.taken();
        let places = taken.peers.iter().enumerate().map(|(index, (_, peer))| (index, peer.standing()));
        let Some((index, _)) = places.min_by_key(|(_, standing)| *standing).filter(|(_, s)| may_go(*s))
        else {
            return false;
        };
        let (_, peer) = taken.peers.remove(index);
        peer.close();
        true
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken().peers.retain(|(number, _)| *number != self.number);
    }
}

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
