//! Drains of recordings with missing, slow or damaged parts: what is sent, in which order, and
//! what may be removed.
use std::fs;

use keepup_recording::fixture::{BlockPlan, SegmentBuilder, manifest};
use keepup_recording::id::Id;
use keepup_recording::journal::{Journal, JournalRecord, Rotation, StreamEnd};
use keepup_recording::layout::{SegmentIdentity, segment_file_name};
use keepup_recording::manifest::Manifest;
use keepup_recording::retention::{Keep, KeepLimit, KeepUntil};
use keepup_stream::ledger::{Count, Gap, LossCause};
use keepup_stream::wire::ElementType;

use super::*;

/// Events of each block.
const EVENTS: u64 = 3;

struct TestVolume {
    manifest: Manifest,
    dir: PathBuf,
    journal: Journal,
    builder: SegmentBuilder,
    segment: u32,
}

impl TestVolume {
    fn begin(&mut self) {
        let id = Id([self.segment as u8 + 1 + self.manifest.volume_index as u8 * 16; 16]);
        let (recording, volume_index) = (self.manifest.recording, self.manifest.volume_index);
        let (segment_index, created_unix_ns) = (self.segment, 1);
        self.builder = SegmentBuilder::new(SegmentIdentity {
            recording,
            segment: id,
            volume_index,
            segment_index,
            created_unix_ns,
        });
        let file = segment_file_name(self.segment);
        let index = self.segment;
        self.journal
            .append(&JournalRecord::Segment { index, id, file, preallocated_bytes: 1 << 20 })
            .unwrap();
    }

    fn path(&self) -> PathBuf {
        self.dir.join(segment_file_name(self.segment))
    }

    /// Makes all blocks so far durable.
    fn flush(&mut self) {
        fs::write(self.path(), self.builder.bytes()).unwrap();
        let (segment, durable_bytes, blocks) =
            (self.segment, self.builder.bytes().len() as u64, self.builder.blocks());
        let written_bytes = durable_bytes;
        let record = JournalRecord::Watermark { segment, written_bytes, durable_bytes, blocks };
        self.journal.append(&record).unwrap();
    }

    /// Seals the segment and starts the next one.
    fn seal(&mut self) {
        let (index, data_bytes, blocks) =
            (self.segment, self.builder.bytes().len() as u64, self.builder.blocks());
        let sealed = self.builder.clone().finish();
        fs::write(self.path(), &sealed).unwrap();
        let bytes = sealed.len() as u64;
        self.journal.append(&JournalRecord::SegmentEnd { index, bytes, data_bytes, blocks }).unwrap();
        self.segment += 1;
        self.begin();
    }
}

struct Test {
    _root: tempfile::TempDir,
    volumes: Vec<TestVolume>,
    merge: Merge,
    sent: Vec<(u32, u64)>,
    /// Losses that were delivered.
    lost: Vec<Gap>,
    now_ns: u64,
}

fn stream(id: u32) -> StreamInfo {
    StreamInfo { id, name: format!("s{id}"), element: ElementType::U16, shape: vec![], compression: None }
}

