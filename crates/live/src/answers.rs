//! Limits of answers with stored data: memory, requests and time, for slow readers too.
//!
//! Invariant: the memory of an answer is counted from before it is copied until its last byte is
//! handed to the kernel or its connection is closed; a connection that reads an answer too slowly
//! is closed.
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::places::{Peer, Standing};

/// Memory is counted in units of this many bytes.
const GRAIN_BYTES: u64 = 1024;
/// An answer is passed to the connection in parts of this many bytes.
const PART_BYTES: usize = 64 << 10;

/// Limits of answers with stored data.
#[derive(Clone, Copy, Debug)]
pub struct AnswerLimits {
    /// Memory of all answers being sent, bytes. A larger answer is never sent.
    pub bytes_max: u64,
    /// Concurrent requests per peer address.
    pub requests_per_peer_max: usize,
    /// Time allowed for any answer.
    pub send_time: Duration,
    /// Lowest rate of reading a large answer beyond that time, bytes per second.
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

/// Clients that share request slots: those of an address, apart by whether they have presented a token.
type PeerKey = (IpAddr, bool);

/// Memory and request slots of all answers.
pub(crate) struct Answers {
    limits: AnswerLimits,
    memory: Arc<Semaphore>,
    peers: Mutex<BTreeMap<PeerKey, usize>>,
}

/// Request slot of a peer, released on drop.
pub(crate) struct RequestSlot {
    answers: Arc<Answers>,
    key: PeerKey,
    peer: Peer,
}

/// An answer's bytes with the memory and slot reserved for them, released together.
struct HeldAnswer {
    bytes: Bytes,
    _memory: OwnedSemaphorePermit,
    _place: RequestSlot,
    /// Signals the other end on drop.
    _sent: oneshot::Sender<()>,
}

impl AsRef<[u8]> for HeldAnswer {
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

    /// Takes a request slot for `peer`; `None` if it has used all of its slots.
    pub(crate) fn enter(self: &Arc<Self>, peer: &Peer) -> Option<RequestSlot> {
        let key = (peer.address(), peer.standing() == Standing::Known);
        let mut peers = self.peers();
        let count = peers.entry(key).or_default();
        if *count >= self.limits.requests_per_peer_max {
            return None;
        }
        *count += 1;
        Some(RequestSlot { answers: Arc::clone(self), key, peer: peer.clone() })
    }

    /// Reserves memory for `bytes`; `None` if it is in use.
    pub(crate) fn reserve(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.memory).try_acquire_many_owned(grains(bytes)?).ok()
    }

    /// Time allowed for reading an answer of `bytes`.
    fn time_for(&self, bytes: usize) -> Duration {
        let more = bytes as u64 / self.limits.bytes_per_second_min.max(1);
        self.limits.send_time.saturating_add(Duration::from_secs(more))
    }

    fn peers(&self) -> MutexGuard<'_, BTreeMap<PeerKey, usize>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RequestSlot {
    /// Converts `bytes` to a body that holds its `memory` and this slot until it is sent. Excess
    /// `memory` is released at once. The connection is closed if sending takes too long.
    pub(crate) fn body(self, bytes: Bytes, mut memory: OwnedSemaphorePermit) -> Body {
        let kept = grains(bytes.len() as u64).and_then(|grains| memory.split(grains as usize));
        let (limit, peer) = (self.answers.time_for(bytes.len()), self.peer.clone());
        let (sent, was_sent) = oneshot::channel();
        let held = HeldAnswer { bytes, _memory: kept.unwrap_or(memory), _place: self, _sent: sent };
        tokio::spawn(async move {
            if tokio::time::timeout(limit, was_sent).await.is_err() {
                peer.close();
            }
        });
        let parts = stream::unfold(Bytes::from_owner(held), |mut rest| async move {
            let part = rest.split_to(rest.len().min(PART_BYTES));
            (!part.is_empty()).then_some((Ok::<_, Infallible>(part), rest))
        });
        Body::from_stream(parts)
    }
}

impl Drop for RequestSlot {
    fn drop(&mut self) {
        let mut peers = self.answers.peers();
        if let Some(count) = peers.get_mut(&self.key) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                peers.remove(&self.key);
            }
        }
    }
}

/// Memory units for `bytes`, at least one.
fn grains(bytes: u64) -> Option<u32> {
    u32::try_from(bytes.div_ceil(GRAIN_BYTES).max(1)).ok()
}

#[cfg(test)]
#[path = "answers_tests.rs"]
mod tests;
