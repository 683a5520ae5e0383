//! For tests: writes whole recordings with journals over one or more volumes.

pub(crate) mod damage;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use keepup_stream::ledger::{Count, Gap, LossCause};
use keepup_stream::wire::{ElementType, StreamInfo};
use tempfile::TempDir;

use crate::error::RecordingError;
use crate::fixture::{BlockPlan, SegmentBuilder};
use crate::id::Id;
use crate::journal::{Journal, JournalRecord, StreamEnd};
use crate::layout::{SegmentIdentity, segment_file_name};
use crate::manifest::{Manifest, Placement};
use crate::progress::Progress;
use crate::recover::{RecoverOptions, RecoverReport};

/// Recovers once the journal's lock is free: a child process started by another test holds a copy
/// of it until it executes its program.
pub(crate) fn recover(dirs: &[PathBuf]) -> Result<RecoverReport, RecordingError> {
    recover_with(dirs, &mut |_| {})
}

/// Like [`recover`], with progress.
pub(crate) fn recover_with(
    dirs: &[PathBuf],
    progress: &mut dyn FnMut(Progress),
) -> Result<RecoverReport, RecordingError> {
    for _ in 0..2000 {
        match crate::recover::recover(dirs, RecoverOptions::default(), progress) {
            Err(RecordingError::Busy { .. }) => std::thread::sleep(Duration::from_millis(10)),
            other => return other,
        }
    }
    crate::recover::recover(dirs, RecoverOptions::default(), progress)
}

/// Names with a special meaning in a file name, path, terminal or format, for the streams from
/// [`ODD_NAMES_FROM`] on.
pub(crate) const ODD_NAMES: [&str; 12] = [
    "../../outside/canary",
    "..",
    ".",
    "/etc/keepup",
    "a/b",
    "a\nb",
    "\u{1b}[2J",
    "nul\0byte",
    "stream-1",
    "x.csv",
    "",
    "éé\"'\\,;é\u{202e}",
];
/// Id of the first stream with such a name.
pub(crate) const ODD_NAMES_FROM: u32 = 900;

/// A stream of detector frames, or of opaque bytes when the id is odd.
pub(crate) fn stream(id: u32) -> StreamInfo {
    let shape = if id % 2 == 1 { vec![] } else { vec![4, 8] };
    let odd = id.checked_sub(ODD_NAMES_FROM).and_then(|index| ODD_NAMES.get(index as usize));
    let name = odd.map_or_else(|| format!("module {id}"), |name| (*name).to_owned());
    StreamInfo { id, name, element: ElementType::U16, shape, compression: None }
}

/// `count` distinct payloads of about `bytes` bytes, with times that are not in order.
pub(crate) fn payloads(seed: u64, count: usize, bytes: usize) -> Vec<(u64, Vec<u8>)> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut payload = |index: usize| {
        let length = random.usize(bytes / 2..=bytes);
        let time = 1_000_000 + index as u64 * 100 + random.u64(..300);
        (time, std::iter::repeat_with(|| random.u8(..)).take(length).collect())
    };
    (0..count).map(&mut payload).collect()
}

pub(crate) struct TestRecording {
    pub(crate) root: TempDir,
    pub(crate) volumes: Vec<TestVolume>,
    counts: BTreeMap<u32, Count>,
    next_block: BTreeMap<u32, u64>,
}

pub(crate) struct TestVolume {
    pub(crate) dir: PathBuf,
    pub(crate) journal: Option<Journal>,
    manifest: Manifest,
    segment: u32,
    pub(crate) builder: SegmentBuilder,
}

impl TestRecording {
    pub(crate) fn new(volumes: u32, placement: Placement, streams: &[u32]) -> TestRecording {
        Self::with_id(crate::fixture::manifest(Vec::new(), 0).recording, volumes, placement, streams)
    }

    /// The same with another identity.
    pub(crate) fn with_id(
        recording: Id,
        volumes: u32,
        placement: Placement,
        streams: &[u32],
    ) -> TestRecording {
        let root = tempfile::tempdir().unwrap();
        let places: Vec<PathBuf> =
            (0..volumes).map(|index| root.path().join(format!("disk{index}"))).collect();
        let volumes = (0..volumes).map(|index| {
            let place = &places[index as usize];
            fs::create_dir(place).unwrap();
            let own = crate::fixture::manifest(places.clone(), index);
            let manifest = Manifest {
                name: "run 7".to_owned(),
                recording,
                volume: Id([index as u8; 16]),
                placement,
                run: Some(7),
                metadata: BTreeMap::from([("sample".to_owned(), "quartz".to_owned())]),
                ..own
            };
            let dir = manifest.create(place).unwrap();
            let mut journal = Journal::create(&dir, &manifest).unwrap();
            for &id in streams {
                journal.append(&JournalRecord::Stream(stream(id))).unwrap();
            }
            let builder = SegmentBuilder::new(SegmentIdentity::default());
            let mut volume = TestVolume { dir, journal: Some(journal), manifest, segment: 0, builder };
            volume.begin_segment();
            volume
        });
        let volumes = volumes.collect();
        TestRecording { root, volumes, counts: BTreeMap::new(), next_block: BTreeMap::new() }
    }

