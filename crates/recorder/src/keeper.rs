//! Keeper: one thread per volume that prepares the next segment ahead of time, finishes full
//! ones, writes the journal, and removes old segments under a retention limit. The writer never
//! waits for metadata.
mod retention;
mod sizes;

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::time::Duration;

use keepup_error::Cause;
use keepup_measure::clock::Clock;
use keepup_recording::error::RecordingError;
use keepup_recording::id::Id;
use keepup_recording::in_flight::lock_segment;
use keepup_recording::journal::{Journal, JournalRecord, Rotation, StreamEnd};
use keepup_recording::layout::{SECTOR, SegmentIdentity, segment_file_name, segment_preamble};
use keepup_recording::manifest::Manifest;
use keepup_recording::presence::Presence;
use keepup_recording::seal::{SegmentIndex, put_end_mark, seal};
use keepup_stream::ledger::{Count, Explained, Gap, LossCause};
use keepup_stream::rejected::Rejected;
use keepup_stream::wire::StreamInfo;
use keepup_sys::file::{Access, create_preallocated, sync_directory};
use keepup_sys::waker::Waker;

pub(crate) use self::retention::Retention;
pub(crate) use self::sizes::SegmentSizes;
use crate::after_seal::{SealNotifier, SealedFile};
use crate::counters::Counters;
use crate::switches::Switches;
use crate::threads::catch_panic;

/// Interval between checks for segments to remove.
const RETAIN_EVERY: Duration = Duration::from_secs(1);
/// Pause between two pieces of a segment being removed.
const PIECE_EVERY: Duration = Duration::from_millis(10);

/// Most distinct failures that a keeper reports.
const TROUBLE_MAX: usize = 100;

/// Final account of a recording, for the journals.
#[derive(Clone, Debug)]
pub(crate) struct Conclusion {
    /// Whether it ended as asked.
    pub(crate) clean: bool,
    /// Why it ended.
    pub(crate) reason: String,
    /// Stream id, received and durable counts.
    pub(crate) streams: Vec<(u32, Count, Count)>,
    /// Data that arrived and are not recorded.
    pub(crate) rejected: Vec<Rejected>,
}

/// Request to a keeper, from the writer or the intake.
#[derive(Debug)]
pub(crate) enum ToKeeper {
    /// Create a segment ahead of time.
    Prepare,
    /// Start using a prepared segment of `bytes`. `before` has the bytes of data and the size of the one
    /// before.
    Activate { index: u32, bytes: u64, before: Option<(u64, u64)> },
    /// Remove an unused prepared segment.
    Discard { index: u32 },
    /// All bytes of a segment below the offset are on stable storage.
    Watermark { segment: u32, end_offset: u64, blocks: u64 },
    /// A segment is full and its data ends at the offset: seal it. `file` stays open until then.
    Finish { index: u32, data_bytes: u64, events: SegmentIndex, file: Arc<OwnedFd> },
    /// A stream was declared; with its first sequence number.
    Stream(StreamInfo, u64),
    /// Events of a stream of this intake are missing.
    Gap { intake: usize, gap: Gap },
    /// A row of the account of rejected data, with its count so far.
    Rejected(Rejected),
    /// The cause of skipped events became known.
    Explained(Explained),
    /// A volume was taken out of rotation, or came back.
    Rotation(Rotation),
    /// The recording has ended with this account.
    Conclude(Conclusion),
    /// The writer has ended.
    Close,
}

/// Answer of a keeper to its writer.
#[derive(Debug)]
pub(crate) enum FromKeeper {
    Prepared(Prepared),
    NotPrepared {
        why: String,
        cause: LossCause,
    },
    Finished {
        index: u32,
        result: Result<(), String>,
    },
    /// The journal cannot be written, or files of the recording are gone: later data could not be accounted
    /// for.
    JournalFailed {
        why: String,
    },
}

/// A segment that is ready for its first block.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) index: u32,
    pub(crate) id: Id,
    pub(crate) file: Arc<OwnedFd>,
    pub(crate) bytes: u64,
}

