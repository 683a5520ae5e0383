//! Rotation: which volumes take blocks. Owned by the first intake; the others read the writers' signals.
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::mpsc::Sender;
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_recording::journal::{Rotation as RotationEntry, RotationState};
use keepup_sys::waker::Waker;

use super::volumes::VolumeLink;
use crate::counters::Counters;
use crate::keeper::ToKeeper;
use crate::link::WriterSignals;

/// A slow volume's time out of rotation doubles each time, at most this often.
const RESTS_COUNTED: u32 = 6;

/// One volume.
struct Member {
    signals: Arc<WriterSignals>,
    waker: Waker,
    keeper: Sender<ToKeeper>,
    label: String,
    /// Number of times that it was slow.
    rests: u32,
    /// Earliest time of its return to rotation, while it is out for being slow.
    until_ns: Option<u64>,
    /// Its failure was entered.
    has_failed: bool,
}

impl Member {
    fn is_usable(&self) -> bool {
        self.until_ns.is_none() && self.signals.failure.get().is_none()
    }
}

/// All volumes of a recording.
pub(super) struct Rotation {
    members: Vec<Member>,
    counters: Arc<Counters>,
    clock: Arc<dyn Clock>,
    slow_after_ns: u64,
}

impl Rotation {
    pub(super) fn new(
        links: &[VolumeLink],
        counters: Arc<Counters>,
        clock: Arc<dyn Clock>,
        slow_after: Duration,
    ) -> Self {
        let member = |link: &VolumeLink| Member {
            signals: Arc::clone(&link.signals),
            waker: link.waker.clone(),
            keeper: link.keeper.clone(),
            label: link.label.clone(),
            rests: 0,
            until_ns: None,
            has_failed: false,
        };
        let members = links.iter().map(member).collect();
        Self { members, counters, clock, slow_after_ns: slow_after.as_nanos() as u64 }
    }

    /// Takes a failed volume out of rotation for good. Returns a description; none if that was done before.
    pub(super) fn fail(&mut self, volume: usize) -> Option<String> {
        if std::mem::replace(&mut self.members[volume].has_failed, true) {
            return None;
        }
        let why = self.members[volume].signals.failure.get().map_or_else(String::new, |f| f.why.clone());
        self.members[volume].until_ns = None;
        self.enter(volume, RotationState::Failed, &why);
        if !self.members.iter().any(Member::is_usable) {
            // If only slow volumes are left, they go back into rotation.
            for resting in 0..self.members.len() {
                if self.members[resting].until_ns.is_some() {
                    self.take_back(resting, "no other volume works");
                }
            }
        }
        Some(format!("{}: {why}", self.members[volume].label))
    }

    /// Takes volumes out of rotation that have not completed a write for too long while others
    /// have, and returns recovered volumes to rotation. Returns a description of the change.
    pub(super) fn review(&mut self, now_ns: u64) -> Option<String> {
        let age_ns = |volume: usize| {
            let since_ns = self.counters.volumes[volume].oldest_ns.load(Relaxed);
            if since_ns == 0 { 0 } else { now_ns.saturating_sub(since_ns) }
        };
        let all = 0..self.members.len();
        let back = |volume: &usize| {
            self.members[*volume].until_ns.is_some_and(|until_ns| now_ns >= until_ns && age_ns(*volume) == 0)
        };
        if let Some(volume) = all.clone().find(back) {
            self.take_back(volume, "it has completed its writes");
            return Some(format!("{}: back in rotation", self.members[volume].label));
        }
        let limit_ns = self.slow_after_ns;
        let slow = |volume: &usize| self.members[*volume].is_usable() && age_ns(*volume) >= limit_ns;
        let quick = |volume: usize| self.members[volume].is_usable() && age_ns(volume) < limit_ns / 2;
        let volume = all.clone().find(slow).filter(|_| all.clone().any(quick))?;
        let why = format!("a write or flush has not completed after {:.1} s", age_ns(volume) as f64 / 1e9);
        let member = &mut self.members[volume];
        // The time out of rotation grows with the number of times that the volume was slow.
        member.until_ns = Some(now_ns + (limit_ns << member.rests.min(RESTS_COUNTED)));
        member.rests += 1;
        self.counters.volumes[volume].rests.store(member.rests.into(), Relaxed);
        WriterSignals::raise(&member.signals.rest, &member.waker);
        self.enter(volume, RotationState::Slow, &why);
        Some(format!("{}: taken out of rotation: {why}", self.members[volume].label))
    }

    fn take_back(&mut self, volume: usize, why: &str) {
        self.members[volume].until_ns = None;
        self.members[volume].signals.rest.store(false, Release);
        self.enter(volume, RotationState::Back, why);
    }

    /// Enters a change into every journal.
    fn enter(&self, volume: usize, state: RotationState, why: &str) {
        let entry = RotationEntry {
            time_unix_ns: self.clock.unix_ns(),
            volume: volume as u32,
            state,
            why: why.to_owned(),
        };
        for member in &self.members {
            // A keeper that ended has reported the reason through its writer.
            let _ = member.keeper.send(ToKeeper::Rotation(entry.clone()));
        }
    }
}
