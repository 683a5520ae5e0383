//! Opening a recording and reading its blocks.

use std::fs;
use std::os::unix::fs::symlink;

use keepup_stream::rejected::{RejectReason, RejectUnit, Rejection, Rejections};
use proptest::prelude::*;

use super::*;
use crate::crc::crc32;
use crate::journal::JournalRecord;
use crate::layout::{
    BlockHeader, ChannelBytes, FLAG_GAP_BEFORE, MESSAGE_HEADER, SECTOR, put_block_sector, put_message_header,
};
use crate::manifest::Placement;
use crate::testing::{TestRecording, payloads, stream};

const BOUND: u64 = 1 << 24;

/// All events of a recording: stream, sequence, time and bytes, by volume and segment.
fn events(recording: &Recording) -> Vec<(u32, u64, u64, Vec<u8>)> {
    let mut found = Vec::new();
    for volume in recording.volumes() {
        for segment in volume.segments() {
            let mut reader = SegmentReader::open(volume, segment, BOUND).unwrap();
            while let Some(block) = reader.next_block(segment.readable_bytes()).unwrap() {
                let info = block.stream_info().unwrap();
                assert_eq!(info, stream(block.header.stream));
                assert_eq!(block.events().count(), block.header.event_count as usize);
                let events = block.events();
                found.extend(events.map(|e| (info.id, e.sequence, e.timestamp_ns, e.payload.to_vec())));
            }
        }
    }
    found
}

#[test]
fn events_come_back_from_all_volumes_and_segments() {
    let mut test = TestRecording::new(2, Placement::Free, &[0, 1]);
    let (first, second, third) = (payloads(1, 9, 900), payloads(2, 1, 30_000), payloads(3, 4, 10));
    let next = test.block(0, 1, u64::from(u32::MAX) - 3, FLAG_GAP_BEFORE, &first);
    test.volumes[0].rotate();
    test.block(0, 0, 0, 0, &second);
    test.block(1, 1, next, 0, &third);
    test.end();
    let recording = Recording::open(&test.dirs()).unwrap();
    assert!(recording.is_ended());
    assert_eq!(recording.streams().values().map(|s| s.id).collect::<Vec<_>>(), [0, 1]);
    let numbered = |id: u32, from: u64, events: Vec<(u64, Vec<u8>)>| {
        (from..).zip(events).map(move |(sequence, (time, bytes))| (id, sequence, time, bytes))
    };
    let expected = numbered(1, u64::from(u32::MAX) - 3, first)
        .chain(numbered(0, 0, second))
        .chain(numbered(1, next, third));
    assert!(events(&recording) == expected.collect::<Vec<_>>());
}

