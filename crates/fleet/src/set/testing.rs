//! For tests: recordings of several hosts, and agents that are called directly.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use keepup_measure::clock::SystemClock;
use keepup_recording::fixture::{BlockPlan, SCENE_STREAM, SegmentBuilder, manifest, scene_stream};
use keepup_recording::id::Id;
use keepup_recording::journal::{Journal, JournalRecord, StreamEnd};
use keepup_recording::layout::segment_file_name;
use keepup_recording::manifest::Manifest;
use keepup_recording::set::{
    LocalDirectories, OpenSet, RecordingSet, SET_FILE, SetEnd, SetMove, SetRecording,
};
use keepup_stream::ledger::Count;
use tempfile::TempDir;

use super::remote::Hosts;
use super::worker::SetWorker;
use crate::agent_loop::{Worker as _, reports_for_test};
use crate::directories::Directories;
use crate::host::Done;
use crate::jobs;
use crate::link::HEARTBEAT_BYTES_MAX;

/// Identity of the recording of host number `host`.
pub(super) fn id(host: usize) -> Id {
    Id([0xD0 + host as u8; 16])
}

/// Payload of an event of the stream [`scene_stream`].
pub(super) fn payload(sequence: u64) -> Vec<u8> {
    sequence.to_le_bytes().repeat(1 + sequence as usize % 3)
}

/// A recording of run 7 that is being written.
pub(super) struct TestRecording {
    pub(super) directory: PathBuf,
    pub(super) journal: Journal,
    builder: SegmentBuilder,
    count: Count,
}

impl TestRecording {
    /// A recording of host number `host` on the volume `root`.
    pub(super) fn create(root: &Path, host: usize) -> Self {
        Self::create_on(&[root.to_owned()], 0, host)
    }

    /// Its part on one of several volumes.
    pub(super) fn create_on(volumes: &[PathBuf], volume: u32, host: usize) -> Self {
        let root = &volumes[volume as usize];
        let manifest = Manifest {
            name: "run-7".into(),
            run: Some(7),
            recording: id(host),
            ..manifest(volumes.to_vec(), volume)
        };
        let directory = manifest.create(root).unwrap();
        let mut journal = Journal::create(&directory, &manifest).unwrap();
        journal.append(&JournalRecord::Stream(scene_stream())).unwrap();
        let (segment, file) = (Id([9; 16]), segment_file_name(0));
        journal
            .append(&JournalRecord::Segment { index: 0, id: segment, file, preallocated_bytes: 1 << 20 })
            .unwrap();
        let identity = keepup_recording::layout::SegmentIdentity {
            recording: manifest.recording,
            segment,
            volume_index: volume,
            created_unix_ns: 1,
            ..Default::default()
        };
        Self { directory, journal, builder: SegmentBuilder::new(identity), count: Count::default() }
    }

    /// Adds a block of events.
    pub(super) fn block(&mut self, events: Range<u64>, payload: impl Fn(u64) -> Vec<u8>) {
        let first_sequence = events.start;
        let events: Vec<(u64, Vec<u8>)> =
            events.map(|sequence| (1000 + sequence, payload(sequence))).collect();
        let events: Vec<(u64, &[u8])> =
            events.iter().map(|(time, bytes)| (*time, bytes.as_slice())).collect();
        events.iter().for_each(|(_, payload)| self.count += Count::one(payload.len() as u64));
        let plan = BlockPlan { stream_block: self.builder.blocks(), first_sequence, flags: 0 };
        self.builder.block(&scene_stream(), plan, &events).unwrap();
    }

    fn path(&self) -> PathBuf {
        self.directory.join(segment_file_name(0))
    }

    /// Leaves it as a killed recorder does: with a durable end, and without an end of the run.
    pub(super) fn cut_off(mut self) -> PathBuf {
        let mut bytes = self.builder.bytes().to_vec();
        let (durable_bytes, blocks) = (bytes.len() as u64, self.builder.blocks());
        bytes.resize(bytes.len() + (64 << 10), 0);
        fs::write(self.path(), bytes).unwrap();
        let written_bytes = durable_bytes;
        let record = JournalRecord::Watermark { segment: 0, written_bytes, durable_bytes, blocks };
        self.journal.append(&record).unwrap();
        self.directory
    }

    /// Ends it cleanly.
    pub(super) fn end(mut self) -> PathBuf {
        let (data_bytes, blocks) = (self.builder.bytes().len() as u64, self.builder.blocks());
        let path = self.path();
        let sealed = self.builder.finish();
        fs::write(path, &sealed).unwrap();
        let bytes = sealed.len() as u64;
        self.journal.append(&JournalRecord::SegmentEnd { index: 0, bytes, data_bytes, blocks }).unwrap();
        let streams = vec![StreamEnd { id: SCENE_STREAM, received: self.count, durable: self.count }];
        let end = JournalRecord::End { clean: true, reason: "asked to".into(), streams };
        self.journal.append_durable(&end).unwrap();
        self.directory
    }
}

