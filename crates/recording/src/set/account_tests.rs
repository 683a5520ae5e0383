//! Streams over several recordings: duplicates, missing events, and events on other hosts.

use super::*;
use crate::manifest::Placement;
use crate::set::testing::{TestSet, account, account_and_compare, event, id};
use crate::set::{OpenSet, SetVerification, verify_set};
use crate::testing::TestRecording;
use crate::verify::VerifyOptions;

fn ended(from: u64) -> TestSet {
    let mut test = TestSet::new(from);
    test.end();
    test
}

#[test]
fn events_in_two_recordings_count_once() {
    let test = ended(15);
    let found = account_and_compare(&test.open());
    assert!(found.is_complete(), "{found:?}");
    let stream = &found.streams[&2];
    assert_eq!((stream.events, stream.duplicates, stream.different), (40, 5, Some(0)));
    assert_eq!(stream.hosts, ["daq1", "daq2"]);
    assert_eq!((stream.first_sequence, stream.last_sequence), (Some(0), Some(39)));
    assert_eq!(stream.payload_bytes, Some(40 * 64));
    let single = &found.streams[&3];
    assert_eq!((single.events, single.duplicates, single.hosts.len()), (20, 0, 1));
    // Without reading events: the same, except for the comparison.
    let unread = account(&test.open());
    let expected = SetStream { different: None, ..stream.clone() };
    assert_eq!(unread.streams[&2], SetStream { payload_bytes: unread.streams[&2].payload_bytes, ..expected });
}

#[test]
fn a_different_payload_is_a_fault() {
    let mut test = TestSet::new(30);
    let content: Vec<_> = (15..20).map(|sequence| event(2, sequence)).collect();
    let mut other = content.clone();
    other[3].1[0] ^= 1;
    let mut daq3 = TestRecording::with_id(id(3), 1, Placement::Free, &[2]);
    daq3.block(0, 2, 15, 0, &other);
    daq3.block(0, 2, 20, 0, &(20..30).map(|sequence| event(2, sequence)).collect::<Vec<_>>());
    let set = std::mem::take(&mut test.recordings);
    let mut test = TestSet::of(set.into_iter().chain([daq3]).collect());
    test.end();
    let found = account_and_compare(&test.open());
    assert_eq!(found.streams[&2].duplicates, 5);
    assert_eq!(found.streams[&2].different, Some(1));
    assert_eq!(found.faults, ["stream 2: 1 duplicates have another payload, the first is event 18"]);
    assert!(!found.is_complete());
}

/// Digests, except of one host.
struct Without<'a>(&'a OpenSet, &'static str);

impl Digests for Without<'_> {
    fn digests(
        &mut self,
        requests: &BTreeMap<&str, Vec<DigestRequest>>,
    ) -> BTreeMap<String, Vec<DigestResult>> {
        let mut open = self.0;
        let mut found = open.digests(requests);
        let lost = found.get_mut(self.1).into_iter().flatten();
        lost.for_each(|result| *result = Err("the host was lost".to_owned()));
        found
    }
}

#[test]
fn a_difference_is_a_fault_even_if_another_comparison_fails() {
    let recording = |host: u8, different: u64| {
        let mut recording = TestRecording::with_id(id(host), 1, Placement::Free, &[2]);
        let other = |sequence: u64| (sequence, vec![u8::from(sequence == different); 3]);
        recording.block(0, 2, 0, 0, &(0..20).map(other).collect::<Vec<_>>());
        recording
    };
    let mut test = TestSet::of(vec![recording(1, 99), recording(2, 18), recording(3, 99)]);
    test.end();
    let open = test.open();
    let verified = verify_set(&open, VerifyOptions { threads: 1 }, &|| 0, &|_| {}).recordings;
    let found = SetVerification::new(&open.set, verified, &mut Without(&open, "daq3"));
    assert_eq!(
        found.account.faults,
        [
            "stream 2: 1 duplicates have another payload, the first is event 18",
            "cannot compare the duplicates of stream 2: the host was lost"
        ]
    );
    assert!(!found.whole);
}

#[test]
fn missing_events_have_a_cause_or_are_a_fault() {
    let mut test = TestSet::new(26);
    // daq2's journal has a cause for 22 to 26, and for events that daq1 has.
    test.recordings[1].gap(0, 2, 22, 4);
    test.recordings[1].gap(0, 2, 10, 5);
    test.end();
    let found = account(&test.open());
    let stream = &found.streams[&2];
    assert_eq!(stream.missing, BTreeMap::from([(LossCause::SequenceGap, 4)]));
    assert_eq!(stream.unexplained, 2);
    assert_eq!(
        found.faults,
        ["stream 2: 2 events are missing, the first between 20 and 25, and no journal says why"]
    );
}

#[test]
fn missing_events_may_be_on_a_host_that_is_not_here() {
    let test = ended(15);
    std::fs::remove_dir_all(test.recordings[0].root.path()).unwrap();
    let found = account_and_compare(&test.open());
    assert_eq!(found.incomplete_hosts, ["daq1"]);
    assert_eq!((found.streams[&2].events, found.streams[&2].unexplained), (25, 15));
    assert!(found.faults.is_empty(), "{:?}", found.faults);
    assert!(!found.is_complete());
    assert!(!found.streams.contains_key(&3), "only daq1 knows it");
    std::fs::create_dir(test.recordings[0].root.path()).unwrap();
}

