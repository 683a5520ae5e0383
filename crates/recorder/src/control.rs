//! Starts and stops the threads of a recording and combines their reports.
mod manifest;

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use keepup_error::Cause;
use keepup_measure::clock::Clock;
use keepup_measure::sum::Sums;
use keepup_peer::Endpoint;
use keepup_recording::account::{CommandCounts, Incidents, ThreadCpu, VolumeAccount};
use keepup_recording::error::RecordingError;
use keepup_recording::id::Id;
use keepup_recording::journal::Journal;
use keepup_recording::presence::Presence;
use keepup_recording::reader::Recording;
use keepup_recording::remove;
use keepup_recording::retention::Removed;
use keepup_recording::unborn;
use keepup_results::shell::quoted;
use keepup_sources::SourceAddress;
use keepup_stream::ledger::Ledger;
use keepup_stream::wire::SentRecording;
use keepup_sys::file::Access;
use keepup_sys::pool::Pool;
use keepup_sys::waker::Waker;

use self::manifest::manifest;
use crate::after_seal::SealRunner;
use crate::config::Target;
use crate::counters::Counters;
use crate::document::{self, DocumentSender};
use crate::error::REPORT;
use crate::intake::{IntakeParts, IntakeReport, Membership, Post, Shards, VolumeLink};
use crate::keeper::{Retention, VolumeDirectory};
use crate::packet_socket::{SourceInput, open_all};
use crate::reduce::worker::{self, ReducerLink};
use crate::report::{Ended, RecordReport};
use crate::switches::Switches;
use crate::threads::{Threaded, joined, spawn};
use crate::volume::{VolumeStart, VolumeThreads};
use crate::{RecorderConfig, RecorderError};

/// A recording in progress.
pub struct Recorder {
    address: SocketAddr,
    sources: Vec<SourceAddress>,
    documents: Mutex<Vec<DocumentSender>>,
    recording: Id,
    switches: Arc<Switches>,
    /// Wakes the first intake, which passes on that the recording ends.
    waker: Waker,
    counters: Arc<Counters>,
    pool_bytes: u64,
    pool_pages: String,
    notes: Vec<Cause>,
    clock: Arc<dyn Clock>,
    is_kept_in_part: bool,
    records_early: bool,
    /// Nobody has asked yet what a drain says about the recording that it sends.
    is_origin_due: AtomicBool,
    shards: Arc<Shards>,
    intakes: Vec<Threaded<IntakeReport>>,
    reducers: Vec<Threaded<()>>,
    volumes: Vec<VolumeThreads>,
    after_seal: Option<SealRunner>,
    made: Vec<CreatedDirectory>,
    _owner: OwnerGuard,
}

