//! MSR Cambridge: rows as the archive has them.
use crate::Operation;
use crate::trace::tests::{names, read, refused, short};

const ROWS: &str = "128166372003061629,hm,1,Read,383496192,32768,413\n\
                    128166372016382155,hm,0,Write,310983680,4096,57\n";

#[test]
fn filetime_in_100_ns_and_disks_by_host() {
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
fn a_header_is_taken_when_its_names_are_known() {
    let header = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n";
    assert_eq!(read(format!("{header}{ROWS}")).0, read(ROWS).0);
    let other = header.replace("Offset", "LBA");
    let told = refused(format!("{other}{ROWS}"));
    assert!(told.contains("line 1 of made") && told.contains("Offset,Size,ResponseTime belong"), "{told}");
}

#[test]
fn what_cannot_be_used_says_its_line_and_why() {
    for (row, why) in [
        ("128166372016382155,hm,1,Trim,0,4096,57\n", "its Type is \"Trim\""),
        ("128166372016382155,hm,1,Read,0,4096\n", "it has 6 columns, where 7 belong"),
        ("128166372016382155,hm,1,Read,0,4096,57,x\n", "it has 8 columns"),
        ("128166372016382155.5,hm,1,Read,0,4096,57\n", "its Timestamp is"),
        ("128166372016382155,hm,1,Read,0,4096,-1\n", "its ResponseTime is \"-1\""),
    ] {
        let told = refused(format!("{ROWS}{row}"));
        assert!(told.contains("line 3 of made") && told.contains(why), "{told}");
    }
}
