//! Joining runs and explaining holes.

use proptest::prelude::*;

use super::*;

fn run(events: Range<u64>, blocks: Range<u64>, is_after_gap: bool, volume: u32) -> Run {
    let place = Location { volume, segment: 0, offset: events.start };
    Run { events, blocks, is_after_gap, place }
}

fn coverage(runs: &[Run]) -> Coverage {
    let mut coverage = Coverage::default();
    for run in runs {
        assert!(coverage.insert(run.clone()).is_none());
    }
    coverage
}

#[test]
fn adjacent_runs_are_joined_in_any_order() {
    let parts = [run(0..5, 0..1, false, 0), run(5..9, 1..2, false, 1), run(9..12, 2..4, false, 0)];
    for order in [[0, 1, 2], [2, 1, 0], [0, 2, 1], [1, 0, 2]] {
        let coverage = coverage(&order.map(|index| parts[index].clone()));
        assert_eq!(coverage.runs.len(), 1, "{order:?}");
        assert_eq!(coverage.runs[&0].events, 0..12);
        let conclusion = coverage.conclude(&Ranges::default(), None, RemovedStream::default());
        assert!(conclusion.findings.is_empty(), "{conclusion:?}");
    }
}

#[test]
fn a_repeated_event_is_found() {
    for (events, twice) in [(3..6, 4), (0..5, 4), (8..10, 8), (5..6, 5), (4..9, 4), (0..20, 4)] {
        let mut coverage = coverage(&[run(4..9, 1..2, true, 0)]);
        let finding = coverage.insert(run(events, 7..8, false, 0)).unwrap();
        assert_eq!(finding.event, twice);
    }
}

/// Findings of a stream that ends cleanly, with events 10..20 missing after block 0.
fn findings(second: Run, journaled: &[(u64, u64)]) -> (Vec<u64>, u64) {
    let coverage = coverage(&[run(0..10, 0..1, false, 0), second]);
    let journaled = Ranges::join(journaled.iter().map(|&(start, end)| start..end));
    let conclusion = coverage.conclude(&journaled, None, RemovedStream::default());
    (conclusion.findings.iter().map(|finding| finding.event).collect(), conclusion.lost_events)
}

#[test]
fn holes_need_a_journal_line_and_a_flag() {
    let flagged = || run(20..30, 1..2, true, 0);
    assert_eq!(findings(flagged(), &[(10, 20)]), (vec![], 10));
    assert_eq!(findings(flagged(), &[(10, 14), (14, 20)]), (vec![], 10));
    assert_eq!(findings(flagged(), &[(10, 20), (30, 35)]), (vec![], 15));
    assert_eq!(findings(flagged(), &[]), (vec![10], 0));
    assert_eq!(findings(flagged(), &[(10, 15)]), (vec![15], 5));
    assert_eq!(findings(flagged(), &[(12, 20)]), (vec![10], 8));
    assert_eq!(findings(flagged(), &[(10, 22)]), (vec![20], 10));
    // Events after the last block that no journal line lists, before one that is listed.
    assert_eq!(findings(flagged(), &[(10, 20), (31, 33)]), (vec![30], 12));
    // No flag: valid only if whole blocks were lost later.
    assert_eq!(findings(run(20..30, 1..2, false, 0), &[(10, 20)]), (vec![20], 10));
    assert_eq!(findings(run(20..30, 2..3, false, 0), &[(10, 20)]), (vec![], 10));
    // A flag or a jump in block numbers without a hole.
    assert_eq!(findings(run(10..30, 1..2, true, 0), &[]), (vec![10], 0));
    assert_eq!(findings(run(10..30, 2..3, false, 0), &[]), (vec![10], 0));
    assert_eq!(findings(run(20..30, 0..1, true, 0), &[(10, 20)]), (vec![20], 10));
}