/// A recording's directory on one volume, with its journal.
pub(crate) struct VolumeDirectory {
    pub(crate) directory: PathBuf,
    pub(crate) journal: Journal,
    pub(crate) presence: Presence,
    /// The manifest of a copy lacks what the drain says about the original.
    pub(crate) lacks_origin: bool,
    /// Retention limit; `None` keeps everything.
    pub(crate) retention: Option<Retention>,
}

/// Result of a keeper.
pub(crate) struct KeeperOutcome {
    /// How the files were opened.
    pub(crate) access: Option<Access>,
    /// Defects of the recording.
    pub(crate) trouble: Vec<String>,
    /// Faults that are no defects of the recording.
    pub(crate) warnings: Vec<String>,
}

/// State of the keeper thread.
pub(crate) struct Keeper {
    pub(crate) recording: Id,
    pub(crate) volume: u32,
    /// `None` for the null target.
    pub(crate) place: Option<VolumeDirectory>,
    pub(crate) sizes: SegmentSizes,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) inbox: Receiver<ToKeeper>,
    /// `None` after a panic: then it only writes the journal.
    pub(crate) answers: Option<Sender<FromKeeper>>,
    pub(crate) writer: Waker,
    pub(crate) next_index: u32,
    /// Segments that are not sealed.
    pub(crate) segments: BTreeMap<u32, Arc<OwnedFd>>,
    pub(crate) conclusion: Option<Conclusion>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) access: Option<Access>,
    /// Learns of sealed segments, to run a command.
    pub(crate) after_seal: Option<SealNotifier>,
    /// Failures of journalling, sealing and removing.
    pub(crate) trouble: Vec<String>,
    /// Faults elsewhere, such as a damaged state file of an archive.
    pub(crate) warnings: Vec<String>,
    /// Gap entries of each intake appended to the journal.
    pub(crate) gaps: Vec<u64>,
    /// Whether appended journal lines must be flushed.
    pub(crate) flush_due: bool,
    pub(crate) is_journal_broken: bool,
    pub(crate) switches: Arc<Switches>,
}

impl Keeper {
    /// Runs until its writer ends. After a panic its volume has failed, and it only writes the journal.
    pub(crate) fn run(mut self) -> KeeperOutcome {
        while let Err(why) = catch_panic(|| self.serve()) {
            self.panicked(why);
        }
        for step in [Self::close, Self::enter_end] {
            if let Err(why) = catch_panic(|| step(&mut self)) {
                self.panicked(why);
            }
        }
        KeeperOutcome { access: self.access, trouble: self.trouble, warnings: self.warnings }
    }

    /// Fails the volume. The writer does not wait for an answer once the channel to it is closed.
    fn panicked(&mut self, why: String) {
        self.switches.note_internal_error(&why);
        self.journal_failed(why);
        self.answers = None;
        self.writer.wake();
    }

    /// Handles messages until the writer has ended.
    fn serve(&mut self) {
        while let Some(message) = self.next() {
            // What cannot be entered now is entered with a later message.
            let _ = self.enter_origin();
            match message {
                // Its writer has given the volume up.
                ToKeeper::Prepare | ToKeeper::Finish { .. } if self.answers.is_none() => {}
                ToKeeper::Prepare => self.prepare(),
                ToKeeper::Activate { index, bytes, before } => self.activate(index, bytes, before),
                ToKeeper::Discard { index } => self.discard(index),
                ToKeeper::Watermark { segment, end_offset, blocks } => {
                    let record = JournalRecord::Watermark {
                        segment,
                        written_bytes: end_offset,
                        durable_bytes: end_offset,
                        blocks,
                    };
                    if self.check_presence().is_ok() {
                        self.note(|_| Some(record.clone()));
                    }
                }
                ToKeeper::Finish { index, data_bytes, events, file } => {
                    self.finish(index, data_bytes, &events);
                    drop(file);
                    // A slow disk sends messages without pause: retention must not depend on one.
                    self.retain();
                }
                ToKeeper::Stream(info, first_sequence) => {
                    // A reader that finds the stream must know its start.
                    let start = JournalRecord::Start { stream: info.id, first_sequence };
                    self.note(|_| Some(start.clone()).filter(|_| first_sequence > 0));
                    self.note(|_| Some(JournalRecord::Stream(info.clone())));
                }
                ToKeeper::Gap { intake, gap } => self.take_gap(intake, gap),
                ToKeeper::Rejected(row) => self.note(|_| Some(JournalRecord::Rejected(row.clone()))),
                ToKeeper::Explained(explained) => self.note(|_| Some(JournalRecord::Explained(explained))),
                ToKeeper::Rotation(rotation) => {
                    self.note(|_| Some(JournalRecord::Rotation(rotation.clone())))
                }
                ToKeeper::Conclude(conclusion) => self.conclusion = Some(conclusion),
                // Where a writer panicked, the others end before there is an account.
                ToKeeper::Close if self.conclusion.is_none() => {}
                ToKeeper::Close => return,
            }
        }
    }

