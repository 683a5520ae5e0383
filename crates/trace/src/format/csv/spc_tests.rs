//! SPC traces, with rows as published by the University of Massachusetts.
use crate::trace::tests::{read, read_with, refused, short};
use crate::{Hints, Operation, Unit};

#[test]
fn offsets_are_sectors_sizes_bytes_and_times_seconds() {
    let (records, _) = read("0,303567,3584,w,0.000000\n1,55590,3072,R,0.026214,9,more\n");
    let expected = [
        (0, None, Operation::Write, 0, 303_567 * 512, 3584),
        (26_214_000, None, Operation::Read, 1, 55_590 * 512, 3072),
    ];
    assert_eq!(short(&records), expected);
    let hints = Hints { unit: Some(Unit::Bytes), ..Hints::default() };
    assert_eq!(read_with("0,303567,3584,w,0.000000\n", &hints).unwrap().0[0].offset, 303_567);
}

#[test]
fn a_negative_time_shifts_all_times() {
    let (records, trace) = read("0,8,512,R,0.5\n0,16,512,R,-0.25\n");
    assert_eq!(short(&records)[0], (0, None, Operation::Read, 0, 8192, 512));
    assert_eq!(records[1].issue_ns, 750_000_000);
    assert_eq!((trace.corrections().negative_times, trace.corrections().reordered), (1, 1));
}

#[test]
fn invalid_lines_are_refused_with_number_and_reason() {
    for (row, why) in [
        ("0,8,512,X,0.5\n", "its Opcode is \"X\""),
        ("0,8,512,R\n", "it has 4 columns"),
        ("0,8,512,R,1e3\n", "its Timestamp is"),
        ("a,8,512,R,1\n", "its ASU is"),
    ] {
        let message = refused(format!("0,8,512,R,0.25\n{row}"));
        assert!(message.contains("line 2 of made") && message.contains(why), "{message}");
    }
}
