//! Exports of a set: each event once, whatever the boundaries of blocks.

use std::collections::BTreeMap;
use std::fs;

use proptest::prelude::*;

use super::testing::{TestSet, add, add_later, event, id};
use crate::access::{From, StreamReader};
use crate::export::{one_file, raw, zarr_reference};
use crate::manifest::Placement;
use crate::testing::TestRecording;

/// Difference between the times of two copies of an event.
const LATER_NS: u64 = 1_000_000;

fn ended(from: u64) -> TestSet {
    let mut test = TestSet::new(from);
    test.end();
    test
}

#[test]
fn raw_has_each_event_once_in_order() {
    let test = ended(12);
    let (open, out) = (test.open(), test.root.path().join("raw"));
    let exported = raw(open.merged().unwrap(), None, &out, &mut |_| {}).unwrap();
    assert_eq!((exported.streams, exported.events), (3, 63));
    let expected: Vec<u8> = (0..40).flat_map(|sequence| event(2, sequence).1).collect();
    assert_eq!(fs::read(out.join("module 2.raw")).unwrap(), expected);
    let table = fs::read_to_string(out.join("module 2.csv")).unwrap();
    let sequences: Vec<&str> = table.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert_eq!(sequences, (0..40).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[test]
fn mcap_has_each_event_once() {
    for from in [0, 3, 12, 18, 20] {
        let test = ended(from);
        let (open, path) = (test.open(), test.root.path().join("all.mcap"));
        let exported = one_file(open.merged().unwrap(), None, &path, &mut |_| {}).unwrap();
        assert_eq!((exported.streams, exported.events), (3, 63));
        let bytes = fs::read(&path).unwrap();
        let mut found = BTreeMap::new();
        for message in mcap::MessageStream::new(&bytes).unwrap().map(Result::unwrap) {
            let key = (u32::from(message.channel.id), u64::from(message.sequence));
            let (time, payload) = event(key.0, key.1);
            assert_eq!((message.log_time, &message.data[..]), (time, &payload[..]));
            assert!(found.insert(key, ()).is_none(), "{key:?} twice");
        }
        assert_eq!(found.len(), 63);
        let summary = mcap::Summary::read(&bytes).unwrap().unwrap();
        assert_eq!(summary.stats.unwrap().message_count, 63);
    }
}

#[test]
fn references_lead_to_each_event_once() {
    let test = ended(12);
    let (open, path) = (test.open(), test.root.path().join("refs.json"));
    let exported = zarr_reference(open.merged().unwrap(), None, &path).unwrap();
    // Stream 3 has events of any size.
    assert_eq!((exported.streams, exported.events, exported.left_out), (2, 43, 1));
    let text = fs::read_to_string(&path).unwrap();
    let refs: serde_json::Value = serde_json::from_str(&text).unwrap();
    for row in 0..40 {
        let found = &refs["refs"][format!("module 2/data/{row}.0.0")];
        let bytes = fs::read(found[0].as_str().unwrap()).unwrap();
        let at = found[1].as_u64().unwrap() as usize;
        assert_eq!(bytes[at..at + 64], event(2, row).1);
        assert_eq!(text.matches(&format!("module 2/data/{row}.0.0")).count(), 1);
    }
}

#[test]
fn events_of_another_recording_are_not_missing() {
    // daq1 lost 20 to 29 and everything of stream 3; daq2 begins at 22 and has stream 6 without events.
    let mut daq1 = TestRecording::with_id(id(1), 1, Placement::Free, &[2, 3]);
    add(&mut daq1, 0, 2, 0..20);
    daq1.gap(0, 2, 20, 10);
    daq1.gap(0, 3, 0, 4);
    let mut daq2 = TestRecording::with_id(id(2), 1, Placement::Free, &[2, 6]);
    add(&mut daq2, 0, 2, 22..40);
    let mut test = TestSet::of(vec![daq1, daq2]);
    test.end();
    let (open, out) = (test.open(), test.root.path());
    let path = out.join("all.mcap");
    let exported = one_file(open.merged().unwrap(), None, &path, &mut |_| {}).unwrap();
    let missing: Vec<(u32, u64, u64)> =
        exported.missing.iter().map(|gap| (gap.stream, gap.first_sequence, gap.events)).collect();
    assert_eq!((exported.streams, exported.events, missing), (3, 38, vec![(2, 20, 2), (3, 0, 4)]));
    let summary = mcap::Summary::read(&fs::read(&path).unwrap()).unwrap().unwrap();
    assert_eq!(summary.stats.unwrap().channel_message_counts, [(2, 38), (3, 0), (6, 0)].into());
    let master = crate::export::nexus(open.merged().unwrap(), &out.join("all.nxs")).unwrap();
    assert_eq!((master.streams, master.events, &master.missing), (3, 38, &exported.missing));
    let references = zarr_reference(open.merged().unwrap(), None, &out.join("refs.json")).unwrap();
    assert_eq!((references.streams, references.events, references.left_out), (2, 38, 1));
    assert_eq!(references.missing, exported.missing);
}

/// Times of the messages of stream 2 in an MCAP file, by sequence number.
fn mcap_times(bytes: &[u8]) -> BTreeMap<u64, u64> {
    let messages = mcap::MessageStream::new(bytes).unwrap().map(Result::unwrap);
    let of_stream = messages.filter(|message| message.channel.id == 2);
    of_stream.map(|message| (u64::from(message.sequence), message.log_time)).collect()
}

#[test]
fn the_first_recording_of_the_set_has_precedence() {
    // daq1 has the events in its second segment; the block of daq2 starts before them.
    let mut daq1 = TestRecording::with_id(id(1), 1, Placement::Free, &[2, 3]);
    add(&mut daq1, 0, 3, 0..2);
    daq1.volumes[0].rotate();
    add(&mut daq1, 0, 2, 10..15);
    add(&mut daq1, 0, 2, 15..20);
    let mut daq2 = TestRecording::with_id(id(2), 1, Placement::Free, &[2]);
    add_later(&mut daq2, 0, 2, 5..30, LATER_NS);
    let mut test = TestSet::of(vec![daq1, daq2]);
    test.end();
    let delay_ns = |sequence| if (10..20).contains(&sequence) { 0 } else { LATER_NS };
    let expected: BTreeMap<u64, u64> = (5..30).map(|n| (n, event(2, n).0 + delay_ns(n))).collect();
    let (open, out) = (test.open(), test.root.path());
    raw(open.merged().unwrap(), None, &out.join("raw"), &mut |_| {}).unwrap();
    let table = fs::read_to_string(out.join("raw/module 2.csv")).unwrap();
    let row = |line: &str| {
        let mut cells = line.split(',').map(|cell| cell.parse::<u64>().unwrap());
        (cells.next().unwrap(), cells.next().unwrap())
    };
    assert_eq!(table.lines().skip(1).map(row).collect::<BTreeMap<u64, u64>>(), expected);
    one_file(open.merged().unwrap(), None, &out.join("all.mcap"), &mut |_| {}).unwrap();
    assert_eq!(mcap_times(&fs::read(out.join("all.mcap")).unwrap()), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Two recordings with any runs of the same stream, in blocks of any length. The first has precedence.
    #[test]
    fn a_merged_stream_is_the_union(
        first in prop::collection::btree_map(0_u64..60, 1_u64..9, 0..8),
        second in prop::collection::btree_map(0_u64..60, 1_u64..9, 0..8),
    ) {
        let mut expected = BTreeMap::new();
        let mut recordings = Vec::new();
        for (number, blocks) in [first, second].into_iter().enumerate() {
            let mut recording = TestRecording::with_id(id(number as u8 + 1), 1, Placement::Free, &[2]);
            let mut at = 0;
            for (start, count) in blocks {
                let start = start.max(at);
                at = start + count;
                let delay_ns = number as u64 * LATER_NS;
                add_later(&mut recording, 0, 2, start..at, delay_ns);
                for sequence in start..at {
                    expected.entry(sequence).or_insert(event(2, sequence).0 + delay_ns);
                }
            }
            recordings.push(recording);
        }
        let mut test = TestSet::of(recordings);
        test.end();
        let open = test.open();
        let merged = open.merged().unwrap();
        let mut found = BTreeMap::new();
        let mut last = None;
        let mut reader = StreamReader::open_merged(&merged, 2).unwrap().unwrap();
        let count = reader.read(From::Sequence(0), &mut |read| {
            assert_eq!(read.payload, event(2, read.sequence).1);
            assert!(last.replace(read.sequence).is_none_or(|last| last < read.sequence));
            found.insert(read.sequence, read.timestamp_ns);
            std::ops::ControlFlow::Continue(())
        });
        prop_assert_eq!(count.unwrap(), found.len() as u64);
        prop_assert_eq!(&found, &expected);
        let account = super::testing::account_and_compare(&open);
        prop_assert_eq!(account.streams[&2].events, expected.len() as u64);
        prop_assert_eq!(account.streams[&2].different, Some(0));
        let path = test.root.path().join("all.mcap");
        let exported = one_file(&merged, None, &path, &mut |_| {}).unwrap();
        prop_assert_eq!(exported.events, expected.len() as u64);
        prop_assert_eq!(mcap_times(&fs::read(&path).unwrap()), expected);
    }
}