    /// Waits for a message. Lines that come in a burst, such as 508 declared streams, are flushed
    /// together.
    fn next(&mut self) -> Option<ToKeeper> {
        match self.inbox.try_recv() {
            Err(TryRecvError::Empty) => {
                self.flush();
                loop {
                    self.retain();
                    let Some(retention) = self.place.as_ref().and_then(|place| place.retention.as_ref())
                    else {
                        return self.inbox.recv().ok();
                    };
                    let pause = if retention.is_busy() { PIECE_EVERY } else { RETAIN_EVERY };
                    match self.inbox.recv_timeout(pause) {
                        Err(RecvTimeoutError::Timeout) => {}
                        message => return message.ok(),
                    }
                }
            }
            message => message.ok(),
        }
    }

    fn flush(&mut self) {
        if !std::mem::take(&mut self.flush_due) {
            return;
        }
        match self.place.as_mut().map(|place| place.journal.flush()) {
            Some(Err(e)) => self.journal_failed(Cause::of(&e).to_text()),
            Some(Ok(())) | None => {
                let durable = &self.counters.volumes[self.volume as usize].gaps_durable;
                for (durable, gaps) in durable.iter().zip(&self.gaps) {
                    durable.store(*gaps, Ordering::Relaxed);
                }
            }
        }
    }

    fn take_gap(&mut self, intake: usize, gap: Gap) {
        self.note(|_| Some(JournalRecord::Gap(gap)));
        self.gaps[intake] += 1;
        // Counts without a journal too: what waits for the entry must not wait forever.
        self.flush_due = true;
    }

    fn journal_failed(&mut self, why: String) {
        if !std::mem::replace(&mut self.is_journal_broken, true) {
            self.answer(FromKeeper::JournalFailed { why: why.clone() });
        }
        self.note_trouble(why);
    }

    /// Checks that the files of the recording are still there. Otherwise the volume fails, with the returned
    /// reason: what is written to it now is lost when the files are closed.
    fn check_presence(&mut self) -> Result<(), String> {
        let Some(place) = &mut self.place else { return Ok(()) };
        let segments = self.segments.iter().map(|(&index, file)| (index, &**file));
        let outcome = place.presence.check(&mut place.journal, segments);
        outcome.map_err(|e| {
            let why = Cause::of(&e).to_text();
            self.journal_failed(why.clone());
            why
        })
    }

    fn note_trouble(&mut self, what: String) {
        let _ = self.counters.volumes[self.volume as usize].trouble.set(what.clone());
        if self.trouble.len() < TROUBLE_MAX && !self.trouble.contains(&what) {
            self.trouble.push(what);
        }
    }

    /// Removes segments beyond the retention limit.
    fn retain(&mut self) {
        let Some(place) = &mut self.place else { return };
        let Some(retention) = &mut place.retention else { return };
        let outcome = retention.enforce(&place.directory, self.recording, self.clock.now_ns());
        for warning in retention.take_warnings() {
            self.counters.warn(warning.clone());
            self.warnings.push(warning);
        }
        match outcome {
            Ok(excess) => {
                let counter = &self.counters.volumes[self.volume as usize].keep_excess_bytes;
                counter.store(excess, Ordering::Relaxed);
            }
            Err(e) => self.note_trouble(Cause::of(&e).to_text()),
        }
    }

