//! Complete traces from memory: common behaviour of all formats, and invalid input.
use std::io::Write;

use keepup_error::Cause;
use proptest::prelude::*;

use super::*;
use crate::*;

/// Reads a trace to its end.
pub(crate) fn read_with(text: impl Into<Vec<u8>>, hints: &Hints) -> Result<(Vec<Record>, Trace), TraceError> {
    let mut trace = Trace::from_bytes("made", text.into(), hints, None)?;
    let mut records = Vec::new();
    while trace.fill(&mut records)? {}
    Ok((records, trace))
}

pub(crate) fn read(text: impl Into<Vec<u8>>) -> (Vec<Record>, Trace) {
    read_with(text, &Hints::default()).unwrap()
}

/// Text of the error and its hint.
pub(crate) fn refused(text: impl Into<Vec<u8>>) -> String {
    refused_with(text, &Hints::default())
}

pub(crate) fn refused_with(text: impl Into<Vec<u8>>, hints: &Hints) -> String {
    match read_with(text, hints) {
        Ok((records, trace)) => panic!("was read: {records:?} {:?}", trace.corrections()),
        Err(e) => Cause::of(&e).to_text(),
    }
}

pub(crate) fn forced(format: Format) -> Hints {
    Hints { format: Some(format), ..Hints::default() }
}

pub(crate) fn names(trace: &Trace) -> Vec<&str> {
    trace.devices().iter().map(|device| device.name.as_str()).collect()
}

/// A record in short: issue, completion, operation, device, offset, bytes.
pub(super) type Short = (u64, Option<u64>, Operation, u16, u64, u32);

pub(crate) fn short(records: &[Record]) -> Vec<Short> {
    let one = |r: &Record| (r.issue_ns, r.completion_ns(), r.operation, r.device, r.offset, r.bytes);
    records.iter().map(one).collect()
}

const SPC: &str = "0,8,4096,R,0.0\n1,16,512,w,0.5\n0,24,1024,R,0.25\n";

#[test]
fn requests_are_sorted_from_time_zero_and_changes_counted() {
    let (records, trace) = read(SPC);
    let expected = [
        (0, None, Operation::Read, 0, 4096, 4096),
        (250_000_000, None, Operation::Read, 0, 12_288, 1024),
        (500_000_000, None, Operation::Write, 1, 8192, 512),
    ];
    assert_eq!(short(&records), expected);
    assert_eq!(*trace.corrections(), Corrections { reordered: 1, ..Corrections::default() });
    assert_eq!(names(&trace), ["0", "1"]);
    assert_eq!((trace.header().format, trace.header().unit), (Format::Spc, Unit::Sectors));
}

#[test]
fn a_selected_device_has_number_0() {
    let open = |name| Trace::from_bytes("made", SPC.into(), &Hints::default(), Some(name)).unwrap();
    let (mut trace, mut records) = (open("1"), Vec::new());
    while trace.fill(&mut records).unwrap() {}
    assert_eq!(short(&records), [(0, None, Operation::Write, 0, 8192, 512)]);
    assert_eq!((names(&trace), trace.corrections().other_devices), (vec!["1"], 2));
    let message = Cause::of(&open("7").fill(&mut records).unwrap_err()).to_text();
    assert!(
        message.contains("cannot select device \"7\"") && message.contains("choose one of 0, 1"),
        "{message}"
    );
}

#[test]
fn a_gzipped_file_is_decompressed() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(SPC.as_bytes()).unwrap();
    let mut packed = packed.finish().unwrap();
    assert_eq!(read(packed.clone()).0, read(SPC).0);
    packed.truncate(packed.len() - 9);
    assert!(refused(packed).contains("cannot read made"));
}

/// Spreadsheet programs write a byte order mark.
#[test]
fn a_byte_order_mark_is_skipped_and_utf_16_is_named() {
    let mark = "\u{feff}";
    assert_eq!(read(format!("{mark}{SPC}")).0, read(SPC).0);
    let named = format!("{mark}ASU,LBA,Size,Opcode,Timestamp\n{SPC}");
    assert_eq!(read(named).0, read(SPC).0);
    let wide: Vec<u8> = format!("{mark}{SPC}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let message = refused(wide);
    assert!(message.contains("UTF-16") && message.contains("iconv"), "{message}");
}

/// As of requests without data: one such line is no reason to refuse a file.
#[test]
fn a_sector_beyond_all_devices_is_dropped_and_counted() {
    let (records, trace) = read(format!("{SPC}0,18446744073709551615,512,R,0.6\n"));
    assert_eq!((records.len(), trace.corrections().too_large), (3, 1));
}

#[test]
fn an_unrecognized_format_is_refused() {
    for text in ["", "hello\n", "1,2,3\n", "\0\0\0\0", "{}\n"] {
        let message = refused(text);
        assert!(message.contains("unrecognized trace format") && message.contains("--format"), "{message}");
    }
}

#[test]
fn flags_that_do_not_apply_are_refused() {
    let hints = |waits, time_unit, unit| Hints { format: None, unit, time_unit, waits };
    let waits = refused_with(SPC, &hints(Some(Waits::Gap), None, None));
    assert!(waits.contains("cannot use --waits with format spc"), "{waits}");
    let time = refused_with(SPC, &hints(None, Some(TimeUnit::Ms), None));
    assert!(time.contains("cannot use --time-unit with format spc"), "{time}");
}

#[test]
fn an_unterminated_last_line_is_reported() {
    let (_, trace) = read("0,8,4096,R,0.0\n0,8,4096,R,0.5");
    assert_eq!(trace.corrections().unfinished_lines, 1);
    let message = refused("0,8,4096,R,0.0\n0,8,40");
    assert!(message.contains("line 2 of made") && message.contains("the line is truncated"), "{message}");
}

/// Heads of every format, so that arbitrary bytes pass format detection.
const BEGINS: [&str; 9] = [
    "",
    "fio version 2 iolog\n",
    "fio version 3 iolog\n",
    "  8,0    3        1     0.000000000   697  Q   W 8 + 8 [x]\n",
    "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n",
    "128166372003061629,hm,1,Read,0,4096,1000\n",
    "0,8,4096,R,0.0\n",
    "419,W,0,4096,1577808000000000\n",
    "0.5 0 8 8 1\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 512 }))]

    #[test]
    fn no_bytes_make_a_reader_panic(
        format in 0usize..Format::ALL.len(),
        begin in 0usize..BEGINS.len(),
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        text in "[0-9RWQCwadit,. +\\-\n]{0,400}",
    ) {
        for tail in [&bytes[..], text.as_bytes()] {
            let whole = [BEGINS[begin].as_bytes(), tail].concat();
            for hints in [Hints::default(), forced(Format::ALL[format])] {
                if let Ok((records, trace)) = read_with(whole.clone(), &hints) {
                    prop_assert!(records.is_sorted_by_key(|record| record.issue_ns));
                    for record in &records {
                        prop_assert!(usize::from(record.device) < trace.devices().len());
                        prop_assert!(record.bytes > 0 || record.operation == Operation::Flush);
                        prop_assert!(record.completion_ns().is_none_or(|ns| ns >= record.issue_ns));
                    }
                }
            }
        }
    }
}