impl Test {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let places: Vec<PathBuf> = (0..2).map(|at| root.path().join(format!("disk{at}"))).collect();
        let volume = |index: u32| {
            fs::create_dir(&places[index as usize]).unwrap();
            let keep =
                Some(Keep { limit: KeepLimit::Bytes(1 << 30), disposable: false, until: KeepUntil::Drained });
            let manifest = Manifest { keep, ..manifest(places.clone(), index) };
            let dir = manifest.create(&places[index as usize]).unwrap();
            let mut journal = Journal::create(&dir, &manifest).unwrap();
            (0..2).for_each(|id| journal.append(&JournalRecord::Stream(stream(id))).unwrap());
            let builder = SegmentBuilder::new(SegmentIdentity::default());
            let mut volume = TestVolume { manifest, dir, journal, builder, segment: 0 };
            volume.begin();
            volume
        };
        let volumes: Vec<TestVolume> = (0..2).map(volume).collect();
        let merge = Merge::open(&[volumes[0].dir.clone(), volumes[1].dir.clone()]).unwrap();
        Self { _root: root, volumes, merge, sent: Vec::new(), lost: Vec::new(), now_ns: 0 }
    }

    /// Adds blocks of a stream to a volume, by their numbers; each has [`EVENTS`] events.
    fn blocks(&mut self, volume: usize, id: u32, numbers: &[u64]) {
        for &number in numbers {
            let plan = BlockPlan { stream_block: number, first_sequence: number * EVENTS, flags: 0 };
            let payload = vec![number as u8; 6000];
            let events: Vec<(u64, &[u8])> = (0..EVENTS).map(|time| (time, &payload[..])).collect();
            self.volumes[volume].builder.block(&stream(id), plan, &events).unwrap();
        }
    }

    /// Enters a volume's state in the other volume's journal.
    fn rotate(&mut self, volume: usize, state: RotationState) {
        let rotation = Rotation { time_unix_ns: 1, volume: volume as u32, state, why: "disk removed".into() };
        self.volumes[1 - volume].journal.append(&JournalRecord::Rotation(rotation)).unwrap();
    }

    fn end(&mut self, volume: usize, events: u64) {
        let count = Count { events, bytes: events * 6000 };
        let streams = vec![StreamEnd { id: 0, received: count, durable: count }];
        let end = JournalRecord::End { clean: true, reason: "asked".into(), streams };
        self.volumes[volume].journal.append(&end).unwrap();
    }

    /// Steps until nothing more is sent; returns what was sent, as stream and first event, and
    /// the last step.
    fn drain(&mut self) -> (Vec<(u32, u64)>, Step) {
        self.merge.poll();
        let mut sent = Vec::new();
        loop {
            let lost = &mut self.lost;
            let step = self.merge.step(self.now_ns, &mut |delivery| {
                let (header, events) = delivery.block.unwrap();
                assert_eq!(events.count() as u64, EVENTS);
                lost.extend_from_slice(delivery.gaps);
                sent.push((delivery.info.id, header.first_sequence));
                Ok(0)
            });
            match step.unwrap() {
                Step::Sent { .. } | Step::Deferred => {}
                step => {
                    self.sent.extend(&sent);
                    return (sent, step);
                }
            }
        }
    }

    /// Concludes; returns the stream, the listed losses and the end of each delivery.
    fn conclude(&mut self) -> Vec<(u32, Vec<Gap>, u64)> {
        let mut delivered = Vec::new();
        let mut deliver = |delivery: Delivery<'_>| {
            assert!(delivery.block.is_none());
            delivered.push((delivery.info.id, delivery.gaps.to_vec(), delivery.end));
            Ok(0)
        };
        self.merge.conclude(&mut deliver).unwrap();
        delivered
    }

    /// Drain marks of a volume when everything that was sent is durable elsewhere.
    fn marks(&mut self, volume: usize) -> Drained {
        let mut ends = BTreeMap::new();
        self.sent.iter().for_each(|&(stream, first)| _ = ends.insert(stream, first + EVENTS));
        self.merge.mark_drained(ends);
        let TestVolume { dir, manifest, .. } = &self.volumes[volume];
        Drained::read(dir, manifest.recording).unwrap()
    }

    fn causes(&self) -> Vec<(u64, u64, &str)> {
        let listed = self.merge.losses.listed.iter();
        listed.map(|m| (m.first_sequence, m.events, m.cause.as_str())).collect()
    }
}

fn firsts(numbers: &[u64]) -> Vec<(u32, u64)> {
    numbers.iter().map(|number| (0, number * EVENTS)).collect()
}

#[test]
fn the_merge_does_not_wait_for_blocks_that_the_journals_list_as_lost() {
    let mut test = Test::new();
    test.blocks(0, 0, &[0]);
    test.blocks(1, 0, &[1, 4]);
    test.volumes.iter_mut().for_each(TestVolume::flush);
    assert_eq!(test.drain().0, firsts(&[0, 1]), "2 and 3 may still arrive");
    let gap = Gap { stream: 0, first_sequence: 6, events: 6, cause: LossCause::VolumeFailed };
    test.volumes[1].journal.append(&JournalRecord::Gap(gap)).unwrap();
    assert_eq!(test.drain().0, firsts(&[4]));
    assert_eq!(test.causes(), [(6, 6, "volume failed")]);
    assert_eq!(test.marks(0).streams[&0], 15, "every existing event was sent");
}

#[test]
fn the_merge_waits_for_a_slow_volume_while_other_streams_continue() {
    let mut test = Test::new();
    test.blocks(0, 0, &[0]);
    test.blocks(1, 0, &[2, 3]);
    test.blocks(1, 1, &[0, 1]);
    test.rotate(0, RotationState::Slow);
    test.volumes.iter_mut().for_each(TestVolume::flush);
    assert_eq!(test.drain().0, [(0, 0), (1, 0), (1, 3)]);
    test.now_ns += 100 * SETTLE_NS;
    let (sent, step) = test.drain();
    assert!(sent.is_empty() && matches!(step, Step::Nothing { is_settling: false }));
    test.blocks(0, 0, &[1]);
    test.volumes[0].flush();
    test.rotate(0, RotationState::Back);
    assert_eq!(test.drain().0, firsts(&[1, 2, 3]));
    assert_eq!(test.merge.losses.events, 0);
}

