//! Counts are found at their time, however long a report was under way.
use proptest::prelude::*;

use super::*;

fn report(t_ns: u64, bytes: u64) -> SourceProgress {
    SourceProgress { t_ns, due_bytes: bytes, sent_bytes: bytes / 2, ..SourceProgress::default() }
}

#[test]
fn nothing_is_known_before_the_first_report() {
    let none = Timeline::default();
    assert_eq!((none.on_our_clock(5), none.at(5), none.gap_ns_max()), (None, None, 0));
}

#[test]
fn the_fastest_report_relates_the_clocks() {
    let mut timeline = Timeline::default();
    // Their clock is 1000 behind; deliveries take 30, 10 and 500.
    for (our_ns, their_ns, bytes) in [(1130, 100, 10), (1210, 200, 20), (1800, 300, 40)] {
        timeline.take(our_ns, &report(their_ns, bytes));
    }
    assert_eq!((timeline.on_our_clock(200), timeline.gap_ns_max()), (Some(1210), 100));
    let due = |our_ns| timeline.at(our_ns).unwrap().due_bytes;
    assert_eq!([0, 1010, 1060, 1110, 1160, 1210, 1310].map(due), [0, 0, 5, 10, 15, 20, 40]);
    assert_eq!((due(5000), timeline.at(5000).unwrap().sent_bytes), (40, 20), "the last report stands");
}

#[test]
fn final_counts_are_never_before_the_last_report() {
    let mut timeline = Timeline::default();
    timeline.take(1100, &report(100, 10));
    timeline.add(90, SourceCounts { due_bytes: 12, ..SourceCounts::default() });
    assert_eq!(timeline.at(1100).unwrap().due_bytes, 12);
    assert_eq!(timeline.at(1050).unwrap().due_bytes, 5);
}

#[test]
fn a_long_run_keeps_a_bounded_number_of_reports() {
    let mut timeline = Timeline::default();
    let count = 3 * REPORTS_MAX as u64;
    for n in 0..count {
        timeline.take(n * 10, &report(n * 10, n));
    }
    assert!(timeline.reports.len() <= REPORTS_MAX);
    // Three times as many reports: twice, every second one was dropped.
    assert_eq!(timeline.gap_ns_max(), 40);
    for part in [1, 2, 5, 9, 10] {
        let due = timeline.at(count * part).unwrap().due_bytes;
        assert!(due.abs_diff(count * part / 10) <= 4, "{due}");
    }
}

proptest! {
    /// Whatever the offset of the clocks and the delays: a source of one byte per ns is known to within the
    /// fastest delivery.
    #[test]
    fn delays_do_not_change_the_counts(
        offset in -1_000_000i64..1_000_000,
        fast in 0u64..1000,
        delays in prop::collection::vec(0u64..100_000, 2..40),
    ) {
        let mut timeline = Timeline::default();
        let base_ns = 10_000_000u64;
        let mut arrived_ns = 0;
        for (n, delay) in (0u64..).zip(&delays) {
            let sent_ns = base_ns + n * 100;
            // Reports of one connection do not overtake each other.
            arrived_ns = arrived_ns.max(sent_ns + fast + delay);
            timeline.take(arrived_ns, &report(sent_ns.checked_add_signed(offset).unwrap(), n * 100));
        }
        let end_ns = base_ns + (delays.len() as u64 - 1) * 100;
        let least = delays.iter().min().unwrap();
        for our_ns in (base_ns + fast + least..end_ns).step_by(37) {
            let due = timeline.at(our_ns).unwrap().due_bytes;
            let truth = our_ns - base_ns;
            prop_assert!(due <= truth && truth - due <= fast + 100_000, "{} of {}", due, truth);
        }
        prop_assert!(timeline.at(our_late(end_ns)).unwrap().due_bytes == (delays.len() as u64 - 1) * 100);
    }
}

fn our_late(end_ns: u64) -> u64 {
    end_ns + 1_000_000
}