#[test]
fn a_copy_with_all_volumes_in_one_place_does_not_use_the_original() {
    let mut test = TestRecording::new(2, Placement::Pinned, &[0]);
    test.end();
    let (copy, nested) = (test.root.path().join("copy"), test.root.path().join("copy/volume-1"));
    fs::create_dir_all(&nested).unwrap();
    for (from, to) in test.dirs().iter().zip([&copy, &nested]) {
        for name in ["keepup.json", "journal.jsonl"] {
            fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }
    let recording = Recording::open(std::slice::from_ref(&copy)).unwrap();
    let found: Vec<_> = recording.volumes().iter().map(|volume| volume.dir().to_path_buf()).collect();
    assert_eq!(found, [copy, nested]);
}

#[test]
fn one_directory_finds_the_others_also_after_a_move() {
    let mut test = TestRecording::new(3, Placement::Pinned, &[0]);
    test.end();
    let one = [test.dirs()[1].clone()];
    assert_eq!(Recording::open(&one).unwrap().volumes().len(), 3);
    // All disks are mounted elsewhere: the manifest's directories no longer exist.
    let elsewhere = test.root.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    for disk in ["disk0", "disk1", "disk2"] {
        fs::rename(test.root.path().join(disk), elsewhere.join(disk)).unwrap();
    }
    let moved = [elsewhere.join("disk2/run 7")];
    let recording = Recording::open(&moved).unwrap();
    let found: Vec<_> = recording.volumes().iter().map(|v| v.manifest().volume_index).collect();
    assert_eq!(found, [0, 1, 2]);
    // One of them in an unrelated directory.
    fs::rename(elsewhere.join("disk1"), test.root.path().join("usb stick")).unwrap();
    let missing = Recording::open(&moved).unwrap_err();
    assert!(matches!(missing, RecordingError::VolumeMissing { index: 1, .. }), "{missing}");
    let both = [moved[0].clone(), test.root.path().join("usb stick/run 7")];
    assert_eq!(Recording::open(&both).unwrap().volumes().len(), 3);
}

#[test]
fn directories_that_do_not_belong_together_are_refused() {
    let (mut a, mut b) =
        (TestRecording::new(1, Placement::Pinned, &[0]), TestRecording::new(1, Placement::Pinned, &[0]));
    a.end();
    b.end();
    let mixed = [a.dirs(), b.dirs()].concat();
    assert!(matches!(Recording::open(&mixed), Err(RecordingError::Mixed { .. })));
    let twice = [a.dirs(), a.dirs()].concat();
    assert!(matches!(Recording::open(&twice), Err(RecordingError::Mixed { .. })));
    assert!(matches!(Recording::open(&[]), Err(RecordingError::NotARecording { .. })));
    let parent = a.root.path().to_path_buf();
    assert!(matches!(Recording::open(&[parent]), Err(RecordingError::NotARecording { .. })));
}

#[test]
fn damage_is_an_error_at_its_offset_and_the_reader_stays() {
    let mut test = TestRecording::new(1, Placement::Pinned, &[0]);
    let next = test.block(0, 0, 0, 0, &payloads(1, 5, 700));
    let second = test.volumes[0].builder.bytes().len() as u64;
    test.block(0, 0, next, 0, &payloads(2, 5, 700));
    test.end();
    let path = test.volumes[0].segment_path();
    let good = fs::read(&path).unwrap();
    let recording = Recording::open(&test.dirs()).unwrap();
    let volume = &recording.volumes()[0];
    let segment = &volume.segments()[0];
    let limit = segment.readable_bytes();
    for at in [20, 3000, SECTOR - 40, SECTOR - 1, SECTOR + 100] {
        let mut damaged = good.clone();
        damaged[second as usize + at] ^= 4;
        fs::write(&path, &damaged).unwrap();
        let mut reader = SegmentReader::open(volume, segment, BOUND).unwrap();
        assert!(reader.next_block(limit).unwrap().is_some());
        for _ in 0..2 {
            let error = reader.next_block(limit).unwrap_err();
            assert!(matches!(error, RecordingError::Segment { offset, .. } if offset == second), "{error}");
        }
    }
    fs::write(&path, &good).unwrap();
    let mut narrow = SegmentReader::open(volume, segment, 4096).unwrap();
    assert!(narrow.next_block(limit).unwrap_err().to_string().contains("longer than this reader"));
    let mut early = SegmentReader::open(volume, segment, BOUND).unwrap();
    assert!(early.next_block(second - 4096).unwrap_err().to_string().contains("beyond what is durable"));
    // An intact block in the place of another one.
    let swapped = [&good[..SECTOR], &good[second as usize..]].concat();
    fs::write(&path, swapped).unwrap();
    let mut reader = SegmentReader::open(volume, segment, BOUND).unwrap();
    assert!(reader.next_block(limit).unwrap_err().to_string().contains("does not follow"));
}

#[test]
fn a_hostile_length_takes_no_memory() {
    let mut test = TestRecording::new(1, Placement::Pinned, &[0]);
    test.block(0, 0, 0, 0, &payloads(1, 1, 64));
    test.end();
    let recording = Recording::open(&test.dirs()).unwrap();
    let (volume, path) = (&recording.volumes()[0], test.volumes[0].segment_path());
    let segment = &volume.segments()[0];
    let mut bytes = fs::read(&path).unwrap();
    let header = BlockHeader {
        recording: volume.manifest().recording,
        segment: segment.id,
        event_count: 1,
        payload_bytes: 1 << 60,
        chunk_records_bytes: (1 << 60) + MESSAGE_HEADER as u64,
        ..BlockHeader::default()
    };
    put_block_sector(&mut bytes[SECTOR..], &header, &ChannelBytes::new(&stream(0)).unwrap());
    fs::write(&path, &bytes).unwrap();
    let mut reader = SegmentReader::open(volume, segment, u64::MAX).unwrap();
    for limit in [segment.readable_bytes(), u64::MAX] {
        let error = reader.next_block(limit).unwrap_err();
        assert!(matches!(error, RecordingError::Segment { offset: 4096, .. }), "{error}");
    }
    // Messages with a false length and a valid checksum.
    let mut records = [0; MESSAGE_HEADER + 10];
    put_message_header(&mut records, 0, 0, 0, 1 << 40);
    let header = BlockHeader {
        payload_bytes: 10,
        chunk_records_bytes: records.len() as u64,
        chunk_crc: crc32(&records),
        ..header
    };
    bytes[2 * SECTOR - MESSAGE_HEADER..][..records.len()].copy_from_slice(&records);
    put_block_sector(&mut bytes[SECTOR..], &header, &ChannelBytes::new(&stream(0)).unwrap());
    fs::write(&path, &bytes).unwrap();
    let mut reader = SegmentReader::open(volume, segment, BOUND).unwrap();
    let error = reader.next_block(segment.readable_bytes()).unwrap_err().to_string();
    assert!(error.contains("a message is longer than its block"), "{error}");
}

#[test]
fn links_and_pipes_inside_a_recording_are_not_followed() {
    let mut test = TestRecording::new(1, Placement::Pinned, &[0]);
    test.block(0, 0, 0, 0, &payloads(1, 1, 64));
    test.end();
    let recording = Recording::open(&test.dirs()).unwrap();
    let (volume, path) = (&recording.volumes()[0], test.volumes[0].segment_path());
    let moved = test.root.path().join("moved.mcap");
    fs::rename(&path, &moved).unwrap();
    let open = || SegmentReader::open(volume, &volume.segments()[0], BOUND).map(|_| ());
    assert!(matches!(open(), Err(RecordingError::File { .. })));
    symlink(&moved, &path).unwrap();
    assert!(matches!(open(), Err(RecordingError::File { .. })));
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(matches!(open(), Err(RecordingError::File { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn what_is_written_is_read(plan in prop::collection::vec((0..3u32, 1..20usize, 0..9000usize), 1..10)) {
        let mut test = TestRecording::new(1, Placement::Pinned, &[0, 1, 2]);
        let (mut next, mut expected) = ([0; 3], Vec::new());
        for (seed, (id, count, bytes)) in plan.into_iter().enumerate() {
            let payloads = payloads(seed as u64, count, bytes);
            let from = next[id as usize];
            next[id as usize] = test.block(0, id, from, 0, &payloads);
            let numbered = (from..).zip(payloads);
            expected.extend(numbered.map(|(sequence, (time, bytes))| (id, sequence, time, bytes)));
        }
        test.end();
        prop_assert!(events(&Recording::open(&test.dirs()).unwrap()) == expected);
    }
}

proptest! {
    #[test]
    fn the_journals_have_the_account_of_rejected_data(
        data in prop::collection::vec((0..4_usize, 0..9_usize, 0..5_u64, prop::bool::ANY), 0..40),
        volume in 0..2_usize,
    ) {
        let mut test = TestRecording::new(2, Placement::Free, &[0]);
        let (mut account, mut sum) = (Rejections::default(), 0);
        let enter = |volume: &mut crate::testing::TestVolume, row: Rejected| {
            volume.journal().append(&JournalRecord::Rejected(row)).unwrap();
        };
        for (sender, reason, count, is_foreign) in data {
            let rejection = Rejection {
                sender: (sender > 0).then(|| format!("10.0.0.{sender}")),
                reason: RejectReason::ALL[reason],
                unit: RejectUnit::Packet,
                count,
                is_foreign,
                detail: format!("number {sum}"),
            };
            sum += count;
            // Entered at the first occurrence, in every journal.
            if let Some(row) = account.add("udp://:1", &rejection) {
                test.volumes.iter_mut().for_each(|volume| enter(volume, row.clone()));
            }
        }
        let first = Recording::open(&test.dirs()).unwrap().rejected();
        let without = |rows: &[Rejected]| -> Vec<Rejected> {
            rows.iter().map(|row| Rejected { count: 0, ..row.clone() }).collect()
        };
        prop_assert_eq!(without(&first), without(&account.rows()));
        // One volume has failed before the end.
        account.rows().into_iter().for_each(|row| enter(&mut test.volumes[volume], row));
        let rows = Recording::open(&test.dirs()).unwrap().rejected();
        prop_assert_eq!(&rows, &account.rows());
        prop_assert_eq!(rows.iter().map(|row| row.count).fold(0, u64::saturating_add), sum);
    }
}