#[test]
fn a_failed_volume_loses_only_its_own_blocks_and_the_others_may_still_remove() {
    let mut test = Test::new();
    test.blocks(0, 0, &[0, 2]);
    test.volumes[0].flush();
    // Block 4 was durable, but the journal failed before it was listed. Block 6 was placed again.
    test.blocks(1, 0, &[1, 3, 5, 7, 6, 8]);
    test.volumes[1].seal();
    test.rotate(0, RotationState::Failed);
    let (sent, step) = test.drain();
    assert_eq!(sent, firsts(&[0, 1, 2, 3]));
    assert!(matches!(step, Step::Nothing { is_settling: true }));
    assert_eq!(test.marks(1).segments, 0);
    test.now_ns += SETTLE_NS;
    assert_eq!(test.drain().0, firsts(&[5, 6, 7, 8]));
    let cause = format!("{} failed: disk removed", test.volumes[0].dir.display());
    assert_eq!(test.causes(), [(12, 3, cause.as_str())]);
    let marks = test.marks(1);
    assert_eq!((marks.segments, marks.streams[&0]), (1, 12), "the whole segment is durable elsewhere");
    assert_eq!(test.marks(0).segments, 0);
    test.end(1, 27);
    assert!(matches!(test.drain().1, Step::Ended), "the failed volume delivers nothing more");
}

#[test]
fn an_unreadable_volume_is_skipped_to_the_end() {
    let mut test = Test::new();
    test.blocks(0, 0, &[0, 2, 4]);
    test.blocks(1, 0, &[1, 3]);
    test.volumes.iter_mut().for_each(TestVolume::flush);
    fs::remove_file(test.volumes[0].path()).unwrap();
    assert!(test.drain().0.is_empty(), "the blocks may have been placed elsewhere");
    test.end(0, 15);
    test.end(1, 15);
    let (sent, step) = test.drain();
    assert_eq!(sent, firsts(&[1, 3]));
    assert!(matches!(step, Step::Ended));
    assert_eq!(test.conclude(), [(0, vec![], 15)]);
    assert!(test.conclude().is_empty(), "nothing is delivered twice");
    let spans: Vec<_> = test.causes().iter().map(|(first, events, _)| (*first, *events)).collect();
    assert_eq!(spans, [(0, 3), (6, 3), (12, 3)], "also the tail, which only the end record lists");
    assert!(
        test.causes().iter().all(|(.., cause)| cause.contains("segment-000000.mcap")),
        "{:?}",
        test.causes()
    );
    assert_eq!(test.marks(0).segments, 0);
    assert_eq!(test.marks(0).streams[&0], 0, "no mark passes a skipped event");
}

#[test]
fn a_damaged_block_loses_only_itself_and_its_segment_stays() {
    for whole_header in [true, false] {
        let mut test = Test::new();
        test.blocks(0, 0, &[0, 2, 4]);
        let at = test.volumes[0].builder.bytes().len();
        test.blocks(0, 0, &[6, 8]);
        test.blocks(1, 0, &[1, 3, 5, 7]);
        test.volumes.iter_mut().for_each(TestVolume::seal);
        let path = test.volumes[0].dir.join(segment_file_name(0));
        let mut bytes = fs::read(&path).unwrap();
        bytes[if whole_header { at + 6000 } else { at + 30 }] ^= 1;
        fs::write(&path, bytes).unwrap();
        let first = test.drain().0;
        test.now_ns += SETTLE_NS;
        let rest = test.drain().0;
        assert_eq!([first, rest].concat(), firsts(&[0, 1, 2, 3, 4, 5, 7, 8]));
        let causes = test.causes();
        assert_eq!((causes.len(), causes[0].0, causes[0].1), (1, 18, 3), "{causes:?}");
        assert!(causes[0].2.contains("segment-000000.mcap at offset"), "{causes:?}");
        assert_eq!((test.marks(0).segments, test.marks(1).segments), (0, 1));
        assert_eq!(test.marks(1).streams[&0], 18);
    }
}