impl Recorder {
    /// Checks the settings, listens, creates the recording's directories, starts the threads and
    /// accepts sources.
    ///
    /// `recording` must be unique (random). On failure, everything that was created is removed.
    pub fn start(
        config: RecorderConfig,
        recording: Id,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, RecorderError> {
        let recorder = Self::arm(config, recording, clock)?;
        recorder.open();
        Ok(recorder)
    }

    /// Like [`Recorder::start`], but accepts nobody before [`Recorder::open`]: clients wait in
    /// the kernel's queue.
    pub fn arm(config: RecorderConfig, recording: Id, clock: Arc<dyn Clock>) -> Result<Self, RecorderError> {
        config.validate()?;
        keepup_sys::thread::raise_descriptor_limit();
        let (listener, address) = listen(&config.listen)?;
        let switches = Arc::new(Switches::default());
        let packets = open_all(&config, &switches, &clock)?;
        let address = packets.address.unwrap_or(address);
        let cpus: Vec<_> = (0..config.intake_threads).map(|i| config.cpus_of_intake(i).to_vec()).collect();
        let pools = config.pool_memory.pools(config.pool_bytes, &cpus, config.pool_pages)?;
        let (memory, kind) = (pools[0].memory(), pools[0].page_kind());
        let pool_bytes = pools.iter().map(|pool| pool.bytes() as u64).saturating_sum();
        let intakes = config.intake_threads;
        let counters = Counters::new(intakes, config.volumes(), config.reducers());
        let counters = Arc::new(counters.with_sources(config.sources.len()));
        let (documents, document_sockets) = document::pairs(&config.documents)?;
        let wakers = (0..intakes).map(|_| Waker::new()).collect::<Result<Vec<_>, _>>()?;
        let mut recorder = ArmingGuard { recording, made: Vec::new(), volumes: Vec::new() };
        let places = recorder.create_directories(&config, clock.as_ref())?;
        let after_seal = config.after_seal.clone();
        let after_seal = after_seal.map(|hook| SealRunner::start(hook, recording, Arc::clone(&clock)));
        let (notifier, after_seal) = after_seal.transpose()?.unzip();
        let mut links: Vec<Vec<VolumeLink>> = wakers.iter().map(|_| Vec::new()).collect();
        for (index, place) in places.into_iter().enumerate() {
            let start = VolumeStart {
                recording,
                config: config.clone(),
                clock: Arc::clone(&clock),
                intakes: wakers.clone(),
                index,
                counters: Arc::clone(&counters),
                switches: Arc::clone(&switches),
                memory: memory.clone(),
                after_seal: notifier.clone(),
            };
            let (volume_links, threads) = start.run(place)?;
            links.iter_mut().zip(volume_links).for_each(|(links, link)| links.push(link));
            recorder.volumes.push(threads);
        }
        let (to_reducers, reducers) = worker::start(&config, &clock, &wakers, (&counters, &switches))?;
        let records_early = config.records_early;
        let (is_kept_in_part, is_origin_due) = (config.keep.is_some(), AtomicBool::new(config.is_copy));
        let waker = wakers[0].clone();
        let sources = config.sources.clone();
        let shared = Shared { config, recording, clock, wakers, switches, counters };
        let (shards, intakes) =
            shared.start_intakes((listener, packets.inputs, document_sockets), pools, links, to_reducers)?;
        let Shared { switches, counters, clock, .. } = shared;
        let (made, volumes) = recorder.finish();
        let _owner = OwnerGuard(Stopper { switches: Arc::clone(&switches), waker: waker.clone() });
        Ok(Self {
            address,
            sources,
            documents: Mutex::new(documents),
            recording,
            switches,
            clock,
            waker,
            counters,
            pool_bytes,
            pool_pages: kind.to_string(),
            notes: kind.note().into_iter().chain(packets.notes).collect(),
            is_kept_in_part,
            records_early,
            is_origin_due,
            shards,
            intakes,
            reducers,
            volumes,
            after_seal,
            made,
            _owner,
        })
    }

    /// Accepts sources; the time limit for their hello starts when they are accepted.
    pub fn open(&self) {
        self.switches.open(if self.records_early { 0 } else { self.clock.unix_ns() });
        self.waker.wake();
    }

    /// Ends a recorder that accepted nobody, and removes what it created. Returns why it ended.
    ///
    /// # Errors
    /// A thread failed, or something could not be removed; both steps are always attempted. A
    /// recorder that accepted sources keeps its recording.
    pub fn disarm(self) -> Result<Ended, RecorderError> {
        let (recording, made, was_open) = (self.recording, self.made.clone(), self.switches.is_open());
        self.stopper().stop();
        let ended = self.join_threads().map(|joined| joined.ended);
        if !was_open {
            take_back(recording, &made)?;
        }
        ended
    }

    /// Ends the recording because of an internal error elsewhere: everything received becomes durable, and
    /// the journals get the reason.
    pub fn fail(&self, what: &str) {
        self.switches.fail(what);
        self.waker.wake();
    }

    /// Listening address; with sources that send packets, that of the first of them.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Detectors that it connects to instead of listening.
    pub fn sources(&self) -> &[SourceAddress] {
        &self.sources
    }

    /// Takes the senders of the documents that the settings name, in their order. The recording does not end
    /// before each of them is used or dropped.
    pub fn document_senders(&self) -> Vec<DocumentSender> {
        std::mem::take(&mut *self.documents.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Identity of the recording.
    pub fn recording(&self) -> Id {
        self.recording
    }

    /// Live counters.
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.counters)
    }

    /// Directories of the recording, one per volume; empty for the null target.
    pub fn directories(&self) -> Vec<PathBuf> {
        self.volumes.iter().filter_map(|v| v.directory.clone()).collect()
    }

    /// Settings that would make it faster, each with its command.
    pub fn notes(&self) -> Vec<Cause> {
        let mut notes = self.notes.clone();
        for note in self.volumes.iter().filter_map(|v| v.facts.note.clone()) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        notes
    }

    /// I/O engine and memory of the first volume.
    pub fn engine(&self) -> String {
        self.volumes.first().map_or_else(String::new, |v| format!("{} ({})", v.facts.name, v.facts.buffers))
    }

    /// Size of the block pool, in bytes.
    pub fn pool_bytes(&self) -> u64 {
        self.pool_bytes
    }

    /// Whether old segments are removed to free space for new ones.
    pub fn is_kept_in_part(&self) -> bool {
        self.is_kept_in_part
    }

    /// Handle that ends the recording cleanly from another thread.
    pub fn stopper(&self) -> Stopper {
        Stopper { switches: Arc::clone(&self.switches), waker: self.waker.clone() }
    }

    /// Description of the recording that a drain sends, if this recording is a copy; once.
    pub fn take_origin(&self) -> Option<&SentRecording> {
        let sent = self.counters.sent.get()?;
        self.is_origin_due.swap(false, Ordering::Relaxed).then_some(sent)
    }

    /// Whether the recorder has stopped reading and is making its data durable.
    pub fn is_ending(&self) -> bool {
        self.switches.is_ending() || self.is_ended()
    }

    /// Whether it has ended by itself.
    pub fn is_ended(&self) -> bool {
        self.intakes.iter().all(JoinHandle::is_finished)
    }

    /// Waits for the end and returns the report.
    ///
    /// # Errors
    /// A thread of the recorder failed.
    pub fn join(self) -> Result<RecordReport, RecorderError> {
        self.conclude(false)
    }

    /// Like [`Recorder::join`], but removes a recording that was stopped before anything arrived. One
    /// that continues streams is kept, because its journal states where they ended. What cannot be removed
    /// is an incident.
    ///
    /// # Errors
    /// As [`Recorder::join`].
    pub fn join_unless_empty(self) -> Result<RecordReport, RecorderError> {
        self.conclude(true)
    }

    fn conclude(self, removes_empty: bool) -> Result<RecordReport, RecorderError> {
        let (recording, counters) = (self.recording, Arc::clone(&self.counters));
        let made = self.made.clone();
        let (pool_bytes, pool_pages) = (self.pool_bytes, self.pool_pages.clone());
        let Joined {
            ended,
            ledger,
            after_seal,
            incidents,
            mut trouble,
            elapsed_ns,
            intakes_cpu,
            reducers_cpu,
            volumes,
        } = self.join_threads()?;
        let directories: Vec<PathBuf> = volumes.iter().filter_map(|v| v.directory.clone()).collect();
        let continues = counters.continues.load(Ordering::Relaxed);
        let rejected = counters.rejected();
        let is_empty = ended == Ended::Stopped && is_empty(&ledger) && rejected.is_empty() && !continues;
        let removed = removes_empty && is_empty && !made.is_empty();
        let written =
            if removed { take_back(recording, &made).map(|()| None) } else { write_master(&directories) };
        let master = match written {
            Ok(master) => master,
            Err(e) if removed => {
                trouble.push(Cause::of(&e).to_text());
                None
            }
            Err(e) => {
                let hint = format!("keepup recover {}", quoted(&directories[0].display().to_string()));
                trouble.push(Cause::new(e.to_string()).with_hint(hint).to_text());
                None
            }
        };
        Ok(RecordReport {
            master,
            recording: recording.to_string(),
            ledger,
            rejected,
            volumes,
            pool_bytes,
            pool_bytes_used_max: counters.pool_bytes_used_max(),
            pool_pages,
            intakes_cpu,
            reducers_cpu,
            pool_wait_ns: counters.pool_wait_ns(),
            stalls: counters.stalls(),
            elapsed_ns,
            after_seal,
            incidents,
            trouble,
            ended,
            limit: None,
            removed,
        })
    }

    fn join_threads(self) -> Result<Joined, RecorderError> {
        let intakes: Vec<_> = self.intakes.into_iter().map(|intake| joined("ku-intake", intake)).collect();
        let intakes = match intakes.into_iter().collect::<Result<Vec<_>, _>>() {
            Ok(intakes) => intakes,
            Err(e) => {
                self.volumes.into_iter().for_each(VolumeThreads::abandon);
                return Err(e);
            }
        };
        let (reports, intakes_cpu): (Vec<IntakeReport>, Vec<ThreadCpu>) = intakes.into_iter().unzip();
        let (ledger, mut incidents, elapsed_ns) = IntakeReport::merge(reports);
        let internal = self.switches.internal_errors();
        let mut trouble: Vec<String> =
            internal.iter().map(|what| Cause::new(what).with_hint(REPORT).to_text()).collect();
        let unbalanced = ledger.balance().err().map(|e| format!("the account does not add up: {e}"));
        trouble.extend(unbalanced);
        let mut reducers_cpu = Vec::new();
        for reducer in self.reducers {
            reducers_cpu.push(joined("ku-reduce", reducer)?.1);
        }
        let mut volumes = Vec::new();
        for threads in self.volumes {
            let (writer, cpu) = joined("ku-writer", threads.writer)?;
            let (keeper, _) = joined("ku-keeper", threads.keeper)?;
            keeper.warnings.into_iter().for_each(|warning| incidents.push_new(warning));
            let label = threads.directory.as_ref().map_or_else(|| "null".into(), |d| d.display().to_string());
            // The writer's failure is usually listed already.
            let failure = writer.failure.iter().filter(|why| !keeper.trouble.contains(why));
            trouble.extend(failure.chain(&keeper.trouble).map(|what| format!("{label}: {what}")));
            volumes.push(VolumeAccount {
                directory: threads.directory,
                engine: threads.facts.name.into(),
                buffers: threads.facts.buffers,
                access: match keeper.access {
                    Some(Access::Direct) => "direct".into(),
                    Some(Access::Buffered) => "buffered".into(),
                    None => "none".into(),
                },
                note: threads.facts.note.map(|note| note.to_text()),
                failure: writer.failure,
                write_latency: writer.write_latency.summary(),
                cpu,
            });
        }
        let ended = match self.switches.failure() {
            Some(why) => Ended::InternalError(why.to_owned()),
            None => self.shards.ended().cloned().unwrap_or(Ended::Stopped),
        };
        // The keepers have dropped their ends of its queue.
        let after_seal = self.after_seal.and_then(|runner| match runner.join() {
            Ok((counts, own)) => {
                incidents.append(own);
                Some(counts)
            }
            Err(e) => {
                trouble.push(Cause::of(&e).to_text());
                None
            }
        });
        Ok(Joined {
            ended,
            ledger,
            after_seal,
            incidents,
            trouble,
            elapsed_ns,
            intakes_cpu,
            reducers_cpu,
            volumes,
        })
    }
}

/// Results of the threads.
struct Joined {
    ended: Ended,
    ledger: Ledger,
    after_seal: Option<CommandCounts>,
    incidents: Incidents,
    trouble: Vec<String>,
    elapsed_ns: u64,
    intakes_cpu: Vec<ThreadCpu>,
    reducers_cpu: Vec<ThreadCpu>,
    volumes: Vec<VolumeAccount>,
}

/// What the intakes of a recording have in common.
struct Shared {
    config: RecorderConfig,
    recording: Id,
    clock: Arc<dyn Clock>,
    wakers: Vec<Waker>,
    switches: Arc<Switches>,
    counters: Arc<Counters>,
}

impl Shared {
    /// Starts the intakes, with their parts of the pool and their links to writers and reducers.
    fn start_intakes(
        &self,
        (listener, inputs, documents): (OwnedFd, Vec<SourceInput>, Vec<OwnedFd>),
        pools: Vec<Pool>,
        links: Vec<Vec<VolumeLink>>,
        reducers: Vec<Vec<ReducerLink>>,
    ) -> Result<(Arc<Shards>, Vec<Threaded<IntakeReport>>), RecorderError> {
        let mut taps = self.config.tap.as_ref().map(|tap| tap.attach(self.wakers.len())).transpose()?;
        let (shards, mut listener) = (Arc::new(Shards::new(self.wakers.clone())), Some(listener));
        shards.expect(&self.config.expect);
        let (mut inputs, mut documents) = (Some(inputs), Some(documents));
        let (post, inboxes) = Post::new(&self.wakers);
        let mut threads = Vec::new();
        let ends = pools.into_iter().zip(inboxes).zip(links).zip(reducers);
        for (index, (((pool, inbox), links), reducers)) in ends.enumerate() {
            let parts = IntakeParts {
                index,
                shards: Arc::clone(&shards),
                membership: Membership::new(&shards),
                post: post.clone(),
                inbox,
                config: self.config.clone(),
                recording: self.recording.to_string(),
                clock: Arc::clone(&self.clock),
                listener: listener.take(),
                inputs: inputs.take().unwrap_or_default(),
                documents: documents.take().unwrap_or_default(),
                waker: self.wakers[index].clone(),
                switches: Arc::clone(&self.switches),
                pool,
                links,
                reducers,
                counters: Arc::clone(&self.counters),
                tap: taps.as_mut().and_then(Vec::pop),
            };
            let cpus = self.config.cpus_of_intake(index).to_vec();
            threads.push(spawn(format!("ku-intake-{index}"), cpus, move || parts.run())?);
        }
        Ok((shards, threads))
    }
}

/// Handle that ends a recording from another thread.
#[derive(Clone, Debug)]
pub struct Stopper {
    switches: Arc<Switches>,
    waker: Waker,
}

impl Stopper {
    /// Requests a clean end: reading stops, and everything received becomes durable.
    pub fn stop(&self) {
        self.switches.stop();
        self.waker.wake();
    }
}

/// Ends the recording if its owner panics: the recorder's threads would go on without anybody to end them.
struct OwnerGuard(Stopper);

impl Drop for OwnerGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let name = std::thread::current().name().unwrap_or("unnamed").to_owned();
            self.0.switches.fail(&format!("internal error: thread {name} panicked"));
            self.0.waker.wake();
        }
    }
}

