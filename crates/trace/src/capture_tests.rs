//! Captured requests are written in issue order and read back unchanged.
use super::*;
use crate::{Hints, Trace};

fn seen(
    issue_ns: u64,
    completion_ns: Option<u64>,
    file: u16,
    kind: RequestKind,
    bytes: u64,
) -> TracedRequest {
    TracedRequest {
        issue_ns,
        completion_ns,
        offset: 8192,
        bytes,
        file,
        kind,
        is_durable: false,
        has_failed: false,
    }
}

fn files(number: u16) -> Option<TracedFile> {
    (number < 3).then(|| TracedFile { name: format!("/data/{number}"), bytes: Some(1 << 20) })
}

fn read(bytes: Vec<u8>) -> (Trace, Vec<Record>) {
    let mut trace = Trace::from_bytes("made", bytes, &Hints::default(), None).unwrap();
    let mut records = Vec::new();
    while trace.fill(&mut records).unwrap() {}
    (trace, records)
}

#[test]
fn requests_are_written_in_issue_order() {
    let mut sorter = CaptureSorter::new(Vec::new()).unwrap();
    let at = |issue_ns, end_ns, file| seen(issue_ns, Some(end_ns), file, RequestKind::Write, 4096);
    sorter.held.extend([at(1030, 1040, 0), at(1010, 1050, 2), at(1060, 1070, 0)]);
    // A request issued at 1005 is in flight.
    sorter.write_until(1005, &files).unwrap();
    assert_eq!((sorter.captured.records, sorter.held.len()), (0, 3));
    sorter.held.push(at(1005, 1080, 0));
    sorter.write_until(1060, &files).unwrap();
    assert_eq!((sorter.captured.records, sorter.held.len()), (3, 1));
    sorter.held.push(TracedRequest { has_failed: true, ..seen(1090, Some(1095), 0, RequestKind::Read, 512) });
    sorter.held.push(TracedRequest { is_durable: true, ..seen(1100, None, 1, RequestKind::Write, 100) });
    sorter.held.push(seen(1100, Some(1110), 0, RequestKind::Sync, 0));
    sorter.held.push(seen(1120, Some(1130), 0, RequestKind::Write, 1 << 32));
    sorter.write_until(u64::MAX, &files).unwrap();
    let (bytes, captured) = sorter.finish(17).unwrap();
    let (trace, records) = read(bytes);
    let times: Vec<_> = records.iter().map(|r| (r.issue_ns, r.completion_ns(), r.device)).collect();
    let expected = [
        (0, Some(75), 0),
        (5, Some(45), 2),
        (25, Some(35), 0),
        (55, Some(65), 0),
        (85, Some(90), 0),
        (95, None, 1),
        (95, Some(105), 0),
    ];
    assert_eq!(times, expected);
    let names: Vec<_> = trace.devices().iter().map(|device| &*device.name).collect();
    assert_eq!(names, ["/data/0", "/data/1", "/data/2"]);
    assert_eq!((records[4].operation, records[6].operation), (Operation::Read, Operation::Flush));
    assert!(records[5].flags.has(Flags::FUA) && records[4].flags == Flags::NONE);
    let corrections = Corrections {
        too_large: 1,
        failed: 1,
        without_completion: 1,
        not_kept: 17,
        ..Corrections::default()
    };
    assert_eq!(captured.corrections, corrections);
    assert_eq!(*trace.corrections(), Corrections { duplicate_times: 1, ..corrections });
    assert_eq!((captured.records, captured.files, captured.span_ns), (7, 3, 95));
    assert_eq!((captured.read_bytes, captured.written_bytes), (512, 4 * 4096 + 100));
    assert_eq!((trace.header().level, &trace.header().origin), (Level::File, &Origin::Captured));
}

#[test]
fn a_request_with_an_unknown_file_is_an_error() {
    let mut sorter = CaptureSorter::new(Vec::new()).unwrap();
    sorter.held.push(seen(1, None, 3, RequestKind::Read, 512));
    assert!(sorter.write_until(2, &files).is_err());
}

#[test]
fn an_existing_trace_is_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.trace");
    std::fs::write(&path, "mine").unwrap();
    let clock: Arc<dyn Clock> = Arc::new(keepup_measure::clock::SystemClock);
    let refused = Capture::start(&path, Arc::clone(&clock)).err().unwrap();
    assert!(matches!(refused, TraceError::Usage { .. }), "{refused}");
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
}