#[test]
fn after_a_crash_a_hole_above_a_volumes_durable_end_is_not_a_fault() {
    let coverage = coverage(&[run(0..10, 0..1, false, 0), run(20..30, 2..3, false, 1)]);
    let conclude = |settled| coverage.conclude(&Ranges::default(), settled, RemovedStream::default());
    let excused = conclude(Some(1));
    assert_eq!((excused.findings.len(), excused.unsettled_events), (0, 10));
    // All volumes are durable beyond block 1, so block 1 is missing.
    let missing = conclude(Some(3));
    assert_eq!((missing.findings.len(), missing.unsettled_events), (1, 0));
    assert_eq!(conclude(None).findings.len(), 1);
}

proptest! {
    #[test]
    fn ranges_count_what_they_hold(
        mut ranges in prop::collection::vec((0..60u64, 1..9u64), 0..9),
        span in (0..60u64, 0..20u64),
    ) {
        ranges.sort();
        let span = span.0..span.0 + span.1;
        let joined = Ranges::join(ranges.iter().map(|&(start, length)| start..start + length));
        let is_in = |n: u64| ranges.iter().any(|&(start, length)| (start..start + length).contains(&n));
        prop_assert_eq!(joined.count_within(&span), span.clone().filter(|&n| is_in(n)).count() as u64);
        prop_assert_eq!(joined.first_within(&span), span.clone().find(|&n| is_in(n)));
        prop_assert_eq!(joined.first_outside(&span), span.clone().find(|&n| !is_in(n)).unwrap_or(span.end));
    }

    #[test]
    fn runs_in_any_order_give_the_same(
        order in Just((0..8usize).collect::<Vec<_>>()).prop_shuffle(),
        hole in 1..8usize,
    ) {
        let parts = (0..8).map(|n: u64| run(n * 5..n * 5 + 5, n..n + 1, false, 0));
        let parts: Vec<Run> = parts.collect();
        let kept = order.iter().filter(|&&index| index != hole).map(|&index| parts[index].clone());
        let kept: Vec<Run> = kept.collect();
        let coverage = coverage(&kept);
        prop_assert!(coverage.runs.len() <= 2);
        let conclusion = coverage.conclude(&Ranges::default(), None, RemovedStream::default());
        let events: Vec<u64> = conclusion.findings.iter().map(|finding| finding.event).collect();
        prop_assert_eq!(events, if hole == 7 { vec![] } else { vec![hole as u64 * 5] });
    }
}

#[test]
fn removed_events_explain_holes_below_their_end_and_nothing_else() {
    let coverage = coverage(&[run(10..20, 3..5, false, 0), run(25..30, 6..7, false, 1)]);
    let conclude = |events, end_sequence| {
        let removed = RemovedStream { events, bytes: 0, end_sequence };
        let conclusion = coverage.conclude(&Ranges::default(), None, removed);
        conclusion.findings.into_iter().map(|finding| finding.event).collect::<Vec<_>>()
    };
    assert_eq!(conclude(15, 25), [0; 0]);
    assert_eq!(conclude(10, 10), [20], "events above the end were not removed");
    assert_eq!(conclude(12, 25), [20], "more are missing than were removed");
    assert_eq!(conclude(16, 25), [0], "fewer are missing than were removed");
    assert_eq!(conclude(20, 35), [0; 0], "the removed events may include the last ones");
}

#[test]
fn a_stream_may_start_above_0() {
    let conclude = |parts: &[Run], start| {
        let coverage = Coverage { start, ..coverage(parts) };
        let conclusion = coverage.conclude(&Ranges::default(), None, RemovedStream::default());
        conclusion.findings.into_iter().map(|finding| finding.event).collect::<Vec<_>>()
    };
    let parts = [run(40..50, 0..1, false, 0), run(60..70, 1..2, true, 0)];
    assert_eq!(conclude(&parts, 40), [50], "only the hole between the blocks");
    assert_eq!(conclude(&parts[..1], 30), [30, 40], "events before the first block are missing");
    // Blocks below the start: each is a finding, and nothing is counted twice.
    assert_eq!(conclude(&parts[..1], 45), [40]);
    assert_eq!(conclude(&parts, 80), [40, 60, 60]);
    assert_eq!(conclude(&[], 40), [0; 0]);
}