#[test]
fn a_block_that_comes_after_it_was_skipped_keeps_its_segment() {
    let mut test = Test::new();
    test.blocks(1, 0, &[1]);
    test.volumes[1].flush();
    test.rotate(0, RotationState::Failed);
    test.drain();
    test.now_ns += SETTLE_NS;
    assert_eq!(test.drain().0, firsts(&[1]));
    test.blocks(1, 0, &[0, 2]);
    test.volumes[1].seal();
    assert_eq!(test.drain().0, firsts(&[2]));
    assert_eq!(test.marks(1).segments, 0, "block 0 has no other copy");
    let faults = &test.merge.losses.faults.listed;
    assert!(faults.iter().any(|fault| fault.contains("came after later ones")), "{faults:?}");
}

#[test]
fn a_block_on_both_volumes_is_sent_once() {
    let mut test = Test::new();
    test.blocks(0, 0, &[0, 1]);
    test.blocks(1, 0, &[1, 2]);
    test.volumes.iter_mut().for_each(TestVolume::seal);
    assert_eq!(test.drain().0, firsts(&[0, 1, 2]));
    assert_eq!((test.marks(0).segments, test.marks(1).segments), (1, 1));
    assert_eq!(test.merge.losses.faults.total, 0);
}

#[test]
fn a_damaged_journal_stops_only_its_volume() {
    let mut test = Test::new();
    test.blocks(0, 0, &[0]);
    test.blocks(1, 0, &[2]);
    test.volumes.iter_mut().for_each(TestVolume::flush);
    assert_eq!(test.drain().0, firsts(&[0]));
    let journal = test.volumes[0].dir.join("journal.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, text + "not a line\nnot another\n").unwrap();
    let (sent, step) = test.drain();
    assert!(sent.is_empty() && matches!(step, Step::Nothing { is_settling: true }));
    test.now_ns += SETTLE_NS;
    assert_eq!(test.drain().0, firsts(&[2]));
    assert!(test.causes()[0].2.contains("journal.jsonl"), "{:?}", test.causes());
}

#[test]
fn read_and_unread_bytes_add_up_also_after_a_new_connection() {
    let mut test = Test::new();
    test.blocks(0, 0, &[0, 1]);
    test.volumes[0].seal();
    test.blocks(0, 0, &[2]);
    test.volumes[0].flush();
    test.merge.poll();
    let total = test.merge.behind_bytes();
    assert!(total > 0 && test.merge.passed_bytes() == 0);
    assert_eq!(test.drain().0, firsts(&[0, 1, 2]));
    assert_eq!((test.merge.passed_bytes(), test.merge.behind_bytes()), (total, 0));
    test.merge.rewind(&BTreeMap::from([(0, (Some(1), EVENTS))]));
    let again = test.merge.behind_bytes();
    assert!(again > 0, "the other side lacks blocks");
    assert_eq!(test.merge.passed_bytes() + again, total);
    assert_eq!(test.drain().0, firsts(&[1, 2]));
    assert_eq!((test.merge.passed_bytes(), test.merge.behind_bytes()), (total, 0));
}

#[test]
fn losses_are_delivered_before_the_block_behind_them_and_at_the_end() {
    let mut test = Test::new();
    let gap = |stream, first_sequence, events, cause| Gap { stream, first_sequence, events, cause };
    let listed = [
        gap(0, 3, 2, LossCause::Source),
        gap(0, 5, 1, LossCause::ConnectionLost),
        gap(0, 9, 4, LossCause::CutOff),
        gap(1, 0, 7, LossCause::BadChecksum),
    ];
    test.blocks(0, 0, &[0, 2]);
    listed.iter().for_each(|gap| test.volumes[0].journal.append(&JournalRecord::Gap(*gap)).unwrap());
    test.volumes.iter_mut().for_each(TestVolume::flush);
    assert_eq!(test.drain().0, firsts(&[0, 2]));
    test.end(0, 6);
    test.end(1, 6);
    assert!(matches!(test.drain().1, Step::Ended));
    assert_eq!(test.lost, listed[..2]);
    assert_eq!(test.conclude(), [(0, vec![listed[2]], 13), (1, vec![listed[3]], 7)]);
    assert_eq!(test.merge.losses.events, 14, "each once");
    // A connection that broke continues in the middle of a loss.
    test.merge.rewind(&Resume::from([(0, (None, 10))]));
    assert!(matches!(test.drain().1, Step::Ended));
    assert_eq!(test.conclude(), [(0, vec![gap(0, 10, 3, LossCause::CutOff)], 13)]);
    assert_eq!(test.merge.losses.events, 14);
}
