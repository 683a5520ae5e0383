//! The intake's side of the volumes: placement, hand-over, and the state of each volume.
//!
//! Invariant: as long as a volume works, some volume is in rotation.
use Ordering::Relaxed;
use std::sync::mpsc::Sender;
use std::sync::{Arc, atomic::Ordering};
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_recording::journal::{Rotation, RotationState};
use keepup_stream::ledger::{Gap, LossCause};
use keepup_stream::wire::StreamInfo;
use keepup_sys::waker::Waker;

use crate::counters::Counters;
use crate::keeper::ToKeeper;
use crate::link::{FromWriter, Sealed, WriterSignals};
use crate::placement::{Placement, VolumeLoad};

/// A writer is woken for small blocks when they add up to this much, or at the next tick.
const NUDGE_BYTES: u64 = 1 << 20;
/// A slow volume's time out of rotation doubles each time, at most this often.
const RESTS_COUNTED: u32 = 6;

/// The intake's link to one volume.
pub(crate) struct VolumeLink {
    pub(crate) blocks: rtrb::Producer<Sealed>,
    pub(crate) reports: rtrb::Consumer<FromWriter>,
    pub(crate) waker: Waker,
    pub(crate) signals: Arc<WriterSignals>,
    pub(crate) keeper: Sender<ToKeeper>,
    pub(crate) label: String,
    /// Bytes handed over since the writer was last woken.
    pub(crate) fresh_bytes: u64,
}

impl VolumeLink {
    fn nudge(&mut self) {
        self.fresh_bytes = 0;
        self.waker.nudge();
    }
}

/// All volumes of a recording.
pub(super) struct Volumes {
    links: Vec<VolumeLink>,
    loads: Vec<VolumeLoad>,
    placement: Box<dyn Placement>,
    counters: Arc<Counters>,
    clock: Arc<dyn Clock>,
    slow_after_ns: u64,
    rests: Vec<Rest>,
    failures: Vec<(String, LossCause)>,
    /// Gap entries of the journals, including the open one.
    gaps: u64,
    /// Consecutive damaged events become one entry.
    open_gap: Option<Gap>,
    /// Writers were asked to end.
    is_closing: bool,
}

/// Rotation state of a slow volume.
#[derive(Clone, Copy, Debug, Default)]
struct Rest {
    times: u32,
    /// Earliest time of its return.
    until_ns: Option<u64>,
}

