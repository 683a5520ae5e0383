//! Format detection, and ambiguous formats.
use super::*;

fn message(head: &str) -> String {
    match Format::detect(head.as_bytes()) {
        Ok(format) => format.name().to_owned(),
        Err(ReadError::Ambiguous(error)) => format!("{} / {}", error.what, error.help),
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn formats_are_detected_from_the_content() {
    for (head, format) in [
        ("KUTRACE\n\u{1}\0\0\0", "native"),
        ("fio version 2 iolog\n/dev/sda add\n", "iolog2"),
        ("fio version 3 iolog\n12 /dev/sda add\n", "iolog3"),
        ("\u{7}tae\0\0", "blktrace"),
        ("  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]\n", "blkparse"),
        ("TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  LAT(ms)\n", "biosnoop"),
        ("128166372003061629,hm,1,Read,383496192,32768,413\n", "msr"),
        ("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n1,a,0,Write,0,1,1\n", "msr"),
        ("0,20941264,8192,W,0.551706\n", "spc"),
        ("0,20941264,8192,w,0.551706,17,something\n", "spc"),
        ("419,W,8792731648,16384,1577808144360767\n", "alibaba"),
        ("device_id,opcode,offset,length,timestamp\n419,W,8792731648,16384,15\n", "alibaba"),
        ("0.013191 30 0 5 1\n", "disksim"),
    ] {
        assert_eq!(message(head), format, "{head}");
    }
}

#[test]
fn ambiguous_formats_are_all_named() {
    let message = message("5000 0 81920 8 1\n9000 0 81936 8 0\n");
    assert!(message.contains("mqsim or disksim"), "{message}");
    assert!(message.contains("--format mqsim or --format disksim"), "{message}");
}

#[test]
fn other_columns_match_no_format() {
    // Tencent's and SYSTOR's formats, which are not supported.
    for head in ["1538323200,12283168,144,1,1063\n", "1457017274.000000,0.000137,R,1,34359738368,8192\n"] {
        assert!(message(head).contains("unrecognized trace format"), "{head}");
    }
}

#[test]
fn names_of_formats_are_unique() {
    let names: std::collections::BTreeSet<&str> = Format::ALL.iter().map(|format| format.name()).collect();
    assert_eq!(names.len(), Format::ALL.len());
    for format in Format::ALL {
        assert_eq!(serde_json::to_value(format).unwrap(), format.name());
    }
}