/// Hosts `daq0`, `daq1`, ... with a volume each.
pub(super) struct Site {
    pub(super) root: TempDir,
    pub(super) set: RecordingSet,
    /// A further volume of each host.
    pub(super) second_volume: Option<PathBuf>,
}

impl Site {
    /// A site with a recording of each host, in the directory that `make` returns for its volume.
    pub(super) fn new(hosts: usize, make: impl Fn(usize, &Path) -> PathBuf) -> Self {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().canonicalize().unwrap();
        let entry = |host: usize| {
            let volume = real.join(format!("daq{host}"));
            fs::create_dir(&volume).unwrap();
            SetRecording {
                host: format!("daq{host}"),
                id: Some(id(host)),
                directories: vec![make(host, &volume)],
                end: if host == 0 { SetEnd::Lost } else { SetEnd::Finished },
                why: (host == 0).then(|| "no heartbeat".to_owned()),
            }
        };
        let moves = (1..hosts).map(|host| SetMove {
            from: "daq0".into(),
            to: Some(format!("daq{host}")),
            epoch: 2,
            at_unix_ns: 1,
        });
        let set = RecordingSet {
            name: "run-7".into(),
            run: Some(7),
            id: Id([0xAB; 16]),
            created_unix_ns: 1_700_000_000_000_000_000,
            fleet: "hall-3".into(),
            moves: moves.collect(),
            recordings: (0..hosts).map(entry).collect(),
        };
        Self { root, set, second_volume: None }
    }

    pub(super) fn volume(&self, host: usize) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(format!("daq{host}"))
    }

    /// The set, opened with local paths.
    pub(super) fn open(&self) -> OpenSet {
        let path = self.root.path().join(SET_FILE);
        self.set.write(&path).unwrap();
        OpenSet::open(&path, &LocalDirectories::new()).unwrap()
    }

    /// Agents of all hosts.
    pub(super) fn agents(&self) -> Agents {
        self.agents_of(self.set.recordings.len())
    }

    /// Agents of the first hosts.
    pub(super) fn agents_of(&self, hosts: usize) -> Agents {
        let agent = |(host, entry): (usize, &SetRecording)| {
            let volumes: Vec<PathBuf> =
                [self.volume(host)].into_iter().chain(self.second_volume.clone()).collect();
            let directories = Directories::open(&volumes).unwrap();
            (entry.host.clone(), SetWorker::new(Arc::new(SystemClock), directories))
        };
        let workers = self.set.recordings.iter().take(hosts).enumerate().map(agent).collect();
        Agents { workers, ..Agents::default() }
    }
}

/// Agents that are called directly.
#[derive(Default)]
pub(super) struct Agents {
    pub(super) workers: BTreeMap<String, SetWorker>,
    /// Number of runs.
    pub(super) runs: u64,
    /// Bytes of all outcomes.
    pub(super) bytes: usize,
    /// Hosts that are lost after a number of runs.
    pub(super) lost_after: BTreeMap<String, u64>,
    /// Hosts asked in each run.
    pub(super) asked: Vec<BTreeSet<String>>,
}

impl Hosts for &mut Agents {
    fn run(&mut self, plans: &BTreeMap<String, String>) -> BTreeMap<String, Result<String, String>> {
        self.runs += 1;
        self.asked.push(plans.keys().cloned().collect());
        let run = self.runs;
        let mut outcome = |(host, text): (&String, &String)| {
            let is_lost = self.lost_after.get(host).is_some_and(|last| run > *last);
            let Some(worker) = self.workers.get_mut(host).filter(|_| !is_lost) else {
                return (host.clone(), Err("the host was lost".to_owned()));
            };
            let (reports, done) = reports_for_test();
            let (job, plan) = text.split_once('\n').unwrap();
            assert_eq!(job, jobs::SET);
            worker.prepare(run, plan, &reports);
            let result = loop {
                match done.recv().unwrap() {
                    Done::Prepared { run: of, .. } => worker.start(of, Duration::ZERO, &reports),
                    Done::Finished { outcome, .. } => break Ok(outcome),
                    Done::Failed { why, .. } => break Err(why),
                    Done::Ending { .. } => {}
                }
            };
            let length = result.as_ref().map_or(0, String::len);
            assert!(length + 10_000 < HEARTBEAT_BYTES_MAX, "{length}");
            self.bytes += length;
            (host.clone(), result)
        };
        plans.iter().map(&mut outcome).collect()
    }
}
