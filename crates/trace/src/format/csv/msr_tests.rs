//! MSR Cambridge traces, with rows as in the archive.
use crate::Operation;
use crate::trace::tests::{names, read, refused, short};

const ROWS: &str = "128166372003061629,hm,1,Read,383496192,32768,413\n\
                    128166372016382155,hm,0,Write,310983680,4096,57\n";

#[test]
fn times_are_units_of_100_ns_and_devices_are_host_and_disk() {
    let (records, trace) = read(format!("{ROWS}128166372026382245,usr,0,Read,0,512,\n"));
    let expected = [
        (0, Some(41_300), Operation::Read, 0, 383_496_192, 32_768),
        (1_332_052_600, Some(1_332_058_300), Operation::Write, 1, 310_983_680, 4096),
        (2_332_061_600, None, Operation::Read, 2, 0, 512),
    ];
    assert_eq!(short(&records), expected);
    assert_eq!(names(&trace), ["hm.1", "hm.0", "usr.0"]);
}

#[test]
fn a_header_with_the_expected_names_is_accepted() {
    let header = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n";
    assert_eq!(read(format!("{header}{ROWS}")).0, read(ROWS).0);
    let other = header.replace("Offset", "LBA");
    let message = refused(format!("{other}{ROWS}"));
    assert!(message.contains("line 1 of made") && message.contains("Offset,Size,ResponseTime"), "{message}");
}

#[test]
fn invalid_lines_are_refused_with_number_and_reason() {
    for (row, why) in [
        ("128166372016382155,hm,1,Trim,0,4096,57\n", "its Type is \"Trim\""),
        ("128166372016382155,hm,1,Read,0,4096\n", "it has 6 columns instead of 7"),
        ("128166372016382155,hm,1,Read,0,4096,57,x\n", "it has 8 columns"),
        ("128166372016382155.5,hm,1,Read,0,4096,57\n", "its Timestamp is"),
        ("128166372016382155,hm,1,Read,0,4096,-1\n", "its ResponseTime is \"-1\""),
    ] {
        let message = refused(format!("{ROWS}{row}"));
        assert!(message.contains("line 3 of made") && message.contains(why), "{message}");
    }
}
