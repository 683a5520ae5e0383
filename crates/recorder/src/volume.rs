//! Starts the two threads of one volume and ties them to the intake.
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use keepup_measure::clock::Clock;
use keepup_recording::id::Id;
use keepup_sys::engine::{BlockEngine, NullEngine, open};
use keepup_sys::file::Access;
use keepup_sys::pool::{GRAIN_BYTES, PoolMemory};
use keepup_sys::waker::Waker;

use crate::counters::Counters;
use crate::intake::VolumeLink;
use crate::keeper::{FromKeeper, Keeper, Place, ToKeeper};
use crate::link::{FromWriter, Sealed, WriterSignals};
use crate::threads::{Threaded, joined, spawn};
use crate::writer::{Limits, Writer, WriterOutcome, WriterParts};
use crate::{RecorderConfig, RecorderError};

/// How the writer's engine turned out, told before the first block.
pub(crate) struct EngineFacts {
    pub(crate) name: &'static str,
    pub(crate) buffers: String,
    pub(crate) note: Option<String>,
}

/// The running threads of a volume.
pub(crate) struct VolumeThreads {
    pub(crate) directory: Option<PathBuf>,
    pub(crate) facts: EngineFacts,
    pub(crate) writer: Threaded<WriterOutcome>,
    pub(crate) keeper: Threaded<(Option<Access>, Vec<String>)>,
    signals: Arc<WriterSignals>,
    waker: Waker,
}

impl VolumeThreads {
    /// Tells the threads that nothing more will come. The intake does that when all goes well.
    pub(crate) fn close(&self) {
        WriterSignals::raise(&self.signals.close, &self.waker);
    }

    /// Ends the threads, whatever became of them.
    pub(crate) fn abandon(self) {
        self.close();
        let _ = self.writer.join();
        let _ = self.keeper.join();
    }
}

/// What a volume's threads are started with.
pub(crate) struct VolumeStart {
    pub(crate) recording: Id,
    pub(crate) config: RecorderConfig,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) intake: Waker,
    pub(crate) index: usize,
    pub(crate) counters: Arc<Counters>,
    pub(crate) memory: PoolMemory,
}

/// The writer's ends of everything that connects it.
struct WriterEnds {
    blocks: rtrb::Consumer<Sealed>,
    reports: rtrb::Producer<FromWriter>,
    waker: Waker,
    signals: Arc<WriterSignals>,
    to_keeper: Sender<ToKeeper>,
    from_keeper: Receiver<FromKeeper>,
}

impl VolumeStart {
    /// Starts keeper and writer; without a place blocks are dropped.
    pub(crate) fn run(self, place: Option<Place>) -> Result<(VolumeLink, VolumeThreads), RecorderError> {
        let directory = place.as_ref().map(|p| p.directory.clone());
        // As many as the pool can have blocks, so that handing one over never fails for lack of room.
        let blocks_max = self.memory.bytes() / GRAIN_BYTES;
        let (to_writer, blocks) = rtrb::RingBuffer::new(blocks_max);
        let (reports, from_writer) = rtrb::RingBuffer::new(blocks_max.max(4096));
        let (to_keeper, inbox) = channel();
        let (answers, from_keeper) = channel();
        let (waker, signals) = (Waker::new()?, Arc::new(WriterSignals::default()));
        let null = place.is_none();
        let keeper = Keeper {
            recording: self.recording,
            volume: self.index as u32,
            place,
            segment_bytes: self.config.segment_bytes,
            clock: Arc::clone(&self.clock),
            inbox,
            answers,
            writer: waker.clone(),
            next_index: 0,
            conclusion: None,
            counters: Arc::clone(&self.counters),
            access: None,
            trouble: Vec::new(),
            gaps: 0,
            flush_due: false,
            is_journal_broken: false,
        };
        let keeper = spawn(format!("ku-keeper-{}", self.index), Vec::new(), move || Ok(keeper.run()))?;
        let link = VolumeLink {
            blocks: to_writer,
            reports: from_writer,
            waker: waker.clone(),
            signals: Arc::clone(&signals),
            keeper: to_keeper.clone(),
            fresh_bytes: 0,
            label: directory.as_ref().map_or_else(|| "null".to_owned(), |d| d.display().to_string()),
        };
        let ends = WriterEnds {
            blocks,
            reports,
            waker: waker.clone(),
            signals: Arc::clone(&signals),
            to_keeper,
            from_keeper,
        };
        let (facts, writer) = match self.writer(ends, null) {
            Ok(started) => started,
            Err(e) => {
                // With the writer gone nobody speaks to the keeper any more: it ends.
                drop(link);
                let _ = keeper.join();
                return Err(e);
            }
        };
        Ok((link, VolumeThreads { directory, facts, writer, keeper, signals, waker }))
    }

    fn writer(
        self,
        ends: WriterEnds,
        null: bool,
    ) -> Result<(EngineFacts, Threaded<WriterOutcome>), RecorderError> {
        let (tell, told) = channel();
        let name = format!("ku-writer-{}", self.index);
        let cpus = self.config.cpus.clone();
        // The ring belongs to the thread that opens it, so the writer does, and tells how it went.
        let writer = spawn(name.clone(), cpus, move || {
            let (engine, note): (Box<dyn BlockEngine>, _) = if null {
                (Box::new(NullEngine::new(&ends.waker)), None)
            } else {
                open(self.config.engine, &self.memory, &ends.waker, self.config.depth)
                    .map_err(|e| e.to_string())?
            };
            let facts = EngineFacts { name: engine.name(), buffers: engine.buffers(), note };
            tell.send(facts).map_err(|_| "nobody waits for the writer".to_owned())?;
            drop(tell);
            Ok(Writer::new(self.parts(ends, engine)).run())
        })?;
        match told.recv() {
            Ok(facts) => Ok((facts, writer)),
            Err(_) => match joined(&name, writer) {
                Err(e) => Err(e),
                Ok(_) => Err(RecorderError::Thread { name, why: "it ended at once".into() }),
            },
        }
    }

    fn parts(self, ends: WriterEnds, engine: Box<dyn BlockEngine>) -> WriterParts {
        WriterParts {
            recording: self.recording,
            limits: Limits { blocks: self.config.depth, bytes: self.config.depth * self.config.block_bytes },
            sync_every: self.config.sync_every,
            clock: self.clock,
            blocks: ends.blocks,
            reports: ends.reports,
            waker: ends.waker,
            intake: self.intake,
            signals: ends.signals,
            to_keeper: ends.to_keeper,
            from_keeper: ends.from_keeper,
            volume: self.index,
            counters: self.counters,
            engine,
        }
    }
}