fn listen(endpoint: &Endpoint) -> Result<(OwnedFd, SocketAddr), RecorderError> {
    let fail = |source| RecorderError::Listen { endpoint: endpoint.clone(), source };
    let listener = TcpListener::bind(endpoint).map_err(fail)?;
    listener.set_nonblocking(true).map_err(fail)?;
    // The standard library's backlog of 128 is short for a detector with modules that all connect
    // at once.
    rustix::net::listen(&listener, 4096).map_err(|e| fail(e.into()))?;
    let bound = listener.local_addr().map_err(fail)?;
    Ok((listener.into(), bound))
}

/// Whether no event was received and none is known to be missing.
fn is_empty(ledger: &Ledger) -> bool {
    let total = ledger.total();
    total.received.events == 0 && total.gap_events.values().all(|&events| events == 0)
}

/// Writes the NeXus master over all volumes; `None` for the null target.
fn write_master(directories: &[PathBuf]) -> Result<Option<PathBuf>, RecordingError> {
    if directories.is_empty() {
        return Ok(None);
    }
    keepup_recording::master::write_master(&Recording::open(directories)?).map(Some)
}

/// A recording's directory, and whether this recorder created it; otherwise it existed and was
/// empty.
#[derive(Clone, Debug)]
struct CreatedDirectory {
    directory: PathBuf,
    is_new: bool,
}

