//! blkparse's default output, with its summary.
use crate::trace::tests::{names, read, read_with, refused, short};
use crate::{Flags, Hints, Operation, Unit};

const EVENTS: &str = "\
  8,0    1        1     0.000000000   697  A   W 223490 + 8 <- (8,1) 223427
  8,0    1        2     0.000001829   697  Q  WS 223490 + 8 [kjournald]
  8,0    1        3     0.000004000   697  G  WS 223490 + 8 [kjournald]
  8,0    1        4     0.000005000   697  Q   W 223498 + 8 [kjournald]
  8,0    1        5     0.000006000   697  M   W 223498 + 8 [kjournald]
  8,0    1        6     0.000007000   697  D   W 223490 + 16 [kjournald]
  8,0    0        1     0.000107000     0  C   W 223490 + 16 [0]
  8,16   1        7     0.000207000   697  Q FWFS 80 + 8 [x]
  8,0    1        8     0.000307000   697  Q   R 0 + 8 [fio]
  8,0    1        0     0.000308000     0  m   N cfq697 set_active
  8,0    1        9     0.000407000   697  Q   D 8 + 32 [fstrim]
  8,0    1       10     0.000507000   697  Q  FN [x]
CPU0 (8,0):
 Reads Queued:           1,        4KiB\t Writes Queued:          2,        8KiB
Total (8,0):
";

#[test]
fn queue_events_are_requests_and_completions_match_merged_ones() {
    let (records, trace) = read(EVENTS);
    let expected = [
        (0, Some(105_171), Operation::Write, 0, 223_490 * 512, 4096),
        (3_171, Some(105_171), Operation::Write, 0, 223_498 * 512, 4096),
        (205_171, None, Operation::Write, 1, 80 * 512, 4096),
        (305_171, None, Operation::Read, 0, 0, 4096),
        (405_171, None, Operation::Discard, 0, 4096, 16_384),
        (505_171, None, Operation::Flush, 0, 0, 0),
    ];
    assert_eq!(short(&records), expected);
    assert_eq!(names(&trace), ["8,0", "8,16"]);
    assert_eq!(records[0].flags, Flags::SYNC);
    assert_eq!(records[2].flags, Flags::SYNC.with(Flags::FUA).with(Flags::PREFLUSH));
    let corrections = trace.corrections();
    assert_eq!((corrections.other_events, corrections.without_completion), (4, 4));
    // Both merged requests were dispatched at 7 us and completed at 107 us.
    let stages = trace.stages().unwrap();
    assert_eq!(stages.records, 2);
    // To the resolution of the histogram.
    let near = |mean_ns: f64, expected: f64| (mean_ns / expected - 1.0).abs() < 1e-3;
    assert!(near(stages.d2c.mean_ns, 100_000.0) && near(stages.q2d.mean_ns * 2.0, 5_171.0 + 2_000.0));
}

#[test]
fn other_output_than_the_default_is_refused() {
    let message = refused(format!("{}8,0 W 223490\n", EVENTS.lines().next().unwrap().to_owned() + "\n"));
    assert!(message.contains("line 2 of made") && message.contains("without -f"), "{message}");
    let message = refused("  8,0    1        2     0.000001829   697  Q  WS x + 8 [k]\n");
    assert!(message.contains("line 1 of made") && message.contains("its sector is \"x\""), "{message}");
}

#[test]
fn a_given_unit_is_used() {
    let hints = Hints { unit: Some(Unit::Bytes), ..Hints::default() };
    let (records, _) =
        read_with("  8,0    1        2     0.000001829   697  Q  WS 4096 + 512 [k]\n", &hints).unwrap();
    assert_eq!((records[0].offset, records[0].bytes), (4096, 512));
}

/// An fsync is `FWS` without sectors.
#[test]
fn a_write_with_a_preflush_and_no_data_is_a_flush() {
    let (records, trace) = read(
        "  8,0    1        1     0.000000000  8699  Q  WS 2048 + 8 [fio]\n\
         \x20 8,0    1        2     0.010000000  8699  Q FWS [fio]\n\
         \x20 8,0    1        3     0.011000000     0  C FWS 0 [0]\n\
         \x20 8,0    1        4     0.020000000  8699  Q  FF [fio]\n\
         \x20 8,0    1        5     0.030000000  8699  Q  WS [fio]\n",
    );
    let flushes: Vec<_> = short(&records).into_iter().filter(|r| r.2 == Operation::Flush).collect();
    let expected = [
        (10_000_000, Some(11_000_000), Operation::Flush, 0, 0, 0),
        (20_000_000, None, Operation::Flush, 0, 0, 0),
    ];
    assert_eq!(flushes, expected);
    assert_eq!(records[1].flags, Flags::SYNC);
    assert_eq!(trace.corrections().other_operations, 1, "a write without sectors and without a flush");
}

#[test]
fn names_of_input_files_and_statistics_are_skipped() {
    let named = format!("Input file sda.blktrace.0 added\nInput file sda.blktrace.1 added\n{EVENTS}");
    assert_eq!(read(named).0, read(EVENTS).0);
    let events = EVENTS.split("CPU0").next().unwrap();
    let statistics = format!("{events}fio (8699)\n Reads Queued:   1,  4KiB\tWrites Queued:  2,  8KiB\n");
    assert_eq!(read(statistics).0, read(EVENTS).0);
    let message = refused(format!("{EVENTS}{EVENTS}"));
    assert!(message.contains("behind the summary") && message.contains("one by one"), "{message}");
}

/// Without a summary, an output that was cut may end within a number.
#[test]
fn a_cut_last_line_is_refused() {
    let events = "  8,0    1        4     0.000005000   697  Q   W 223498 + 16 [kjournald]\n\
                  \x20 8,0    1        5     0.000006000   697  Q   W 223498 + 16 [kjournald]";
    assert_eq!(read(events).0.len(), 2, "only the terminator is missing");
    for cut in [1, 5, 11, 13] {
        let message = refused(&events[..events.len() - cut]);
        assert!(message.contains("line 2 of made") && message.contains("truncated"), "{cut}: {message}");
    }
}