    fn answer(&self, answer: FromKeeper) {
        // The answer is not needed if the writer has ended.
        let _ = self.answers.as_ref().map(|answers| answers.send(answer));
        self.writer.wake();
    }

    fn note(&mut self, record: impl Fn(&Self) -> Option<JournalRecord>) {
        let Some(record) = record(self) else { return };
        let Some(place) = &mut self.place else { return };
        // Watermarks are lower bounds: losing one in a crash is harmless. Other records must
        // survive.
        self.flush_due |= !matches!(record, JournalRecord::Watermark { .. });
        if let Err(e) = place.journal.append(&record) {
            self.journal_failed(Cause::of(&e).to_text());
        }
    }

    /// Segment id: unique as long as the recording's random id is.
    fn segment_id(&self, index: u32) -> Id {
        let place = (u128::from(self.volume) << 32) | u128::from(index) | (1 << 64);
        // Multiplication by an odd number is a bijection, so ids stay distinct.
        let mixed = place.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        Id((u128::from_be_bytes(self.recording.0) ^ mixed).to_be_bytes())
    }

    fn path(&self, index: u32) -> Option<PathBuf> {
        self.place.as_ref().map(|place| place.directory.join(segment_file_name(index)))
    }

    fn activate(&mut self, index: u32, bytes: u64, before: Option<(u64, u64)>) {
        self.sizes.activated(before, self.clock.now_ns());
        self.note(|k| {
            Some(JournalRecord::Segment {
                index,
                id: k.segment_id(index),
                file: segment_file_name(index),
                preallocated_bytes: bytes,
            })
        });
    }

    fn prepare(&mut self) {
        let index = self.next_index;
        let free = self.place.as_ref().and_then(|place| rustix::fs::statvfs(&place.directory).ok());
        let bytes = self.sizes.next_bytes(free.map(|free| free.f_bavail * free.f_frsize));
        match self.create(index, bytes) {
            Ok(file) => {
                self.next_index += 1;
                let (id, file) = (self.segment_id(index), Arc::new(file));
                if self.place.is_some() {
                    self.segments.insert(index, Arc::clone(&file));
                }
                self.answer(FromKeeper::Prepared(Prepared { index, id, file, bytes }));
            }
            Err((why, full)) => {
                let cause = if full { LossCause::SpaceExhausted } else { LossCause::VolumeFailed };
                self.answer(FromKeeper::NotPrepared { why, cause });
            }
        }
    }

    fn create(&mut self, index: u32, bytes: u64) -> Result<OwnedFd, (String, bool)> {
        let Some(path) = self.path(index) else {
            let null = OpenOptions::new().write(true).open("/dev/null");
            return null.map(OwnedFd::from).map_err(|e| (format!("cannot open /dev/null: {e}"), false));
        };
        let made = create_preallocated(&path, bytes).map_err(|e| {
            let full = e.is_out_of_space();
            (Cause::of(&e).to_text(), full)
        })?;
        lock_segment(&made.file);
        self.access = Some(made.access);
        let identity = SegmentIdentity {
            recording: self.recording,
            segment: self.segment_id(index),
            volume_index: self.volume,
            segment_index: index,
            created_unix_ns: self.clock.unix_ns(),
        };
        // With its end mark: there is no block yet.
        let mut start = [0; 2 * SECTOR];
        start[..SECTOR].copy_from_slice(&segment_preamble(&identity));
        put_end_mark(&mut start[SECTOR..]);
        write_at(&path, &start, 0).map_err(|e| (e, false))?;
        if let Some(directory) = path.parent() {
            sync_directory(directory).map_err(|e| (e.to_string(), false))?;
        }
        Ok(made.file)
    }

    fn discard(&mut self, index: u32) {
        let Some(path) = self.path(index) else { return };
        self.segments.remove(&index);
        if let Err(e) = std::fs::remove_file(&path) {
            self.note_trouble(format!("cannot remove the unused {}: {e}", path.display()));
        }
    }

