//! What answers from disks may hold of this process: memory, places and time, however slowly they are read.
//!
//! Invariant: memory of an answer is counted from before it is copied until its last byte was given to the
//! kernel or its connection is closed; a connection that takes an answer too slowly is closed.
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};

/// Memory is counted in grains of so many bytes.
const GRAIN_BYTES: u64 = 1024;
/// An answer is given to the connection in parts of so many bytes.
const PART_BYTES: usize = 64 << 10;

/// What answers from disks may hold of this process.
#[derive(Clone, Copy, Debug)]
pub struct AnswerLimits {
    /// Memory of all answers that are being sent, bytes. An answer that is larger is never sent.
    pub bytes_max: u64,
    /// Requests under way at a time of one peer address.
    pub requests_per_peer_max: usize,
    /// Time in which any answer may be taken.
    pub send_time: Duration,
    /// Rate at which a large answer must be taken beyond that time, bytes per second.
    pub bytes_per_second_min: u64,
}

impl Default for AnswerLimits {
    fn default() -> Self {
        Self {
            bytes_max: crate::EVENT_BYTES_MAX,
            requests_per_peer_max: 8,
            send_time: Duration::from_secs(30),
            bytes_per_second_min: 1_000_000,
        }
    }
}

/// Who asks: its address, and how to close its connection.
#[derive(Clone)]
pub(crate) struct Peer {
    address: IpAddr,
    close: Arc<Notify>,
}

impl Peer {
    pub(crate) fn new(address: IpAddr) -> Self {
        Self { address: address.to_canonical(), close: Arc::default() }
    }

    /// Waits until the connection is to be closed.
    pub(crate) async fn closed(&self) {
        self.close.notified().await;
    }
}

/// Memory and places of all answers.
pub(crate) struct Answers {
    limits: AnswerLimits,
    memory: Arc<Semaphore>,
    peers: Mutex<BTreeMap<IpAddr, usize>>,
}

/// A place of a peer, given back when this is dropped.
pub(crate) struct Place {
    answers: Arc<Answers>,
    peer: Peer,
}

/// An answer's bytes and all that is taken for them, given back together.
struct Held {
    bytes: Bytes,
    _memory: OwnedSemaphorePermit,
    _place: Place,
    /// Its other end notices when this is dropped.
    _sent: oneshot::Sender<()>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Answers {
    pub(crate) fn new(limits: AnswerLimits) -> Arc<Self> {
        let grains = usize::try_from(limits.bytes_max / GRAIN_BYTES).unwrap_or(Semaphore::MAX_PERMITS);
        let memory = Arc::new(Semaphore::new(grains.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self { limits, memory, peers: Mutex::default() })
    }

    /// Takes a place for a request of `peer`; nothing when it has as many as it may have.
    pub(crate) fn enter(self: &Arc<Self>, peer: &Peer) -> Option<Place> {
        let mut peers = self.peers();
        let count = peers.entry(peer.address).or_default();
        if *count >= self.limits.requests_per_peer_max {
            return None;
        }
        *count += 1;
        Some(Place { answers: Arc::clone(self), peer: peer.clone() })
    }

    /// Takes memory for `bytes`; nothing when others have it now.
    pub(crate) fn reserve(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.memory).try_acquire_many_owned(grains(bytes)?).ok()
    }

    /// Time in which an answer of `bytes` must have been taken.
    fn time_for(&self, bytes: usize) -> Duration {
        let more = bytes as u64 / self.limits.bytes_per_second_min.max(1);
        self.limits.send_time.saturating_add(Duration::from_secs(more))
    }

    fn peers(&self) -> MutexGuard<'_, BTreeMap<IpAddr, usize>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// `bytes` as a body, which holds its `memory` and this place until it was sent. What `memory` has beyond
    /// the bytes is given back. The connection is closed when that takes too long.
    pub(crate) fn body(self, bytes: Bytes, mut memory: OwnedSemaphorePermit) -> Body {
        let kept = grains(bytes.len() as u64).and_then(|grains| memory.split(grains as usize));
        let (limit, close) = (self.answers.time_for(bytes.len()), Arc::clone(&self.peer.close));
        let (sent, was_sent) = oneshot::channel();
        let held = Held { bytes, _memory: kept.unwrap_or(memory), _place: self, _sent: sent };
        tokio::spawn(async move {
            if tokio::time::timeout(limit, was_sent).await.is_err() {
                close.notify_one();
            }
        });
        let parts = stream::unfold(Bytes::from_owner(held), |mut rest| async move {
            let part = rest.split_to(rest.len().min(PART_BYTES));
            (!part.is_empty()).then_some((Ok::<_, Infallible>(part), rest))
        });
        Body::from_stream(parts)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut peers = self.answers.peers();
        if let Some(count) = peers.get_mut(&self.peer.address) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                peers.remove(&self.peer.address);
            }
        }
    }
}

/// Grains that `bytes` take, at least one.
fn grains(bytes: u64) -> Option<u32> {
    u32::try_from(bytes.div_ceil(GRAIN_BYTES).max(1)).ok()
}

#[cfg(test)]
#[path = "answers_tests.rs"]
mod tests;
