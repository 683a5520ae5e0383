//! Traces of MQSim and DiskSim, which look the same.
use crate::trace::tests::{forced, read, read_with, refused_with, short};
use crate::{Format, Hints, Operation, TimeUnit};

#[test]
fn mqsim_times_are_ns_by_default() {
    let text = "4851300 0 42932 2 1\n6311700 1 39724 4 0\n";
    let (records, _) = read_with(text, &forced(Format::Mqsim)).unwrap();
    let expected = [
        (0, None, Operation::Read, 0, 42_932 * 512, 1024),
        (1_460_400, None, Operation::Write, 1, 39_724 * 512, 2048),
    ];
    assert_eq!(short(&records), expected);
    let hints = Hints { time_unit: Some(TimeUnit::Us), ..forced(Format::Mqsim) };
    assert_eq!(read_with(text, &hints).unwrap().0[1].issue_ns, 1_460_400_000);
}

#[test]
fn disksim_times_are_ms_and_bit_0_is_a_read() {
    let (records, _) = read("13.191135 30 0 5 1\n17.829285 20 576560 6 4\n24.314779 17 0 24 9\n");
    let expected = [
        (0, None, Operation::Read, 0, 0, 2560),
        (4_638_150, None, Operation::Write, 1, 576_560 * 512, 3072),
        (11_123_644, None, Operation::Read, 2, 0, 12_288),
    ];
    assert_eq!(short(&records), expected);
}

#[test]
fn invalid_lines_are_refused_with_number_and_reason() {
    for (row, format, why) in [
        ("6 0 8 8 2\n", Format::Mqsim, "its type is \"2\""),
        ("6 0 8 8\n", Format::Mqsim, "it has 4 columns"),
        ("6 0 8 8 1 7\n", Format::Mqsim, "it has 6 columns"),
        ("6.5 0 8 8 1\n", Format::Mqsim, "its time is \"6.5\""),
        ("6.5 0 8 8 zz\n", Format::Disksim, "its type is \"zz\""),
        ("6.5 x 8 8 1\n", Format::Disksim, "its device is \"x\""),
    ] {
        let message = refused_with(format!("5 0 8 8 1\n{row}"), &forced(format));
        assert!(message.contains("line 2 of made") && message.contains(why), "{message}");
    }
}
