//! Which recorder a stream belongs to.
//!
//! Streams are dealt over *slots* by rendezvous hashing (D. G. Thaler and C. V. Ravishankar, IEEE/ACM
//! Transactions on Networking 6, 1998): a stream belongs to the slot with the highest hash of both. Everybody
//! who has the view finds the owner without asking. When a recorder is lost, a spare takes its slot, or the
//! slot ends and its streams are dealt over the others; no other stream moves.
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::message::HostId;

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
        members.max_by_key(|&(_, index)| hash(stream, index)).map(|(member, _)| member)
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

    /// The view after `host` is lost: `spare` takes its slot.
    #[must_use]
    pub fn without(&self, host: HostId, spare: Option<Member>) -> Self {
        let replace = |slot: &Option<Member>| match slot {
            Some(member) if member.host == host => spare,
            other => *other,
        };
        Self { run: self.run, epoch: self.epoch + 1, slots: self.slots.iter().map(replace).collect() }
    }
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