/// Cleanup guard of a recorder that is being armed: removes what was created unless arming
/// succeeds.
struct ArmingGuard {
    recording: Id,
    made: Vec<CreatedDirectory>,
    volumes: Vec<VolumeThreads>,
}

impl ArmingGuard {
    /// Creates the recording's directory on every volume.
    fn create_directories(
        &mut self,
        config: &RecorderConfig,
        clock: &dyn Clock,
    ) -> Result<Vec<Option<VolumeDirectory>>, RecorderError> {
        let Target::Volumes(volumes) = &config.target else { return Ok(vec![None]) };
        let (mut places, mut manifests, mut locks) = (Vec::new(), Vec::new(), Vec::new());
        // All before the first journal: a journal means that the directories of all volumes exist.
        for (index, volume) in volumes.iter().enumerate() {
            let manifest = manifest(config, volumes, self.recording, index, clock);
            let is_new = std::fs::symlink_metadata(volume.join(&config.name)).is_err();
            let (directory, lock) = manifest.create_locked(volume).map_err(unborn::explain)?;
            self.made.push(CreatedDirectory { directory: directory.clone(), is_new });
            manifests.push((directory, manifest));
            locks.push(lock);
        }
        for (directory, manifest) in manifests {
            let journal = Journal::create(&directory, &manifest)?;
            let retention = match config.keep {
                Some(keep) => {
                    let removed = Removed::read(&directory, &manifest)?;
                    let first = self.made.first().map_or(directory.as_path(), |made| &made.directory);
                    Some(Retention::new(keep, removed, volumes.len(), first, config.segment_bytes))
                }
                None => None,
            };
            let presence = Presence::new(&directory)?;
            let lacks_origin = config.is_copy;
            places.push(Some(VolumeDirectory { directory, journal, presence, lacks_origin, retention }));
        }
        Ok(places)
    }

    /// Arming succeeded: disarms the guard.
    fn finish(mut self) -> (Vec<CreatedDirectory>, Vec<VolumeThreads>) {
        (std::mem::take(&mut self.made), std::mem::take(&mut self.volumes))
    }
}

impl Drop for ArmingGuard {
    fn drop(&mut self) {
        self.volumes.drain(..).for_each(VolumeThreads::abandon);
        // The original failure is being reported; what cannot be removed has a manifest.
        let _ = take_back(self.recording, &self.made);
    }
}

/// Removes everything that was created for a recording, as far as possible; returns the first
/// failure.
fn take_back(recording: Id, made: &[CreatedDirectory]) -> Result<(), RecordingError> {
    let mut first = Ok(());
    for made in made {
        first = first.and(remove::take_back(&made.directory, recording, made.is_new));
    }
    first
}
