//! The intake's side of the volumes: placement, hand-over, and what is known of each.
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

/// A writer is told of small blocks when they come to this much together, or at the next tick.
const NUDGE_BYTES: u64 = 1 << 20;
/// A volume's rest doubles with every time it was slow, up to so many.
const RESTS_COUNTED: u32 = 6;

/// The intake's end of one volume.
pub(crate) struct VolumeLink {
    pub(crate) blocks: rtrb::Producer<Sealed>,
    pub(crate) reports: rtrb::Consumer<FromWriter>,
    pub(crate) waker: Waker,
    pub(crate) signals: Arc<WriterSignals>,
    pub(crate) keeper: Sender<ToKeeper>,
    pub(crate) label: String,
    /// Bytes handed over since the writer was last told.
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
    /// Gap entries of the journals, with the one that may still grow.
    gaps: u64,
    /// Damaged events that follow each other become one entry.
    open_gap: Option<Gap>,
    /// Writers were asked to end.
    is_closing: bool,
}

/// Whether and how often a volume was taken out of rotation for being slow.
#[derive(Clone, Copy, Debug, Default)]
struct Rest {
    times: u32,
    /// It rests at least until then.
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

    /// Why volumes failed, for people.
    pub(super) fn failures(&self) -> String {
        self.failures.iter().map(|(why, _)| why.as_str()).collect::<Vec<_>>().join("; ")
    }

    #[expect(clippy::result_large_err, reason = "the block goes back to its owner; boxing would allocate")]
    /// Hands a block to the volume that placement chooses, or back with the cause when none takes it.
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
            // The ring holds as many blocks as the pool can have, so this is a writer that is gone.
            Err(rtrb::PushError::Full(sealed)) => Err((sealed, LossCause::VolumeFailed)),
        }
    }

    /// Tells writers of the blocks handed over since the last time, however few, and keepers of the last gap.
    pub(super) fn nudge(&mut self) {
        self.send_open_gap();
        self.links.iter_mut().filter(|link| link.fresh_bytes > 0).for_each(VolumeLink::nudge);
    }

    /// Whether no writer has said anything that was not heard yet.
    pub(super) fn is_silent(&self) -> bool {
        self.links.iter().all(|link| link.reports.is_empty())
    }

    pub(super) fn next_report(&mut self, volume: usize) -> Option<FromWriter> {
        self.links[volume].reports.pop().ok()
    }

    /// A block left the writer's hands.
    pub(super) fn settle(&mut self, volume: usize, bytes: u64) {
        let load = &mut self.loads[volume];
        load.bytes_waiting = load.bytes_waiting.saturating_sub(bytes);
    }

    /// Takes a volume out of rotation.
    pub(super) fn fail(&mut self, volume: usize, why: String, cause: LossCause) {
        self.loads[volume].usable = false;
        self.rests[volume].until_ns = None;
        self.note_rotation(volume, RotationState::Failed, &why);
        // A volume fails once.
        let _ = self.counters.volumes[volume].failure.set(why.clone());
        self.failures.push((format!("{}: {why}", self.links[volume].label), cause));
        if self.all_failed() {
            // A slow volume is better than none.
            let resting = |at: &usize| self.rests[*at].until_ns.is_some();
            for volume in (0..self.links.len()).filter(resting).collect::<Vec<_>>() {
                self.take_back(volume, "no other volume works");
            }
        }
    }

    /// Takes volumes out of rotation that have owed an answer for too long while others are quick, and takes
    /// those back that have answered. Tells what happened, for people.
    pub(super) fn review(&mut self, now_ns: u64) -> Option<String> {
        let age_ns = |volume: usize| {
            let since_ns = self.counters.volumes[volume].oldest_ns.load(Relaxed);
            if since_ns == 0 { 0 } else { now_ns.saturating_sub(since_ns) }
        };
        let back = |volume: &usize| {
            self.rests[*volume].until_ns.is_some_and(|until_ns| now_ns >= until_ns && age_ns(*volume) == 0)
        };
        if let Some(volume) = (0..self.links.len()).find(back) {
            self.take_back(volume, "it has written what it was given");
            return Some(format!("{}: back in rotation", self.links[volume].label));
        }
        let limit_ns = self.slow_after_ns;
        let slow = |volume: &usize| self.loads[*volume].usable && age_ns(*volume) >= limit_ns;
        let quick = |volume: usize| self.loads[volume].usable && age_ns(volume) < limit_ns / 2;
        let volume = (0..self.links.len()).find(slow).filter(|_| (0..self.links.len()).any(quick))?;
        let why =
            format!("a write or flush has taken {:.1} s and has not ended", age_ns(volume) as f64 / 1e9);
        let rest = &mut self.rests[volume];
        // The more often it was slow, the less it is trusted.
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
        self.tell(|| ToKeeper::Rotation(rotation.clone()));
    }

    /// Every writer makes everything durable now.
    pub(super) fn flush(&self) {
        for link in &self.links {
            WriterSignals::raise(&link.signals.flush, &link.waker);
        }
    }

    /// Every writer finishes and ends.
    pub(super) fn close(&mut self) {
        self.is_closing = true;
        for link in &self.links {
            WriterSignals::raise(&link.signals.close, &link.waker);
        }
    }

    /// Whether every writer has ended and said all it had to say.
    pub(super) fn is_closed(&self) -> bool {
        self.links.iter().all(|link| link.reports.is_abandoned() && link.reports.is_empty())
    }

    /// Enters a stream into every journal.
    pub(super) fn announce(&self, info: &StreamInfo) {
        self.tell(|| ToKeeper::Stream(info.clone()));
    }

    /// Enters a gap into every journal; returns the number of that entry.
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
            self.tell(|| ToKeeper::Gap(gap));
        }
    }

    /// Gaps entered into the journals so far.
    pub(super) fn gaps_noted(&self) -> u64 {
        self.gaps
    }

    /// Gap entries that are on stable storage in one journal at least.
    pub(super) fn gaps_durable(&self) -> u64 {
        self.counters.volumes.iter().map(|volume| volume.gaps_durable.load(Relaxed)).max().unwrap_or(0)
    }

    /// A writer that ended, though nobody asked it to, and was not noticed before.
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
        self.tell(|| ToKeeper::Conclude(end.clone()));
    }

    fn tell(&self, message: impl Fn() -> ToKeeper) {
        for link in &self.links {
            // A keeper that is gone has reported why through its writer.
            let _ = link.keeper.send(message());
        }
    }
}

/// Whether `next` lies right behind the damaged events of `gap` and is damaged too.
fn is_continued(gap: &Gap, next: &Gap) -> bool {
    let is_alike =
        gap.cause == LossCause::BadChecksum && (gap.stream, gap.cause) == (next.stream, next.cause);
    is_alike && gap.first_sequence + gap.events == next.first_sequence
}
