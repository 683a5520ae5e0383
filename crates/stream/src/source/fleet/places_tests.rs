//! Places: when recorders are asked, and what follows from answers.
use super::*;
use crate::wire::LocatedStream;

const MS: u64 = 1_000_000;

fn address(recorder: u16) -> SocketAddr {
    ([127, 0, 0, 1], recorder).into()
}

fn located(epoch: u64, streams: &[(u32, u16)]) -> Located {
    let streams = streams.iter().map(|&(id, recorder)| LocatedStream { id, address: address(recorder) });
    Located { epoch, streams: streams.collect() }
}

/// Streams 10 and 11 on connection 0 to recorder 1, stream 12 on connection 1 to recorder 2.
fn connected() -> Places {
    let mut places = Places::new(vec![10, 11, 12]);
    let changes = places.located(&located(1, &[(10, 1), (11, 1), (12, 2)]), 0);
    assert_eq!(changes.open.len(), 2);
    for (connection, attempt) in (0..).zip(&changes.open) {
        assert!(places.accept(attempt, 0));
        places.connected(&attempt.slots, connection, attempt.address, 0);
    }
    assert!(places.is_settled() && places.longest_without_ns(100) == 0);
    places
}

#[test]
fn streams_are_grouped_by_recorder() {
    let mut places = Places::new(vec![10, 11, 12]);
    let changes = places.located(&located(1, &[(12, 1), (10, 1)]), 0);
    let attempt = Attempt { number: 1, address: address(1), slots: vec![0, 2] };
    assert_eq!(changes, Changes { leave: vec![], open: vec![attempt] });
    assert_eq!(places.missing(), [11]);
}

#[test]
fn a_broken_connection_is_asked_for_at_once_and_then_after_growing_pauses() {
    let mut places = connected();
    assert_eq!(places.ask(1000 * MS, &[], 0), None);
    places.lost(&[0, 1], 2000 * MS);
    let (mut now_ns, mut pauses) = (2000 * MS, Vec::new());
    for _ in 0..6 {
        assert_eq!(places.ask(now_ns, &[], 0), Some(vec![10, 11]));
        assert_eq!(places.ask(now_ns, &[], 0), None, "one question at a time");
        places.unanswered(now_ns);
        let begin_ns = now_ns;
        while places.ask(now_ns, &[], 0).is_none() {
            now_ns += MS;
        }
        pauses.push((now_ns - begin_ns) / MS);
        places.is_asking = false;
    }
    assert_eq!(pauses, [50, 100, 200, 400, 500, 500]);
    assert_eq!(places.longest_without_ns(now_ns), now_ns - 2000 * MS);
}

#[test]
fn an_older_answer_changes_nothing() {
    let mut places = connected();
    places.lost(&[2], 0);
    assert_eq!(places.located(&located(0, &[(12, 1)]), 0), Changes::default());
    assert_eq!(places.missing(), [12]);
}

#[test]
fn a_stalled_connection_is_left_only_if_its_streams_have_moved() {
    let mut places = connected();
    assert_eq!(places.ask(1000 * MS, &[0], 0), Some(vec![10, 11]));
    assert_eq!(places.located(&located(1, &[(10, 1), (11, 1)]), 1000 * MS), Changes::default());
    let changes = places.located(&located(2, &[(10, 3)]), 1000 * MS);
    assert_eq!(changes.leave, [0]);
    assert_eq!(changes.open, [Attempt { number: 3, address: address(3), slots: vec![0] }]);
    assert_eq!(places.missing(), [11], "nobody takes it, but its connection is gone");
}

#[test]
fn an_attempt_that_takes_long_is_given_up_for_a_newer_recorder() {
    let mut places = connected();
    places.lost(&[0, 1], 0);
    let old = places.located(&located(2, &[(10, 1), (11, 1)]), 0).open.remove(0);
    assert_eq!(places.ask(600 * MS, &[], 700 * MS), None);
    assert_eq!(places.ask(800 * MS, &[], 700 * MS), Some(vec![10, 11]));
    let new = places.located(&located(3, &[(10, 3), (11, 1)]), 800 * MS).open;
    assert_eq!(new.len(), 1);
    assert!(!places.accept(&old, 900 * MS), "one of its streams has gone elsewhere");
    assert_eq!(places.missing(), [11]);
    assert!(places.accept(&new[0], 900 * MS));
    places.failed(&new[0], 900 * MS);
    assert_eq!(places.missing(), [10, 11]);
}

#[test]
fn patience_ends_for_a_stream_without_a_recorder() {
    let mut places = connected();
    let patience = Duration::from_millis(100);
    places.lost(&[2], 1000 * MS);
    assert_eq!(places.given_up(1100 * MS, patience), None);
    assert_eq!(places.given_up(1101 * MS, patience), Some(12));
    places.ended(&[0, 1, 2], 1200 * MS);
    assert!(places.is_over() && places.given_up(9000 * MS, patience).is_none());
    assert_eq!(places.longest_without_ns(9000 * MS), 200 * MS);
}
