//! The intake's side of the volumes: placement, hand-over, and what is known of each.
use std::sync::mpsc::Sender;
use std::sync::{Arc, atomic::Ordering::Relaxed};

use keepup_stream::ledger::{Gap, LossCause};
use keepup_stream::wire::StreamInfo;
use keepup_sys::waker::Waker;

use crate::counters::Counters;
use crate::keeper::ToKeeper;
use crate::link::{FromWriter, Sealed, WriterSignals};
use crate::placement::{Placement, VolumeLoad};

/// A writer is told of small blocks when they come to this much together, or at the next tick.
const NUDGE_BYTES: u64 = 1 << 20;

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
    failures: Vec<(String, LossCause)>,
}

impl Volumes {
    pub(super) fn new(
        links: Vec<VolumeLink>,
        placement: Box<dyn Placement>,
        counters: Arc<Counters>,
    ) -> Self {
        let loads = vec![VolumeLoad { usable: true, bytes_waiting: 0 }; links.len()];
        Self { links, loads, placement, counters, failures: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.links.len()
    }

    pub(super) fn label(&self, volume: usize) -> &str {
        &self.links[volume].label
    }

    pub(super) fn usable(&self) -> usize {
        self.loads.iter().filter(|load| load.usable).count()
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

    /// Tells writers of the blocks handed over since the last time, however few.
    pub(super) fn nudge(&mut self) {
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
        // A volume fails once.
        let _ = self.counters.volumes[volume].failure.set(why.clone());
        self.failures.push((format!("{}: {why}", self.links[volume].label), cause));
    }

    /// Every writer makes everything durable now.
    pub(super) fn flush(&self) {
        for link in &self.links {
            WriterSignals::raise(&link.signals.flush, &link.waker);
        }
    }

    /// Every writer finishes and ends.
    pub(super) fn close(&self) {
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

    /// Enters a gap into every journal.
    pub(super) fn note_gap(&self, gap: Gap) {
        self.tell(|| ToKeeper::Gap(gap));
    }

    /// Hands the final account to every journal.
    pub(super) fn conclude(&self, end: &crate::keeper::Conclusion) {
        self.tell(|| ToKeeper::Conclude(end.clone()));
    }

    fn tell(&self, message: impl Fn() -> ToKeeper) {
        for link in &self.links {
            // A keeper that is gone has reported why through its writer.
            let _ = link.keeper.send(message());
        }
    }
}
