//! Which recorder a stream belongs to.
//!
//! Streams are dealt over *slots*: consecutive stream ids go to different slots, and each slot has the same
//! number of streams, ± 1. Everybody who has the view finds the owner without asking. When a recorder is
//! lost, a spare takes its slot, or the slot ends and its streams are dealt over the others; no other stream
//! moves. If the second slot has ended too, rendezvous hashing selects one of those left (D. G. Thaler and
//! C. V. Ravishankar, IEEE/ACM Transactions on Networking 6, 1998).
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
        let (first, second) = choices(stream, self.slots.len());
        let dealt = [first, second].into_iter().find_map(|slot| self.slots.get(slot).copied().flatten());
        dealt.or_else(|| {
            let members = self.slots.iter().zip(0u64..).filter_map(|(slot, index)| Some(((*slot)?, index)));
            members.max_by_key(|&(_, slot)| hash(stream, slot)).map(|(member, _)| member)
        })
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

/// Number of the streams 0 to `streams` - 1 that each of `slots` slots has at the start of a run.
#[must_use]
pub fn shares(streams: u32, slots: usize) -> Vec<u32> {
    let mut shares = vec![0; slots];
    for stream in 0..streams {
        shares.get_mut(choices(stream, slots).0).into_iter().for_each(|share| *share += 1);
    }
    shares
}

/// Slot of a stream, and the slot that takes it if that one has ended, out of `slots`.
///
/// Part of the protocol: all hosts must agree. Streams are dealt in rounds of `slots`; see [`deal`].
const fn choices(stream: u32, slots: usize) -> (usize, usize) {
    if slots < 2 {
        return (0, 0);
    }
    let (stream, others) = (stream as usize, slots - 1);
    let first = deal(stream, slots);
    // A slot has one stream of each round.
    let second = (first + 1 + deal(stream / slots, others)) % slots;
    (first, second)
}

/// Which of `places` gets `number`: the sum of its digits to the base `places`, modulo `places`.
///
/// Consecutive numbers get different places, and so, in the long run, do the numbers of any arithmetic
/// sequence (A. O. Gelfond, Acta Arithmetica 13, 1968): streams that are alike may have the same distance.
const fn deal(number: usize, places: usize) -> usize {
    if places < 2 {
        return 0;
    }
    let (mut rest, mut place) = (number, 0);
    while rest > 0 {
        place = (place + rest % places) % places;
        rest /= places;
    }
    place
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
