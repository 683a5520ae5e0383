//! Torn lines are skipped, damaged lines are refused.

use std::fs;

use keepup_stream::ledger::LossCause;
use keepup_stream::rejected::{RejectReason, RejectUnit};
use keepup_stream::wire::ElementType;
use proptest::prelude::*;

use super::*;
use crate::crc::crc32;

fn manifest() -> Manifest {
    let own = crate::fixture::manifest(vec!["/data".into()], 0);
    Manifest { recording: Id([1; 16]), volume: Id([2; 16]), created_unix_ns: 3, ..own }
}

fn records() -> Vec<JournalRecord> {
    let count = Count { events: 5, bytes: u64::MAX };
    let name = "camera \"1\"\u{2028}".to_owned();
    vec![
        JournalRecord::Begin { recording: Id([1; 16]), volume: Id([2; 16]), time_unix_ns: 3 },
        JournalRecord::Manifest(manifest().sum(std::path::Path::new("")).unwrap()),
        JournalRecord::Stream(StreamInfo {
            id: 4,
            name,
            element: ElementType::F64,
            shape: vec![2, 3],
            compression: None,
        }),
        JournalRecord::Start { stream: 4, first_sequence: 6 },
        JournalRecord::Segment { index: 0, id: Id([9; 16]), file: "f".to_owned(), preallocated_bytes: 7 },
        JournalRecord::Watermark { segment: 0, written_bytes: 8192, durable_bytes: 4096, blocks: 1 },
        JournalRecord::Gap(Gap { stream: 4, first_sequence: 6, events: 2, cause: LossCause::VolumeFailed }),
        JournalRecord::SegmentEnd { index: 0, bytes: 9000, data_bytes: 8192, blocks: 2 },
        JournalRecord::Rejected(Rejected {
            source: "udp://:4001 from 10.0.0.7:\u{2028}".to_owned(),
            reason: RejectReason::OutsideSeries,
            unit: RejectUnit::Image,
            count: u64::MAX,
            is_foreign: true,
            detail: "no start \"message\"".to_owned(),
        }),
        JournalRecord::End {
            clean: true,
            reason: "duration reached".to_owned(),
            streams: vec![StreamEnd { id: 4, received: count, durable: count }],
        },
    ]
}

/// Writes all records; returns the directory and the file's bytes.
fn written() -> (tempfile::TempDir, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Journal::create(dir.path(), &manifest()).unwrap();
    for record in &records()[2..9] {
        journal.append(record).unwrap();
    }
    journal.append_durable(&records()[9]).unwrap();
    let bytes = fs::read(dir.path().join(JOURNAL_FILE)).unwrap();
    (dir, bytes)
}

#[test]
fn appended_lines_are_read() {
    let (dir, bytes) = written();
    let (found, tail) = Journal::read(dir.path()).unwrap();
    assert_eq!((found, tail), (records(), None));
    let text = String::from_utf8(bytes).unwrap();
    assert_eq!(text.lines().count(), records().len());
    let json = "{\"t\":\"segment_end\",\"index\":0,\"bytes\":9000,\"data_bytes\":8192,\"blocks\":2}";
    assert!(text.contains(&format!("\n{json} {:08x}\n", crc32(json.as_bytes()))), "{text}");
}

#[test]
fn a_journal_is_created_once() {
    let (dir, _) = written();
    assert!(matches!(Journal::create(dir.path(), &manifest()), Err(RecordingError::Io { .. })));
}

#[test]
fn a_torn_last_line_is_skipped() {
    let (dir, bytes) = written();
    let path = dir.path().join(JOURNAL_FILE);
    let last = bytes[..bytes.len() - 1].iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
    for cut in last..bytes.len() {
        fs::write(&path, &bytes[..cut]).unwrap();
        let (found, tail) = Journal::read(dir.path()).unwrap();
        assert_eq!(found, records()[..9]);
        let torn = TornTail { line: 10, offset: last as u64, bytes: (cut - last) as u64 };
        assert_eq!(tail, (cut > last).then_some(torn));
    }
    // A power loss may leave zeros, or a last line with its end intact and a hole in the middle.
    let mut zeros = bytes[..last].to_vec();
    zeros.resize(last + 200_000, 0);
    fs::write(&path, &zeros).unwrap();
    assert_eq!(Journal::read(dir.path()).unwrap().1.unwrap().bytes, 200_000);
    let mut hole = bytes.clone();
    hole[last + 5] = 0;
    fs::write(&path, &hole).unwrap();
    assert_eq!(Journal::read(dir.path()).unwrap().0, records()[..9]);
}

