//! fio's logs as written by fio 3.33 and as described in its HOWTO.
use crate::trace::tests::{names, read, read_with, refused, short};
use crate::{Hints, Operation, TraceClock, Waits};

const HEAD: &str = "fio version 3 iolog\n";

#[test]
fn version_3_is_read() {
    let (records, trace) = read(
        "fio version 3 iolog\n41 t1.dat add\n213 t1.dat open\n219 t1.dat read 0 4096\n\
         559 t1.dat write 45056 4096\n600 t1.dat sync 45056 4096\n700 t1.dat datasync 0 0\n\
         10185 t1.dat trim 53248 2147483648\n74562 t1.dat close\n",
    );
    let expected = [
        (0, None, Operation::Read, 0, 0, 4096),
        (340_000, None, Operation::Write, 0, 45_056, 4096),
        (381_000, None, Operation::Flush, 0, 0, 0),
        (481_000, None, Operation::Flush, 0, 0, 0),
        (9_966_000, None, Operation::Discard, 0, 53_248, 2_147_483_648),
    ];
    assert_eq!(short(&records), expected);
    assert_eq!((names(&trace), trace.corrections().other_events), (vec!["t1.dat"], 3));
}

#[test]
fn version_2_has_times_only_if_the_meaning_of_waits_is_given() {
    let text = "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda read 0 512\n\
                /dev/sda wait 1500 0\n/dev/sda read 512 512\n/dev/sda wait 2000 0\n/dev/sda write 0 512\n";
    let message = refused(text);
    assert!(
        message.contains("waits") && message.contains("--waits gap") && message.contains("--waits start"),
        "{message}"
    );
    let times = |waits| {
        let hints = Hints { waits: Some(waits), ..Hints::default() };
        let (records, trace) = read_with(text, &hints).unwrap();
        assert_eq!(trace.header().clock, TraceClock::Issue);
        records.iter().map(|record| record.issue_ns).collect::<Vec<_>>()
    };
    assert_eq!(times(Waits::Gap), [0, 1_500_000, 3_500_000]);
    assert_eq!(times(Waits::Start), [0, 1_500_000_000, 2_000_000_000]);
    let (records, trace) =
        read(text.replace("/dev/sda wait 1500 0\n", "").replace("/dev/sda wait 2000 0\n", ""));
    assert_eq!((records.len(), trace.header().clock), (3, TraceClock::None));
    assert_eq!(trace.corrections().duplicate_times, 2);
}

#[test]
fn a_second_log_in_the_file_is_an_error() {
    let message = refused(format!("{HEAD}1 a read 0 512\n{HEAD}1 a read 0 512\n"));
    assert!(message.contains("line 3 of made") && message.contains("another trace starts"), "{message}");
}

#[test]
fn invalid_lines_are_refused_with_number_and_reason() {
    for (line, why) in [
        ("5 a read 0\n", "4 columns instead of 3 or 5"),
        ("5 my file read 0 512\n", "its action is \"file\""),
        ("5 a read 0 512 7\n", "6 columns instead of 3 or 5"),
        ("5 a wait 100 0\n", "version 3 of the format has no wait"),
        ("x a read 0 512\n", "its time is \"x\""),
        ("5 a read -1 512\n", "its offset is \"-1\""),
        ("5 a read 0 5k\n", "its length is \"5k\""),
        ("5 a copy\n", "its action is \"copy\""),
    ] {
        let message = refused(format!("{HEAD}1 a read 0 512\n{line}2 a read 0 512\n"));
        assert!(message.contains("line 3 of made") && message.contains(why), "{message}");
    }
    let long = "n".repeat(257);
    assert!(refused(format!("{HEAD}1 {long} read 0 512\n")).contains("name of 257 bytes"));
}

#[test]
fn a_log_of_several_jobs_is_sorted() {
    let (records, trace) = read(format!("{HEAD}30 a read 0 512\n10 b read 0 512\n20 a sync 0 0\n"));
    let times: Vec<u64> = records.iter().map(|record| record.issue_ns).collect();
    assert_eq!((times, trace.corrections().reordered), (vec![0, 10_000, 20_000], 2));
}