impl Volumes {
    pub(super) fn new(
        links: Vec<VolumeLink>,
        placement: Box<dyn Placement>,
        counters: Arc<Counters>,
        clock: Arc<dyn Clock>,
        slow_after: Duration,
    ) -> Self {
        let loads = vec![VolumeLoad { usable: true, bytes_waiting: 0 }; links.len()];
        let rests = vec![Rest::default(); links.len()];
        let slow_after_ns = slow_after.as_nanos() as u64;
        Self {
            links,
            loads,
            placement,
            counters,
            clock,
            slow_after_ns,
            rests,
            failures: Vec::new(),
            gaps: 0,
            open_gap: None,
            is_closing: false,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.links.len()
    }

    pub(super) fn label(&self, volume: usize) -> &str {
        &self.links[volume].label
    }

    /// Whether no volume is in rotation.
    pub(super) fn all_failed(&self) -> bool {
        self.loads.iter().all(|load| !load.usable)
    }

    pub(super) fn bytes_waiting(&self) -> u64 {
        self.loads.iter().map(|load| load.bytes_waiting).sum()
    }

    /// Reasons why volumes failed.
    pub(super) fn failures(&self) -> String {
        self.failures.iter().map(|(why, _)| why.as_str()).collect::<Vec<_>>().join("; ")
    }

    #[expect(clippy::result_large_err, reason = "the block goes back to its owner; boxing would allocate")]
    /// Hands a block to the volume that the placement rule chooses; returns it with a cause if
    /// none takes it.
    pub(super) fn place(&mut self, sealed: Sealed) -> Result<(), (Sealed, LossCause)> {
        let cause = self.failures.last().map_or(LossCause::VolumeFailed, |(_, cause)| *cause);
        let Some(volume) = self.placement.choose(sealed.meta.header.stream, &self.loads) else {
            return Err((sealed, cause));
        };
        let bytes = sealed.meta.bytes as u64;
        let link = &mut self.links[volume];
        match link.blocks.push(sealed) {
            Ok(()) => {
                link.fresh_bytes += bytes;
                if link.fresh_bytes >= NUDGE_BYTES {
                    link.nudge();
                }
                self.loads[volume].bytes_waiting += bytes;
                let placed = &self.counters.volumes[volume].placed_bytes;
                placed.store(placed.load(Relaxed) + bytes, Relaxed);
                Ok(())
            }
            // The ring has as many slots as the pool can have blocks, so it is full only when the
            // writer has ended.
            Err(rtrb::PushError::Full(sealed)) => Err((sealed, LossCause::VolumeFailed)),
        }
    }

    /// Wakes writers that have new blocks, and enters the open gap.
    pub(super) fn nudge(&mut self) {
        self.send_open_gap();
        self.links.iter_mut().filter(|link| link.fresh_bytes > 0).for_each(VolumeLink::nudge);
    }

    /// Whether no report of a writer waits to be handled.
    pub(super) fn is_silent(&self) -> bool {
        self.links.iter().all(|link| link.reports.is_empty())
    }

    pub(super) fn next_report(&mut self, volume: usize) -> Option<FromWriter> {
        self.links[volume].reports.pop().ok()
    }

    /// Accounts for a block that the writer has completed or returned.
    pub(super) fn settle(&mut self, volume: usize, bytes: u64) {
        let load = &mut self.loads[volume];
        load.bytes_waiting = load.bytes_waiting.saturating_sub(bytes);
    }

    /// Takes a volume out of rotation for good.
    pub(super) fn fail(&mut self, volume: usize, why: String, cause: LossCause) {
        self.loads[volume].usable = false;
        self.rests[volume].until_ns = None;
        self.note_rotation(volume, RotationState::Failed, &why);
        // Set only once, by the first failure.
        let _ = self.counters.volumes[volume].failure.set(why.clone());
        self.failures.push((format!("{}: {why}", self.links[volume].label), cause));
        if self.all_failed() {
            // If only slow volumes are left, one of them goes back into rotation.
            let resting = |at: &usize| self.rests[*at].until_ns.is_some();
            for volume in (0..self.links.len()).filter(resting).collect::<Vec<_>>() {
                self.take_back(volume, "no other volume works");
            }
        }
    }

    /// Takes volumes out of rotation that have not completed a write for too long while others
    /// have, and returns recovered volumes to rotation. Returns a description of the change.
    pub(super) fn review(&mut self, now_ns: u64) -> Option<String> {
        let age_ns = |volume: usize| {
            let since_ns = self.counters.volumes[volume].oldest_ns.load(Relaxed);
            if since_ns == 0 { 0 } else { now_ns.saturating_sub(since_ns) }
        };
        let back = |volume: &usize| {
            self.rests[*volume].until_ns.is_some_and(|until_ns| now_ns >= until_ns && age_ns(*volume) == 0)
        };
        if let Some(volume) = (0..self.links.len()).find(back) {
            self.take_back(volume, "it has completed its writes");
            return Some(format!("{}: back in rotation", self.links[volume].label));
        }
        let limit_ns = self.slow_after_ns;
        let slow = |volume: &usize| self.loads[*volume].usable && age_ns(*volume) >= limit_ns;
        let quick = |volume: usize| self.loads[volume].usable && age_ns(volume) < limit_ns / 2;
        let volume = (0..self.links.len()).find(slow).filter(|_| (0..self.links.len()).any(quick))?;
        let why = format!("a write or flush has not completed after {:.1} s", age_ns(volume) as f64 / 1e9);
        let rest = &mut self.rests[volume];
        // The time out of rotation grows with the number of times that the volume was slow.
        rest.until_ns = Some(now_ns + (limit_ns << rest.times.min(RESTS_COUNTED)));
        rest.times += 1;
        self.loads[volume].usable = false;
        self.counters.volumes[volume].rests.store(rest.times.into(), Relaxed);
        WriterSignals::raise(&self.links[volume].signals.rest, &self.links[volume].waker);
        self.note_rotation(volume, RotationState::Slow, &why);
        Some(format!("{}: taken out of rotation: {why}", self.links[volume].label))
    }

    fn take_back(&mut self, volume: usize, why: &str) {
        self.rests[volume].until_ns = None;
        self.loads[volume].usable = true;
        self.links[volume].signals.rest.store(false, Ordering::Release);
        self.note_rotation(volume, RotationState::Back, why);
    }

    fn note_rotation(&self, volume: usize, state: RotationState, why: &str) {
        let rotation = Rotation {
            time_unix_ns: self.clock.unix_ns(),
            volume: volume as u32,
            state,
            why: why.to_owned(),
        };
        self.send_to_keepers(|| ToKeeper::Rotation(rotation.clone()));
    }

    /// Requests a flush of every writer.
    pub(super) fn flush(&self) {
        for link in &self.links {
            WriterSignals::raise(&link.signals.flush, &link.waker);
        }
    }

    /// Asks every writer to finish and end.
    pub(super) fn close(&mut self) {
        self.is_closing = true;
        for link in &self.links {
            WriterSignals::raise(&link.signals.close, &link.waker);
        }
    }

    /// Whether every writer has ended and all its reports are handled.
    pub(super) fn is_closed(&self) -> bool {
        self.links.iter().all(|link| link.reports.is_abandoned() && link.reports.is_empty())
    }

    /// Enters a stream into every journal.
    pub(super) fn announce(&self, info: &StreamInfo) {
        self.send_to_keepers(|| ToKeeper::Stream(info.clone()));
    }

    /// Enters a gap into every journal; returns the number of the entry.
    pub(super) fn note_gap(&mut self, gap: Gap) -> u64 {
        if let Some(open) = self.open_gap.as_mut().filter(|open| is_continued(open, &gap)) {
            open.events += gap.events;
            return self.gaps;
        }
        self.send_open_gap();
        self.open_gap = Some(gap);
        self.gaps += 1;
        self.gaps
    }

    fn send_open_gap(&mut self) {
        if let Some(gap) = self.open_gap.take() {
            self.send_to_keepers(|| ToKeeper::Gap(gap));
        }
    }

    /// Gaps entered into the journals so far.
    pub(super) fn gaps_noted(&self) -> u64 {
        self.gaps
    }

    /// Gap entries on stable storage in at least one journal.
    pub(super) fn gaps_durable(&self) -> u64 {
        self.counters.volumes.iter().map(|volume| volume.gaps_durable.load(Relaxed)).max().unwrap_or(0)
    }

    /// A writer that ended without a request and was not reported before.
    pub(super) fn next_abandoned(&self) -> Option<usize> {
        let ended = |link: &VolumeLink| link.reports.is_abandoned() && link.reports.is_empty();
        (0..self.links.len()).filter(|_| !self.is_closing).find(|&volume| {
            let failure = &self.counters.volumes[volume].failure;
            ended(&self.links[volume]) && failure.get().is_none()
        })
    }

    /// Hands the final account to every journal.
    pub(super) fn conclude(&mut self, end: &crate::keeper::Conclusion) {
        self.send_open_gap();
        self.send_to_keepers(|| ToKeeper::Conclude(end.clone()));
    }

    fn send_to_keepers(&self, message: impl Fn() -> ToKeeper) {
        for link in &self.links {
            // A keeper that ended has reported the reason through its writer.
            let _ = link.keeper.send(message());
        }
    }
}

/// Whether `next` directly follows the damaged events of `gap` and is damaged too.
fn is_continued(gap: &Gap, next: &Gap) -> bool {
    let is_alike =
        gap.cause == LossCause::BadChecksum && (gap.stream, gap.cause) == (next.stream, next.cause);
    is_alike && gap.first_sequence + gap.events == next.first_sequence
}