    fn finish(&mut self, index: u32, data_bytes: u64, events: &SegmentIndex) {
        let Some(path) = self.path(index) else {
            return self.answer(FromKeeper::Finished { index, result: Ok(()) });
        };
        let is_present = self.check_presence();
        self.segments.remove(&index);
        if is_present.is_err() {
            return self.answer(FromKeeper::Finished { index, result: is_present });
        }
        let result = match seal(&path, events, data_bytes) {
            Ok(bytes) => {
                let blocks = events.blocks() as u64;
                self.note(|_| Some(JournalRecord::SegmentEnd { index, bytes, data_bytes, blocks }));
                self.flush();
                if let Some(after_seal) = &self.after_seal {
                    after_seal.sealed(SealedFile { path, volume: self.volume, index, bytes });
                }
                let sealed_ns = self.clock.now_ns();
                if let Some(retention) = self.place.as_mut().and_then(|place| place.retention.as_mut()) {
                    retention.sealed(index, bytes, sealed_ns, events.per_stream());
                }
                Ok(())
            }
            Err(e @ RecordingError::Unsealed { .. }) => {
                self.note_trouble(Cause::of(&e).to_text());
                Ok(())
            }
            Err(e) => {
                self.note_trouble(Cause::of(&e).to_text());
                Err(Cause::of(&e).to_text())
            }
        };
        self.answer(FromKeeper::Finished { index, result });
    }

    /// Enters what a drain has said about the recording that it sends into the manifest of a copy, once.
    fn enter_origin(&mut self) -> Result<(), RecordingError> {
        let (Some(place), Some(sent)) = (&mut self.place, self.counters.sent.get()) else { return Ok(()) };
        if place.lacks_origin {
            let manifest = Manifest::read(&place.directory)?.with_origin(sent);
            place.journal.replace_manifest(&place.directory, &manifest)?;
            place.lacks_origin = false;
        }
        Ok(())
    }

    /// Enters what detectors have said about themselves into the manifest.
    fn enter_metadata(&mut self) -> Result<(), RecordingError> {
        let (Some(place), metadata) = (&mut self.place, self.counters.metadata()) else { return Ok(()) };
        if metadata.is_empty() {
            return Ok(());
        }
        let manifest = Manifest::read(&place.directory)?.with_metadata(&metadata);
        place.journal.replace_manifest(&place.directory, &manifest)
    }

    /// Whether a removed segment still has bytes.
    fn is_removing(&self) -> bool {
        let retention = self.place.as_ref().and_then(|place| place.retention.as_ref());
        retention.is_some_and(Retention::is_busy)
    }

    /// Applies the retention limit a last time and completes the manifest.
    fn close(&mut self) {
        self.flush();
        self.retain();
        while self.is_removing() {
            self.retain();
        }
        let is_present = self.check_presence().is_ok();
        if is_present && let Err(e) = self.enter_origin().and_then(|()| self.enter_metadata()) {
            self.note_trouble(Cause::of(&e).to_text());
        }
        if let Some(conclusion) = self.conclusion.as_mut().filter(|_| !is_present) {
            conclusion.clean = false;
        }
    }

    /// Enters the end of the recording.
    fn enter_end(&mut self) {
        if let Some(Conclusion { clean, reason, streams, rejected }) = self.conclusion.take() {
            for row in rejected {
                self.note(|_| Some(JournalRecord::Rejected(row.clone())));
            }
            let streams = streams.iter().map(|&(id, received, durable)| StreamEnd { id, received, durable });
            let end = JournalRecord::End { clean, reason, streams: streams.collect() };
            self.note(|_| Some(end.clone()));
        }
        self.flush();
    }
}

fn write_at(path: &Path, bytes: &[u8], offset: u64) -> Result<(), String> {
    let outcome = OpenOptions::new().write(true).open(path).and_then(|file| {
        file.write_all_at(bytes, offset)?;
        file.sync_all()
    });
    outcome.map_err(|e| format!("cannot write to {}: {e}", path.display()))
}
