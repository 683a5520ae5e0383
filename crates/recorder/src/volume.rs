//! Starts the two threads of one volume and connects them to the intakes.
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use keepup_error::Cause;
use keepup_measure::clock::Clock;
use keepup_recording::id::Id;
use keepup_recording::layout::SECTOR;
use keepup_sys::engine::{BlockEngine, NullEngine, open};
use keepup_sys::pool::{Pool, PoolMemory};
use keepup_sys::ring;
use keepup_sys::waker::Waker;

use crate::after_seal::SealNotifier;
use crate::counters::Counters;
use crate::intake::VolumeLink;
use crate::keeper::{FromKeeper, Keeper, KeeperOutcome, SegmentSizes, ToKeeper, VolumeDirectory};
use crate::link::WriterSignals;
use crate::switches::Switches;
use crate::threads::{Threaded, catch_panic, joined, spawn};
use crate::writer::{Inlet, Limits, Writer, WriterOutcome, WriterParts};
use crate::{RecorderConfig, RecorderError};

/// Description of the writer's engine, sent before the first block.
pub(crate) struct EngineFacts {
    pub(crate) name: &'static str,
    pub(crate) buffers: String,
    pub(crate) note: Option<Cause>,
}

/// Running threads of a volume.
pub(crate) struct VolumeThreads {
    pub(crate) directory: Option<PathBuf>,
    pub(crate) facts: EngineFacts,
    pub(crate) writer: Threaded<WriterOutcome>,
    pub(crate) keeper: Threaded<KeeperOutcome>,
    signals: Arc<WriterSignals>,
    waker: Waker,
}

impl VolumeThreads {
    /// Signals that no more blocks come. Normally the intakes do this.
    pub(crate) fn close(&self) {
        WriterSignals::raise(&self.signals.close, &self.waker);
    }

    /// Ends the threads after a failure.
    pub(crate) fn abandon(self) {
        self.close();
        let _ = self.writer.join();
        let _ = self.keeper.join();
    }
}

/// Parts of a volume's threads.
pub(crate) struct VolumeStart {
    pub(crate) recording: Id,
    pub(crate) config: RecorderConfig,
    pub(crate) clock: Arc<dyn Clock>,
    /// Wakes each intake.
    pub(crate) intakes: Vec<Waker>,
    pub(crate) index: usize,
    pub(crate) counters: Arc<Counters>,
    pub(crate) switches: Arc<Switches>,
    pub(crate) memory: PoolMemory,
    /// Learns of sealed segments, to run a command.
    pub(crate) after_seal: Option<SealNotifier>,
}

/// Writer side of all its links.
struct WriterEnds {
    inlets: Vec<Inlet>,
    waker: Waker,
    signals: Arc<WriterSignals>,
    to_keeper: Sender<ToKeeper>,
    from_keeper: Receiver<FromKeeper>,
}

impl VolumeStart {
    /// Starts keeper and writer; without a directory, blocks are dropped. Returns the link for each intake.
    pub(crate) fn run(
        self,
        place: Option<VolumeDirectory>,
    ) -> Result<(Vec<VolumeLink>, VolumeThreads), RecorderError> {
        let directory = place.as_ref().map(|p| p.directory.clone());
        let (to_keeper, inbox) = channel();
        let (answers, from_keeper) = channel();
        let (waker, signals) = (Waker::new()?, Arc::new(WriterSignals::default()));
        let null = place.is_none();
        let keeper = Keeper {
            recording: self.recording,
            volume: self.index as u32,
            place,
            sizes: SegmentSizes::new(self.config.segment_bytes, self.config.segment_grows()),
            clock: Arc::clone(&self.clock),
            inbox,
            answers: Some(answers),
            writer: waker.clone(),
            next_index: 0,
            segments: BTreeMap::new(),
            conclusion: None,
            counters: Arc::clone(&self.counters),
            access: None,
            after_seal: self.after_seal.clone(),
            trouble: Vec::new(),
            warnings: Vec::new(),
            gaps: vec![0; self.intakes.len()],
            flush_due: false,
            is_journal_broken: false,
            switches: Arc::clone(&self.switches),
        };
        let keeper = spawn(format!("ku-keeper-{}", self.index), Vec::new(), move || Ok(keeper.run()))?;
        let (mut links, mut inlets) = (Vec::new(), Vec::new());
        for intake in &self.intakes {
            let (to_writer, blocks) = ring::pair(WriterSignals::RING_SLOTS);
            let (reports, from_writer) = ring::pair(WriterSignals::RING_SLOTS);
            links.push(VolumeLink {
                blocks: to_writer,
                reports: from_writer,
                waker: waker.clone(),
                signals: Arc::clone(&signals),
                keeper: to_keeper.clone(),
                label: directory.as_ref().map_or_else(|| "null".to_owned(), |d| d.display().to_string()),
            });
            inlets.push(Inlet { blocks, reports, waker: intake.clone() });
        }
        let ends = WriterEnds {
            inlets,
            waker: waker.clone(),
            signals: Arc::clone(&signals),
            to_keeper,
            from_keeper,
        };
        let (facts, writer) = match self.writer(ends, null) {
            Ok(started) => started,
            Err(e) => {
                // The keeper ends when the last sender is dropped.
                drop(links);
                let _ = keeper.join();
                return Err(e);
            }
        };
        Ok((links, VolumeThreads { directory, facts, writer, keeper, signals, waker }))
    }

    fn writer(
        self,
        ends: WriterEnds,
        null: bool,
    ) -> Result<(EngineFacts, Threaded<WriterOutcome>), RecorderError> {
        let (sender, receiver) = channel();
        let name = format!("ku-writer-{}", self.index);
        let cpus = self.config.cpus_of_writers().to_vec();
        // An io_uring belongs to the thread that opens it, so the writer opens it and reports the
        // result.
        let writer = spawn(name.clone(), cpus, move || {
            let (engine, note): (Box<dyn BlockEngine>, _) = if null {
                (Box::new(NullEngine::new(&ends.waker)), None)
            } else {
                open(self.config.engine, &self.memory, &ends.waker, self.config.depth)
                    .map_err(|e| Cause::of(&e))?
            };
            let facts = EngineFacts { name: engine.name(), buffers: engine.buffers(), note };
            sender.send(facts).map_err(|_| "the recorder no longer waits for the writer")?;
            drop(sender);
            let switches = Arc::clone(&self.switches);
            let end_mark = Pool::new(SECTOR).map_err(|e| Cause::of(&e))?.take(SECTOR);
            let end_mark = end_mark.ok_or("there is no memory for its end mark")?;
            let mut writer = Writer::new(self.parts(ends, engine), end_mark);
            Ok(catch_panic(|| writer.run()).unwrap_or_else(|why| {
                // Its blocks are gone, so that no later event of their streams could be acknowledged.
                switches.fail(&why);
                writer.panicked(why)
            }))
        })?;
        match receiver.recv() {
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
            inlets: ends.inlets,
            waker: ends.waker,
            signals: ends.signals,
            to_keeper: ends.to_keeper,
            from_keeper: ends.from_keeper,
            volume: self.index,
            counters: self.counters,
            engine,
        }
    }
}
