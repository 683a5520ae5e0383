//! Which recorder a stream belongs to.
//!
//! Streams are dealt over *slots* by rendezvous hashing (D. G. Thaler and C. V. Ravishankar, IEEE/ACM
//! Transactions on Networking 6, 1998): a stream belongs to the slot with the highest hash of both. Everybody
//! who has the view finds the owner without asking. When a recorder is lost, a spare takes its slot, or the
//! slot ends and its streams are dealt over the others; no other stream moves.
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// Number of a host: its place in the fleet file, from 0.
pub type HostId = u32;

/// A recorder in its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The recorder.
    pub host: HostId,
    /// Where sources reach it.
    pub address: SocketAddr,
}

/// Where the streams of a run are recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// Number of the run.
    pub run: u64,
    /// Version of the view, from 1; 0 is no view.
    pub epoch: u64,
    /// The slots; an empty one has ended.
    pub slots: Vec<Option<Member>>,
}

impl View {
    /// The first view of a run.
    #[must_use]
    pub fn new(run: u64, epoch: u64, members: &[Member]) -> Self {
        Self { run, epoch, slots: members.iter().copied().map(Some).collect() }
    }

    /// The recorder of a stream; none if there is no recorder.
    #[must_use]
    pub fn owner(&self, stream: u32) -> Option<Member> {
        let members = self.slots.iter().zip(0u64..).filter_map(|(slot, index)| Some(((*slot)?, index)));
        winner(stream, members)
    }

    /// Whether `host` is a recorder of this view.
    #[must_use]
    pub fn has(&self, host: HostId) -> bool {
        self.slots.iter().flatten().any(|member| member.host == host)
    }

    /// Number of recorders.
    #[must_use]
    pub fn recorders(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    /// Gives the slot of `host`, which is lost, to `spare`; returns what changed, or none if it has no slot.
    pub fn replace(&mut self, host: HostId, spare: Option<Member>) -> Option<Change> {
        let is_host = |slot: &Option<Member>| slot.is_some_and(|member| member.host == host);
        let slot = self.slots.iter().position(is_host)?;
        self.slots[slot] = spare;
        self.epoch += 1;
        Some(Change { slot: u32::try_from(slot).ok()?, member: spare })
    }

    /// Takes over what `update` has that is newer.
    pub fn update(&mut self, update: Update) {
        match update {
            Update::Whole(view) if view.epoch > self.epoch => *self = view,
            Update::Changes { run, from, changes } if run == self.run && from <= self.epoch => {
                let known = usize::try_from(self.epoch - from).unwrap_or(usize::MAX);
                for change in changes.iter().skip(known) {
                    let Some(slot) = self.slots.get_mut(change.slot as usize) else { return };
                    *slot = change.member;
                    self.epoch += 1;
                }
            }
            Update::Whole(_) | Update::Changes { .. } => {}
        }
    }
}

/// Streams of the recorder that gets most of the streams 0 to `streams` - 1, with this number of recorders.
#[must_use]
pub fn largest_share(streams: u32, recorders: u32) -> u32 {
    let mut shares = vec![0; recorders as usize];
    for stream in 0..streams {
        let slots = (0..recorders as usize).zip(0u64..);
        if let Some(share) = winner(stream, slots).and_then(|slot| shares.get_mut(slot)) {
            *share += 1;
        }
    }
    shares.into_iter().max().unwrap_or(0)
}

/// The candidate in whose slot a stream is.
fn winner<T>(stream: u32, candidates: impl Iterator<Item = (T, u64)>) -> Option<T> {
    candidates.max_by_key(|&(_, slot)| hash(stream, slot)).map(|(candidate, _)| candidate)
}

/// A slot that has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Number of the slot.
    pub slot: u32,
    /// Its recorder; none if the slot has ended.
    pub member: Option<Member>,
}

/// A newer view, in whole or as changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Update {
    /// The view.
    Whole(View),
    /// Changes since the epoch `from`, each of which makes one epoch.
    Changes {
        /// Number of the run.
        run: u64,
        /// Epoch of the view before.
        from: u64,
        /// The changes in order.
        changes: Vec<Change>,
    },
}

/// Hash of a stream and a slot: the finalizer of SplitMix64 (G. L. Steele, D. Lea and C. H. Flood, OOPSLA
/// 2014), applied to both in turn. Part of the protocol: all hosts must agree.
fn hash(stream: u32, slot: u64) -> u64 {
    mix(mix(u64::from(stream)) ^ slot)
}

const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
