//! Requests that are sorted, dropped or refused in any format.
use std::fmt::Write;

use proptest::prelude::*;

use super::WINDOW;
use crate::trace::tests::{read, refused, short};
use crate::{Corrections, Operation};

/// A trace of reads of 512 bytes at these times in ns. The sector identifies the line.
fn at(times: &[i64]) -> String {
    let mut text = String::new();
    for (line, ns) in times.iter().enumerate() {
        let sign = if *ns < 0 { "-" } else { "" };
        let (s, ns) = (ns.unsigned_abs() / 1_000_000_000, ns.unsigned_abs() % 1_000_000_000);
        writeln!(text, "0,{},512,R,{sign}{s}.{ns:09}", line * 3).unwrap();
    }
    text
}

#[test]
fn a_late_request_is_sorted_within_the_window_and_refused_beyond() {
    let mut times: Vec<i64> = (0..5 * WINDOW as i64).map(|n| n * 1000).collect();
    times[3 * WINDOW] = times[2 * WINDOW] + 1;
    let (records, trace) = read(at(&times));
    assert!(records.is_sorted_by_key(|record| record.issue_ns));
    assert_eq!(records[2 * WINDOW + 1].offset, 3 * WINDOW as u64 * 3 * 512);
    assert_eq!((records.len(), trace.corrections().reordered), (times.len(), 1));
    times[4 * WINDOW] = 5;
    let message = refused(at(&times));
    assert!(message.contains(&format!("line {} of made", 4 * WINDOW + 1)), "{message}");
    assert!(message.contains("ms earlier") && message.contains("sort the file"), "{message}");
}

#[test]
fn single_implausible_times_are_dropped_and_counted() {
    let year = 365 * 86_400 * 1_000_000_000;
    let (records, trace) = read(at(&[0, 1000, 5 * year, 2000, -5 * year, 3000]));
    let times: Vec<u64> = records.iter().map(|record| record.issue_ns).collect();
    assert_eq!((times, trace.corrections().absurd_times), (vec![0, 1000, 2000, 3000], 2));
}

#[test]
fn a_permanent_jump_of_years_is_an_error() {
    let year = 365 * 86_400 * 1_000_000_000;
    let times: Vec<i64> = (0..40).map(|n| if n < 20 { n } else { 5 * year + n }).collect();
    let message = refused(at(&times));
    assert!(message.contains("line 21 of made") && message.contains("jump by 1825 days"), "{message}");
    // A gap of days is plausible.
    let times: Vec<i64> = (0..40).map(|n| if n < 20 { n } else { year / 20 + n }).collect();
    assert_eq!(read(at(&times)).0.len(), 40);
}

#[test]
fn impossible_sizes_and_ends_are_dropped() {
    let far = i64::MAX as u64 / 512;
    let text = format!("0,0,0,R,0\n0,0,4294967296,W,0\n0,{far},8192,W,0\n0,9,512,R,1\n0,8,4294967295,W,1\n");
    let (records, trace) = read(text);
    let expected = [(0, None, Operation::Read, 0, 4608, 512), (0, None, Operation::Write, 0, 4096, u32::MAX)];
    assert_eq!(short(&records), expected);
    let counted = Corrections { zero_sizes: 1, too_large: 2, duplicate_times: 1, ..Corrections::default() };
    assert_eq!(*trace.corrections(), counted);
    assert_eq!(trace.corrections().dropped(), 3);
}

#[test]
fn a_completion_before_its_issue_is_ignored() {
    let head = "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n";
    let (records, trace) = read(format!("{head}0.5 a 1 sda R 8 512 -3\n0.6 a 1 sda R 8 512 3\n"));
    assert_eq!(records[0].completion_ns().is_some(), records[0].issue_ns > 0);
    assert_eq!(trace.corrections().early_completions, 1);
}

proptest! {
    #[test]
    fn sorting_within_the_window_is_stable(
        times in prop::collection::vec(0i64..50, 1..300),
    ) {
        let (records, trace) = read(at(&times));
        let mut expected: Vec<(i64, u64)> =
            times.iter().enumerate().map(|(line, time)| (*time, line as u64 * 3 * 512)).collect();
        expected.sort_by_key(|(time, _)| *time);
        let first = expected[0].0;
        let found: Vec<(i64, u64)> =
            records.iter().map(|record| (record.issue_ns as i64 + first, record.offset)).collect();
        prop_assert_eq!(found, expected);
        let mut latest = i64::MIN;
        let late = times.iter().filter(|time| {
            let is_late = **time < latest;
            latest = latest.max(**time);
            is_late
        });
        prop_assert_eq!(trace.corrections().reordered, late.count() as u64);
    }
}