#[test]
fn the_end_is_known_if_the_last_recording_ended_cleanly() {
    // daq1 was cut off, daq2 went on and ended cleanly.
    let mut test = TestSet::new(15);
    test.recordings[0].volumes.iter_mut().for_each(|volume| volume.watermark());
    test.recordings[0].release();
    test.recordings[1].end();
    test.recordings[1].release();
    let found = account_and_compare(&test.open());
    assert!(found.streams[&2].is_end_known);
    assert_eq!((found.streams[&2].events, found.streams[&2].duplicates), (40, 5));
    assert!(!found.streams[&3].is_end_known, "only daq1 has it");
    // A hole may be in the part of daq1 that is not recovered.
    let mut test = TestSet::new(22);
    test.recordings[0].volumes.iter_mut().for_each(|volume| volume.watermark());
    test.recordings[0].release();
    test.recordings[1].end();
    test.recordings[1].release();
    let found = account(&test.open());
    assert_eq!(found.streams[&2].unexplained, 2);
    assert!(found.faults.is_empty(), "{:?}", found.faults);
}

#[test]
fn different_declarations_are_a_fault() {
    let mut test = TestSet::new(20);
    test.end();
    let mut other = TestRecording::with_id(id(3), 1, Placement::Free, &[]);
    let declared = StreamInfo { name: "other".into(), ..crate::testing::stream(2) };
    other.volumes[0].journal().append(&crate::journal::JournalRecord::Stream(declared)).unwrap();
    let recordings = std::mem::take(&mut test.recordings);
    let mut test = TestSet::of(recordings.into_iter().chain([other]).collect());
    test.recordings[2].end();
    test.recordings[2].release();
    let open = test.open();
    let found = account(&open);
    assert!(found.faults[0].contains("it declares stream 2 differently than"), "{:?}", found.faults);
    assert!(open.merged().is_err());
}

#[test]
fn many_duplicates_are_compared_in_parts() {
    let mut daq1 = TestRecording::with_id(id(1), 1, Placement::Free, &[2]);
    let mut daq2 = TestRecording::with_id(id(2), 1, Placement::Free, &[2]);
    let tiny = |sequences: Range<u64>| -> Vec<(u64, Vec<u8>)> {
        sequences.map(|sequence| (sequence, vec![sequence as u8, (sequence >> 8) as u8])).collect()
    };
    daq1.block(0, 2, 0, 0, &tiny(0..70_000));
    for start in [0_u64, 30_000, 60_000] {
        daq2.block(0, 2, start, 0, &tiny(start..start + 30_000));
    }
    let mut test = TestSet::of(vec![daq1, daq2]);
    test.end();
    let found = account_and_compare(&test.open());
    assert_eq!((found.streams[&2].events, found.streams[&2].duplicates), (90_000, 70_000));
    assert!(found.is_complete(), "{found:?}");
}

/// Account of two recordings of the events `of`, whose payloads differ in `different`.
fn with_differences(of: Range<u64>, different: &[u64]) -> SetAccount {
    let payload = |sequence: u64| (sequence, vec![sequence as u8; 3]);
    let other = |sequence: u64| (sequence, vec![sequence as u8 ^ u8::from(different.contains(&sequence)); 3]);
    let mut daq1 = TestRecording::with_id(id(1), 1, Placement::Free, &[2]);
    let mut daq2 = TestRecording::with_id(id(2), 1, Placement::Free, &[2]);
    daq1.block(0, 2, of.start, 0, &of.clone().map(payload).collect::<Vec<_>>());
    daq2.block(0, 2, of.start, 0, &of.clone().map(other).collect::<Vec<_>>());
    let mut test = TestSet::of(vec![daq1, daq2]);
    test.end();
    account_and_compare(&test.open())
}

#[test]
fn each_different_event_is_found_among_many_equal_ones() {
    for different in [&[0][..], &[69_999], &[255, 256, 65_535, 65_536], &[300, 301, 40_000]] {
        let found = with_differences(0..70_000, different);
        let stream = &found.streams[&2];
        assert_eq!((stream.duplicates, stream.different), (70_000, Some(different.len() as u64)));
        assert_eq!(stream.payload_bytes, Some(210_000), "the bytes of each duplicate are subtracted once");
        let first = format!("the first is event {}", different[0]);
        assert!(found.faults.len() == 1 && found.faults[0].ends_with(&first), "{:?}", found.faults);
    }
    assert!(with_differences(5..5 + 513, &[]).streams[&2].different == Some(0));
}

#[test]
fn facts_of_another_host_are_checked() {
    let read = serde_json::from_str::<Seen>;
    assert_eq!(read("[[0,5],[6,9]]").unwrap().ranges().collect::<Vec<_>>(), [0..5, 6..9]);
    for bad in ["[[5,5]]", "[[5,4]]", "[[0,5],[5,9]]", "[[6,9],[0,5]]", "[[0,5],[3,9]]"] {
        assert!(read(bad).is_err(), "{bad}");
    }
}
