//! Matching of completions: single, merged, split, at the same offset, late or missing.
use super::*;

const MS: i64 = 1_000_000;

fn raw(time_ns: i64, sector: u64, sectors: u64) -> RawRecord {
    let raw = request(time_ns, 0, 0, Operation::Write);
    RawRecord { offset: sector * SECTOR, bytes: sectors * SECTOR, ..raw }
}

/// Requests that result from events `(time, sector, sectors, is completion)`.
fn run(events: &[(i64, u64, u64, bool)]) -> (Vec<(u64, i64)>, Batch) {
    let (mut pending, mut batch) = (Pending::default(), Batch::default());
    for (time, sector, sectors, is_completion) in events {
        let raw = raw(*time * MS, *sector, *sectors);
        match is_completion {
            true => pending.complete(raw, &mut batch),
            false => pending.issue(raw, &mut batch),
        }
    }
    pending.finish(&mut batch);
    let ms = |ns: i64| if ns == NO_TIME { -1 } else { ns / MS };
    let out = batch.records.iter().map(|raw| (raw.offset / SECTOR, ms(raw.completion_ns))).collect();
    (out, batch)
}

#[test]
fn a_merged_completion_completes_all_its_requests() {
    let (out, batch) = run(&[(0, 8, 8, false), (1, 16, 8, false), (2, 0, 8, false), (9, 0, 24, true)]);
    assert_eq!(out, [(8, 9), (16, 9), (0, 9)]);
    assert_eq!(batch.corrections.lone_completions, 0);
}

#[test]
fn a_split_request_completes_with_its_last_part() {
    let (out, _) = run(&[(0, 0, 64, false), (3, 0, 16, true), (5, 16, 16, true), (8, 32, 32, true)]);
    assert_eq!(out, [(0, 8)]);
}

#[test]
fn the_older_of_two_requests_at_the_same_offset_completes_first() {
    let (out, _) = run(&[(0, 0, 8, false), (1, 0, 8, false), (5, 0, 8, true), (7, 0, 8, true)]);
    assert_eq!(out, [(0, 5), (0, 7)]);
}

#[test]
fn requests_leave_in_queue_order() {
    let (out, _) = run(&[(0, 0, 8, false), (1, 8, 8, false), (2, 8, 8, true), (3, 0, 8, true)]);
    assert_eq!(out, [(0, 3), (8, 2)]);
}

#[test]
fn unmatched_completions_and_requests_are_counted() {
    let (out, batch) = run(&[(0, 0, 8, false), (1, 80, 8, true)]);
    assert_eq!(out, [(0, -1)]);
    assert_eq!((batch.corrections.lone_completions, batch.corrections.without_completion), (1, 1));
    // A trace without completions has no missing ones.
    assert_eq!(run(&[(0, 0, 8, false)]).1.corrections.without_completion, 0);
}

#[test]
fn pending_requests_are_limited() {
    let (mut pending, mut batch) = (Pending::default(), Batch::default());
    for number in 0..LIMIT as i64 + 10 {
        pending.issue(raw(number, number as u64 % 3, 1), &mut batch);
    }
    assert_eq!((batch.records.len(), pending.queue.len()), (10, LIMIT));
    // The first request at this offset has left, so the completion belongs to the next one.
    pending.complete(raw(i64::from(u32::MAX), 0, 1), &mut batch);
    pending.finish(&mut batch);
    let completed: Vec<usize> =
        batch.records.iter().map(|raw| usize::from(raw.completion_ns != NO_TIME)).collect();
    assert_eq!(completed.iter().sum::<usize>(), 1);
    assert!(pending.newest.len() <= 3);
}

/// Dispatch times in ms, or -1, after events `(time, sector, sectors, kind)`.
fn dispatched(events: &[(i64, u64, u64, char)]) -> Vec<(u64, i64)> {
    let (mut pending, mut batch) = (Pending::default(), Batch::default());
    for (time, sector, sectors, kind) in events {
        let raw = raw(*time * MS, *sector, *sectors);
        match kind {
            'Q' => pending.issue(raw, &mut batch),
            'D' => pending.dispatch(raw),
            _ => pending.complete(raw, &mut batch),
        }
    }
    pending.finish(&mut batch);
    let ms = |ns: i64| if ns == NO_TIME { -1 } else { ns / MS };
    batch.records.iter().map(|raw| (raw.offset / SECTOR, ms(raw.dispatch_ns))).collect()
}

#[test]
fn a_dispatch_is_that_of_all_its_requests_and_of_the_first_part_of_a_long_one() {
    let merged = [(0, 8, 8, 'Q'), (1, 16, 8, 'Q'), (2, 0, 8, 'Q'), (3, 0, 24, 'D'), (9, 0, 24, 'C')];
    assert_eq!(dispatched(&merged), [(8, 3), (16, 3), (0, 3)]);
    let split = [(0, 0, 64, 'Q'), (2, 0, 32, 'D'), (3, 32, 32, 'D'), (5, 0, 32, 'C'), (8, 32, 32, 'C')];
    assert_eq!(dispatched(&split), [(0, 2)]);
    // Dispatched again after a requeue, or never.
    assert_eq!(dispatched(&[(0, 0, 8, 'Q'), (2, 0, 8, 'D'), (4, 0, 8, 'D'), (6, 0, 8, 'C')]), [(0, 2)]);
    assert_eq!(dispatched(&[(0, 0, 8, 'Q'), (1, 64, 8, 'D'), (6, 0, 8, 'C')]), [(0, -1)]);
}

#[test]
fn the_older_of_two_requests_at_the_same_offset_is_dispatched_first() {
    let events = [(0, 0, 8, 'Q'), (1, 0, 8, 'Q'), (2, 0, 8, 'D'), (3, 0, 8, 'D'), (5, 0, 8, 'C')];
    assert_eq!(dispatched(&events), [(0, 2), (0, 3)]);
}