#[test]
fn a_bad_line_before_others_is_refused_with_its_number() {
    let (dir, bytes) = written();
    let starts: Vec<usize> = [0].into_iter().chain(newlines(&bytes).map(|at| at + 1)).collect();
    for line in 0..9 {
        for at in [starts[line], starts[line] + 3, starts[line + 1] - 2] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            fs::write(dir.path().join(JOURNAL_FILE), &damaged).unwrap();
            let error = Journal::read(dir.path()).unwrap_err();
            let RecordingError::JournalLine { line: found, .. } = error else {
                panic!("{error}");
            };
            assert_eq!(found, line as u64 + 1);
        }
    }
}

fn newlines(bytes: &[u8]) -> impl Iterator<Item = usize> {
    bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at)
}

#[test]
fn an_endless_line_takes_bounded_memory() {
    let dir = tempfile::tempdir().unwrap();
    let file = File::create(dir.path().join(JOURNAL_FILE)).unwrap();
    file.set_len(1 << 40).unwrap();
    let error = Journal::read(dir.path()).unwrap_err();
    assert!(matches!(error, RecordingError::JournalLine { line: 1, .. }), "{error}");
}

#[test]
fn a_well_formed_line_of_an_unknown_kind_is_refused() {
    let (dir, mut bytes) = written();
    let json = "{\"t\":\"poem\"}";
    let line = format!("{json} {:08x}\n", crc32(json.as_bytes()));
    bytes.extend_from_slice(line.as_bytes());
    bytes.extend_from_slice(line.as_bytes());
    fs::write(dir.path().join(JOURNAL_FILE), &bytes).unwrap();
    let error = Journal::read(dir.path()).unwrap_err().to_string();
    assert!(error.contains("line 11") && error.contains("poem"), "{error}");
}

#[test]
fn a_reader_continues_when_the_journal_grows() {
    let (dir, bytes) = written();
    let path = dir.path().join(JOURNAL_FILE);
    fs::write(&path, b"").unwrap();
    let mut reader = JournalReader::open(dir.path()).unwrap();
    let mut found = Vec::new();
    for end in (1..=bytes.len()).step_by(13).chain([bytes.len()]) {
        fs::write(&path, &bytes[..end]).unwrap();
        let before = found.len();
        let has_grown = reader.poll(&mut |record| {
            found.push(record);
            Ok(())
        });
        assert_eq!(has_grown.unwrap(), found.len() > before);
        assert_eq!(found.len(), newlines(&bytes[..end]).count());
    }
    assert_eq!(found, records());
}

#[test]
fn a_line_that_was_cut_off_and_replaced_is_read_again() {
    let (dir, bytes) = written();
    let path = dir.path().join(JOURNAL_FILE);
    let first = newlines(&bytes).next().unwrap() + 1;
    fs::write(&path, [&bytes[..first], b"{\"t\":\"gap\",\"stre"].concat()).unwrap();
    let mut reader = JournalReader::open(dir.path()).unwrap();
    let mut count = 0;
    reader
        .poll(&mut |_| {
            count += 1;
            Ok(())
        })
        .unwrap();
    assert_eq!(count, 1);
    fs::write(&path, &bytes).unwrap();
    reader
        .poll(&mut |_| {
            count += 1;
            Ok(())
        })
        .unwrap();
    assert_eq!(count, records().len());
}

#[test]
fn a_journal_that_cannot_be_written_refuses_all_later_lines() {
    let (dir, bytes) = written();
    let path = dir.path().join(JOURNAL_FILE);
    let file = File::open(&path).unwrap();
    let mut journal = Journal { file, path, line: vec![], bytes: bytes.len() as u64, is_broken: false };
    assert!(matches!(journal.append(&records()[3]), Err(RecordingError::Io { .. })));
    assert!(matches!(journal.append(&records()[3]), Err(RecordingError::JournalBroken { .. })));
    assert_eq!(Journal::read(dir.path()).unwrap().0, records());
}

proptest! {
    #[test]
    fn arbitrary_journals_never_panic(lines in prop::collection::vec("[ -~]{0,60}", 0..6), whole: bool) {
        let dir = tempfile::tempdir().unwrap();
        let text: String = lines
            .iter()
            .map(|line| {
                let checksum = if whole { format!(" {:08x}", crc32(line.as_bytes())) } else { String::new() };
                format!("{line}{checksum}\n")
            })
            .collect();
        fs::write(dir.path().join(JOURNAL_FILE), &text).unwrap();
        // None of these is a record: only a torn last line or a fault can result.
        match Journal::read(dir.path()) {
            Ok((records, _)) => prop_assert!(records.is_empty() && lines.len() < 2),
            Err(error) => {
                let is_line_fault = matches!(error, RecordingError::JournalLine { line: 1, .. });
                prop_assert!(is_line_fault, "{}", error);
            }
        }
    }
}