    /// Directories of all volumes.
    pub(crate) fn dirs(&self) -> Vec<PathBuf> {
        self.volumes.iter().map(|volume| volume.dir.clone()).collect()
    }

    /// Adds a block of stream `id` to a volume's segment; returns one past its last sequence number.
    pub(crate) fn block(
        &mut self,
        volume: usize,
        id: u32,
        first_sequence: u64,
        flags: u32,
        events: &[(u64, Vec<u8>)],
    ) -> u64 {
        let events: Vec<(u64, &[u8])> = events.iter().map(|(time, payload)| (*time, &payload[..])).collect();
        let stream_block = self.next_block.entry(id).or_default();
        let plan = BlockPlan { stream_block: *stream_block, first_sequence, flags };
        self.volumes[volume].builder.block(&stream(id), plan, &events).unwrap();
        *stream_block += 1;
        let count = self.counts.entry(id).or_default();
        for (_, payload) in &events {
            *count += Count::one(payload.len() as u64);
        }
        first_sequence + events.len() as u64
    }

    /// Repeats the last block of stream `id` with `events`, of the same number.
    pub(crate) fn block_again(&mut self, volume: usize, id: u32, events: &[(u64, Vec<u8>)]) {
        let events: Vec<(u64, &[u8])> = events.iter().map(|(time, payload)| (*time, &payload[..])).collect();
        let stream_block = self.next_block[&id] - 1;
        let first_sequence = self.counts[&id].events - events.len() as u64;
        let plan = BlockPlan { stream_block, first_sequence, flags: 0 };
        self.volumes[volume].builder.block(&stream(id), plan, &events).unwrap();
    }

    /// A block that was not written, or not to this volume.
    pub(crate) fn skip_block(&mut self, id: u32) {
        *self.next_block.entry(id).or_default() += 1;
    }

    pub(crate) fn gap(&mut self, volume: usize, stream: u32, first_sequence: u64, events: u64) {
        let gap = Gap { stream, first_sequence, events, cause: LossCause::SequenceGap };
        self.volumes[volume].journal().append(&JournalRecord::Gap(gap)).unwrap();
    }

    /// Closes the journals, as the end of a process does.
    pub(crate) fn release(&mut self) {
        self.volumes.iter_mut().for_each(|volume| volume.journal = None);
    }

    /// Ends all segments and the run.
    pub(crate) fn end(&mut self) {
        let streams: Vec<StreamEnd> = self
            .counts
            .iter()
            .map(|(&id, &count)| StreamEnd { id, received: count, durable: count })
            .collect();
        for volume in &mut self.volumes {
            volume.end_segment();
            let streams = streams.clone();
            let end = JournalRecord::End { clean: true, reason: "asked to".to_owned(), streams };
            volume.journal().append_durable(&end).unwrap();
        }
    }
}

impl TestVolume {
    pub(crate) fn journal(&mut self) -> &mut Journal {
        self.journal.as_mut().unwrap()
    }

    pub(crate) fn segment_path(&self) -> PathBuf {
        self.dir.join(segment_file_name(self.segment))
    }

    fn begin_segment(&mut self) {
        let mut id = Id([(self.segment as u8).wrapping_add(100); 16]);
        id.0[0] = self.manifest.volume_index as u8;
        self.builder = SegmentBuilder::new(SegmentIdentity {
            recording: self.manifest.recording,
            segment: id,
            volume_index: self.manifest.volume_index,
            segment_index: self.segment,
            created_unix_ns: 5,
        });
        let file = segment_file_name(self.segment);
        let record = JournalRecord::Segment { index: self.segment, id, file, preallocated_bytes: 1 << 20 };
        self.journal().append(&record).unwrap();
    }

    /// Writes the blocks so far, a preallocated tail of zeros, and their watermark.
    pub(crate) fn watermark(&mut self) {
        let mut bytes = self.builder.bytes().to_vec();
        let durable_bytes = bytes.len() as u64;
        bytes.resize(bytes.len() + (64 << 10), 0);
        fs::write(self.segment_path(), &bytes).unwrap();
        let segment = self.segment;
        let (written_bytes, blocks) = (durable_bytes, self.builder.blocks());
        let record = JournalRecord::Watermark { segment, written_bytes, durable_bytes, blocks };
        self.journal().append(&record).unwrap();
    }

    pub(crate) fn end_segment(&mut self) {
        let blocks = self.builder.blocks();
        let data_bytes = self.builder.bytes().len() as u64;
        let sealed = self.builder.clone().finish();
        fs::write(self.segment_path(), &sealed).unwrap();
        let bytes = sealed.len() as u64;
        let record = JournalRecord::SegmentEnd { index: self.segment, bytes, data_bytes, blocks };
        self.journal().append(&record).unwrap();
    }

    /// Ends the segment and starts the next one.
    pub(crate) fn rotate(&mut self) {
        self.end_segment();
        self.segment += 1;
        self.begin_segment();
    }
}
