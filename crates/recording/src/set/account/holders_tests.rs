//! Streams that start at other numbers than 0, and recorders that had a stream one after the other.

use std::fs;
use std::ops::Range;

use crate::journal::JOURNAL_FILE;
use crate::set::testing::{TestSet, account, continued};
use crate::set::{SetAccount, SetMove, verify_set};
use crate::verify::VerifyOptions;

/// A move to the next host.
fn moved(from: usize, to: Option<usize>) -> SetMove {
    let host = |number: usize| format!("daq{number}");
    SetMove { from: host(from), to: to.map(host), epoch: 2, at_unix_ns: 5 }
}

/// Recordings of stream 2, one for each host: start, recorded events, and whether it ended cleanly. Its
/// streams moved from host to host.
fn holders(parts: &[(u64, Range<u64>, bool)]) -> TestSet {
    let recording = |(number, (start, events, _)): (usize, &(u64, Range<u64>, bool))| {
        continued(number as u8 + 1, &[(2, *start, events.clone())])
    };
    let mut test = TestSet::of(parts.iter().enumerate().map(recording).collect());
    for (index, (.., is_clean)) in parts.iter().enumerate() {
        test.finish(index, *is_clean);
    }
    test.set.moves = (1..parts.len()).map(|number| moved(number, Some(number + 1))).collect();
    test
}

fn found(test: &TestSet) -> SetAccount {
    account(&test.open())
}

/// Whether the end of stream 2 is known, and how many of its events are missing.
fn end_and_missing(test: &TestSet) -> (bool, u64) {
    let stream = &found(test).streams[&2];
    (stream.is_end_known, stream.unexplained)
}

#[test]
fn the_end_is_unknown_if_the_last_recorder_did_not_end_cleanly() {
    // daq2 continued the stream and was cut off before its first event was durable.
    let cut_off = holders(&[(0, 0..20, true), (20, 0..0, false)]);
    assert_eq!(end_and_missing(&cut_off), (false, 0));
    assert!(!found(&cut_off).is_complete());
    // daq2 has fewer events than daq1.
    assert_eq!(end_and_missing(&holders(&[(0, 0..20, true), (15, 15..18, false)])), (false, 0));
    assert!(found(&holders(&[(0, 0..20, true), (20, 0..0, true)])).is_complete());
}

#[test]
fn the_end_is_known_if_the_last_recorder_got_no_event() {
    let test = holders(&[(0, 0..20, false), (20, 0..0, true)]);
    let found = found(&test);
    assert!(found.is_complete(), "{found:?}");
    // It starts at an event that daq1 has not recorded.
    assert_eq!(end_and_missing(&holders(&[(0, 0..20, false), (21, 0..0, true)])), (true, 1));
    // It starts before events that daq1 has: they were not sent again.
    assert_eq!(end_and_missing(&holders(&[(0, 0..20, false), (15, 0..0, true)])), (false, 0));
}

#[test]
fn of_recorders_without_events_the_last_one_counts() {
    let mut test = holders(&[(0, 0..20, false), (20, 0..0, false), (20, 0..0, true)]);
    assert!(end_and_missing(&test).0);
    // Nothing says which of them was the last.
    test.set.moves.truncate(1);
    assert!(!end_and_missing(&test).0);
}

#[test]
fn events_below_the_highest_start_are_expected() {
    let found = found(&holders(&[(0, 0..20, true), (25, 0..0, true)]));
    assert_eq!(found.streams[&2].unexplained, 5);
    assert_eq!(
        found.faults,
        ["stream 2: 5 events are missing, the first between 20 and 24, and no journal says why"]
    );
}

#[test]
fn a_run_may_continue_an_earlier_one() {
    // daq1 had stream 2 and was lost; stream 4 was always at daq2.
    let daq1 = continued(1, &[(2, 100, 100..120)]);
    let mut test = TestSet::of(vec![daq1, continued(2, &[(2, 115, 115..140), (4, 70, 70..90)])]);
    test.end();
    test.set.moves = vec![moved(1, None)];
    let report = verify_set(&test.open(), VerifyOptions { threads: 1 }, &|| 5, &|_| {});
    assert!(report.whole, "{report:#?}");
    assert_eq!(report.account.streams[&2].events, 40);
    // A hole between the two.
    let found = found(&holders(&[(100, 100..120, true), (122, 122..140, true)]));
    assert_eq!(found.streams[&2].unexplained, 2);
    assert_eq!(
        found.faults,
        ["stream 2: 2 events are missing, the first between 120 and 121, and no journal says why"]
    );
}

#[test]
fn events_before_the_start_may_be_on_a_host_that_is_not_here() {
    let test = holders(&[(0, 0..20, true), (15, 15..40, true)]);
    fs::remove_dir_all(test.recordings[0].root.path()).unwrap();
    let found = found(&test);
    assert_eq!((found.streams[&2].unexplained, &found.incomplete_hosts[..]), (15, &["daq1".to_owned()][..]));
    assert!(found.faults.is_empty(), "{:?}", found.faults);
    fs::create_dir(test.recordings[0].root.path()).unwrap();
}

#[test]
fn events_before_the_start_are_expected_where_a_stream_has_moved() {
    let set = |moves: Vec<SetMove>| {
        let mut test = TestSet::of(vec![continued(1, &[(3, 0, 0..5)]), continued(2, &[(2, 15, 15..40)])]);
        test.end();
        test.set.moves = moves;
        test
    };
    let test = set(vec![moved(1, Some(2))]);
    assert_eq!(end_and_missing(&test), (true, 15));
    assert_eq!(found(&test).faults.len(), 1);
    // Streams of daq1 went to several hosts, and it did not have this one.
    for moves in [vec![moved(1, None)], vec![moved(2, Some(1))], Vec::new()] {
        let found = found(&set(moves));
        assert!(found.is_complete(), "{found:?}");
    }
    // The line that declares it may be lost.
    let test = set(Vec::new());
    let journal = test.recordings[0].dirs()[0].join(JOURNAL_FILE);
    let text = fs::read_to_string(&journal).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    fs::write(&journal, format!("{first}\ndamaged\n{rest}")).unwrap();
    assert_eq!(end_and_missing(&test), (true, 15));
}
